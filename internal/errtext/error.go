package errtext

import (
	"errors"
	"strings"
)

// Code is what an error is about, in a short name that does not change.
type Code string

// The codes.
const (
	WrongOption   Code = "wrong-option"   // an option has a value that is not allowed, is missing, or excludes another
	UnknownOption Code = "unknown-option" // a command line has an unknown option, or lacks one
	WrongSetting  Code = "wrong-setting"  // a hyperparameter has a value that is not allowed
	WrongSpec     Code = "wrong-spec"     // a key or a value of a spec is not allowed
	WrongRow      Code = "wrong-row"      // a row or a column of data cannot be used
	WrongData     Code = "wrong-data"     // a data file is damaged, or does not fit
	AmbiguousData Code = "ambiguous-data" // a data file can be read in more than one way
	NoAccess      Code = "no-access"      // a certificate, a token or TLS is missing
	ClusterLimit  Code = "cluster-limit"  // a limit of the cluster is reached
	WrongRequest  Code = "wrong-request"  // what was asked for is not possible
)

// Codes lists all codes.
func Codes() []Code {
	return []Code{WrongOption, UnknownOption, WrongSetting, WrongSpec, WrongRow, WrongData, AmbiguousData, NoAccess, ClusterLimit, WrongRequest}
}

// Error is an error with a form.
type Error struct {
	code  Code
	text  Text
	wraps []error
}

// Errorf returns an error with a text as of Sprintf. It wraps the arguments that are errors.
func Errorf(code Code, format string, args ...any) error {
	e := &Error{code: code, text: Sprintf(format, args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.wraps = append(e.wraps, err)
		}
	}
	return e
}

// Error returns the text with flags in its places.
func (e *Error) Error() string { return e.text.String() }

// Unwrap returns the wrapped errors.
func (e *Error) Unwrap() []error { return e.wraps }

// Formed returns the code and the text.
func (e *Error) Formed() (Code, Text) { return e.code, e.text }

// Formed is an error with a code and with a text that Error returns with flags in its places.
type Formed interface {
	error
	Formed() (Code, Text)
}

// Form is an error in JSON.
type Form struct {
	Code Code `json:"code"`
	// Parameter is the option or the hyperparameter that the text begins with, and Value is its value.
	Parameter string `json:"parameter,omitempty"`
	Value     string `json:"value,omitempty"`
	Text      []Part `json:"text"`
}

// Of returns the form of an error that a program shows as text, or nil if no error in its tree has a form.
func Of(text string, err error) *Form {
	code, in := Code(""), Within(text, err)
	walk(err, func(one Formed) bool {
		if code == "" {
			code, _ = one.Formed()
		}
		return false
	})
	if code == "" {
		return nil
	}
	return NewForm(code, in)
}

// NewForm returns the form of a text.
func NewForm(code Code, text Text) *Form {
	f := &Form{Code: code, Text: text.Parts()}
	if len(f.Text) > 0 && f.Text[0].HasName {
		first := f.Text[0]
		f.Parameter, f.Value = first.Option, first.Value
		if first.Option == "set" {
			f.Parameter, f.Value, _ = strings.Cut(first.Value, "=")
		}
	}
	return f
}

// Whole returns the text of a form.
func (f *Form) Whole() Text {
	var b strings.Builder
	for _, p := range f.Text {
		b.WriteString(string(p.text()))
	}
	return Text(b.String())
}

// Within returns a text that contains the texts of the errors in the tree of err. It has their places.
func Within(text string, err error) Text {
	out := clean(text)
	walk(err, func(one Formed) bool {
		_, in := one.Formed()
		before, after, found := strings.Cut(out, in.String())
		if found && in.hasPlaces() {
			out = before + string(in) + after
		}
		return !found
	})
	return Text(out)
}

// walk calls f with the errors of a tree that have a form. If f returns true, walk also calls it with what the error wraps.
func walk(err error, f func(Formed) bool) {
	if err == nil {
		return
	}
	if one, ok := err.(Formed); ok && !f(one) {
		return
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			walk(inner, f)
		}
	}
}

// As reports whether the tree of err has an error with this code.
func As(err error, code Code) bool {
	var one Formed
	if !errors.As(err, &one) {
		return false
	}
	found, _ := one.Formed()
	return found == code
}
