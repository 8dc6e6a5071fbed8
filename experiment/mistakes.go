package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
)

// Errors are the mistakes in a spec, and what is wrong with the data that it names. Each is about a place in the spec's
// file.
type Errors []error

// Error returns the only mistake, or lists all of them, each on its line.
func (e Errors) Error() string {
	var list []string
	for _, one := range e {
		list = append(list, one.Error())
	}
	return strings.Join(list, "\n")
}

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error { return e }

// Add adds an error about a place in the spec, or several. It reports whether err is one.
func (e *Errors) Add(err error) bool {
	var several Errors
	if errors.As(err, &several) {
		*e = append(*e, several...)
		return true
	}
	_, ok := placeOfError(err)
	if ok {
		*e = append(*e, err)
	}
	return ok
}

// Sorted returns the mistakes in the order of their places, or nil if there are none.
func (e Errors) Sorted() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b error) int {
		x, _ := placeOfError(a)
		y, _ := placeOfError(b)
		return cmp.Or(x.Line-y.Line, x.Column-y.Column)
	})
	return e
}

// placeOfError returns the place in the spec's file that an error is about; false: it is about no place.
func placeOfError(err error) (yamltree.Place, bool) {
	var one *spec.Error
	var other *located
	switch {
	case errors.As(err, &one):
		return yamltree.Place{Line: one.Line, Column: one.Column}, true
	case errors.As(err, &other):
		return other.at, true
	}
	return yamltree.Place{}, false
}

// located is an error about what the spec names at a place.
type located struct {
	file string
	at   yamltree.Place
	err  error
}

// Error returns file:line:column and the error.
func (l *located) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", l.file, l.at.Line, l.at.Column, l.err)
}

// Unwrap returns the error without its place.
func (l *located) Unwrap() error { return l.err }

// ErrFolder is wrapped by errors about what is in a folder.
var ErrFolder = errors.New("the folder does not hold an experiment, or a file of the experiment is damaged")

// ErrNoPlan is wrapped by the error of a folder that has runs and no plan.
var ErrNoPlan = errors.New("plan.json is missing, though cells.log has runs")
