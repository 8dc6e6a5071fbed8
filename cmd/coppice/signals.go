package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalled is the cause of a context that a signal ended.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return s.Signal.String() }

// Is lets whoever returns the cause of a context be understood as one that was ended.
func (signalled) Is(target error) bool { return target == context.Canceled }

// ownProcess is what a command may change of the process that it has for itself. Commands
// that tests run in their own process have none.
type ownProcess struct {
	hangup atomic.Pointer[func() bool]
}

type processKey struct{}

// processOf returns the process of a command, or nil.
func processOf(ctx context.Context) *ownProcess {
	p, _ := ctx.Value(processKey{}).(*ownProcess)
	return p
}

// keepPrivate has the files that the command's process makes from now on, and those of the
// libraries that it uses, be its user's alone.
func keepPrivate(ctx context.Context) {
	if processOf(ctx) != nil {
		unix.Umask(unix.Umask(0o077) | 0o077)
	}
}

// survives has f called at each SIGHUP; where it returns true, the signal ends nothing.
func (p *ownProcess) survives(f func() bool) { p.hangup.Store(&f) }

// untilSignal returns a context that Ctrl-C, SIGTERM or the end of the terminal (SIGHUP,
// unless nohup had it ignored) ends. A closed pipe becomes an error of the write, not the
// end of the process.
func untilSignal() (context.Context, func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	p := new(ownProcess)
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), processKey{}, p))
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		for {
			select {
			case s := <-came:
				if f := p.hangup.Load(); s == syscall.SIGHUP && f != nil && (*f)() {
					continue
				}
				cancel(signalled{s.(syscall.Signal)})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() { signal.Stop(came); cancel(nil) }
}
