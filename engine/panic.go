package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is the error that Guard makes of an algorithm's panic.
type Panic struct {
	Doing string // what panicked, such as "computing the task"
	Value any    // what it panicked with
	Stack []byte // of the goroutine that panicked
}

// Error implements error, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%s panicked: %v", p.Doing, p.Value) }

// Unwrap returns Value if it is an error, such as a runtime.Error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Guard, deferred, turns a panic into a *Panic in *err: the algorithm's job fails, and the
// process goes on. A goroutine guards itself; its callers cannot.
func Guard(err *error, doing string) {
	if r := recover(); r != nil {
		*err = &Panic{Doing: doing, Value: r, Stack: debug.Stack()}
	}
}

// PanicStack returns the stack of the panic that err comes from; "": it comes from none.
func PanicStack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}
