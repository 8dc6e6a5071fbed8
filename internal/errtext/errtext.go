// Package errtext has the texts of errors and notes that more than one program shows. Such a text names options and
// values in places. A command spells a place as a flag, and the Python library spells it as a keyword argument.
package errtext

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/shellword"
)

// Text is a text with places. String spells it as the command line does. A constant without places is a Text, too.
type Text string

// The marks of a place in a Text. A place is the begin mark, the kind, a name, the middle mark, a value, and the end
// mark. Formatted arguments lose these characters, so they contain no places.
const (
	begin, middle, end = '\x02', '\x1f', '\x03'

	kindName    = 'n' // the name of an option
	kindBoth    = 'b' // the name of an option and its value
	kindValue   = 'v' // a value of an option, without the name
	kindCommand = 'c' // a command
	kindKey     = 'N' // kindName, but the place is spelled as a key of a spec
	kindKeyBoth = 'B' // kindBoth, but the place is spelled as a key of a spec
)

// Part is a part of a text in JSON: a string, or an object for a place.
type Part struct {
	Literal string // if no other field is set

	Option  string // name as the command line has it, such as label-columns; set is a hyperparameter
	Value   string
	HasName bool   // false for a value without the name of its option
	HasVal  bool   // false for a name without value
	Key     bool   // true if the command line spells the place as a key of a spec: missing: drop
	Command string // without the name of the program, such as dataset import
}

// place is a Part in JSON.
type place struct {
	Option  string  `json:"option,omitempty"`
	ValueOf *string `json:"value_of,omitempty"`
	Value   *string `json:"value,omitempty"`
	Key     bool    `json:"key,omitempty"`
	Command string  `json:"command,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p Part) MarshalJSON() ([]byte, error) {
	switch {
	case p.Command != "":
		return json.Marshal(place{Command: p.Command})
	case p.HasName && p.HasVal:
		return json.Marshal(place{Option: p.Option, Value: &p.Value, Key: p.Key})
	case p.HasName:
		return json.Marshal(place{Option: p.Option, Key: p.Key})
	case p.HasVal:
		return json.Marshal(place{ValueOf: &p.Option, Value: &p.Value})
	}
	return json.Marshal(p.Literal)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Part) UnmarshalJSON(b []byte) error {
	*p = Part{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.Literal)
	}
	var at place
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	p.Option, p.HasName, p.HasVal, p.Command = at.Option, at.Option != "", at.Value != nil, at.Command
	p.Key = p.HasName && at.Key
	if at.ValueOf != nil {
		p.Option = *at.ValueOf
	}
	if at.Value != nil {
		p.Value = *at.Value
	}
	return nil
}

// Sprintf returns a formatted text with places:
//
//	{missing}         the name of an option: --missing
//	{missing=drop}    an option with a value: --missing drop
//	{range:0:69}      a value of an option, without its name: 0:69
//	{:true}           a value that belongs to no option: true
//	{set=bias}        a hyperparameter: --set bias
//	{coppice predict} a command: coppice predict
//	{key missing=skip} a key of a spec with a value: missing: skip
//
// A place may contain verbs, and {{ and }} are braces. An argument that is a Text or an error, or has a method Text,
// keeps its places; all others have none. %w is %v.
func Sprintf(format string, args ...any) Text {
	if false {
		_ = fmt.Errorf(format, args...) // so that go vet checks calls of Sprintf
	}
	format = strings.ReplaceAll(placed(format), "%w", "%v")
	own := make([]any, len(args))
	for i, arg := range args {
		own[i] = argument{arg}
	}
	return Text(fmt.Sprintf(format, own...))
}

// Option returns an option as a text: its name, and its value unless that is empty.
func Option(name, value string) Text {
	p := Part{Option: name, Value: clean(value), HasName: true, HasVal: value != ""}
	return p.text()
}

// placed returns a format with marks instead of braces.
func placed(format string) string {
	if !strings.ContainsAny(format, "{}") {
		return format
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		switch c := format[i]; {
		case (c == '{' || c == '}') && i+1 < len(format) && format[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '{':
			inner, _, closed := strings.Cut(format[i+1:], "}")
			if !closed {
				panic(fmt.Sprintf("errtext: a place of %q does not end", format))
			}
			b.WriteString(string(parsePlace(inner).text()))
			i += len(inner) + 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// parsePlace returns the place between two braces of a format.
func parsePlace(inner string) Part {
	if command, ok := strings.CutPrefix(inner, "coppice "); ok {
		return Part{Command: command}
	}
	inner, key := strings.CutPrefix(inner, "key ")
	at := strings.IndexAny(inner, "=:")
	if at < 0 {
		return Part{Option: inner, HasName: true, Key: key}
	}
	return Part{Option: inner[:at], Value: inner[at+1:], HasName: inner[at] == '=', HasVal: true, Key: key}
}

// text returns a place, or a literal, as a Text.
func (p Part) text() Text {
	kind, name := kindValue, p.Option
	switch {
	case p.Command != "":
		kind, name = kindCommand, p.Command
	case p.HasName && p.HasVal && p.Key:
		kind = kindKeyBoth
	case p.HasName && p.HasVal:
		kind = kindBoth
	case p.HasName && p.Key:
		kind = kindKey
	case p.HasName:
		kind = kindName
	case !p.HasVal:
		return Text(clean(p.Literal))
	}
	return Text(string(begin) + string(kind) + name + string(middle) + p.Value + string(end))
}

// argument is an argument of Sprintf.
type argument struct{ v any }

// Format implements fmt.Formatter.
func (a argument) Format(f fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(f, verb), a.v)
	switch v := a.v.(type) {
	case Text:
		if verb == 's' || verb == 'v' {
			text = string(v)
		}
	case interface{ Text() Text }:
		text = string(v.Text())
	case error:
		text = string(Within(text, v))
	default:
		text = clean(text)
	}
	fmt.Fprint(f, text)
}

// clean returns a text without marks.
func clean(text string) string {
	if !strings.ContainsAny(text, string([]rune{begin, middle, end})) {
		return text
	}
	return strings.NewReplacer(string(begin), "", string(middle), "", string(end), "").Replace(text)
}

// Parts returns the literals and the places of a text in their order.
func (t Text) Parts() []Part {
	var parts []Part
	literal := func(text string) {
		if text = clean(text); text != "" {
			parts = append(parts, Part{Literal: text})
		}
	}
	rest := string(t)
	for {
		before, after, found := strings.Cut(rest, string(begin))
		literal(before)
		if !found {
			return parts
		}
		inner, next, ends := strings.Cut(after, string(end))
		name, value, whole := strings.Cut(inner, string(middle))
		if !ends || !whole || name == "" { // not made by this package
			rest = clean(inner) + next
			continue
		}
		kind, name := name[0], name[1:]
		both, key := kind == kindBoth || kind == kindKeyBoth, kind == kindKey || kind == kindKeyBoth
		p := Part{Option: name, Value: value, HasName: both || key || kind == kindName, HasVal: both ||
			kind == kindValue, Key: key}
		if kind == kindCommand {
			p = Part{Command: name}
		}
		parts, rest = append(parts, p), next
	}
}

// String returns the text with flags in its places.
func (t Text) String() string {
	if !strings.ContainsRune(string(t), begin) {
		return string(t)
	}
	var b strings.Builder
	for _, p := range t.Parts() {
		switch {
		case p.Command != "":
			b.WriteString("coppice " + p.Command)
		case p.Key:
			b.WriteString(p.key())
		case p.HasName && p.HasVal:
			b.WriteString("--" + p.Option + " " + word(p.Value))
		case p.HasName:
			b.WriteString("--" + p.Option)
		default:
			b.WriteString(p.Literal + p.Value)
		}
	}
	return b.String()
}

// key returns a place as a key of a spec, and its value as YAML has it.
func (p Part) key() string {
	name := strings.ReplaceAll(p.Option, "-", "_")
	switch {
	case !p.HasVal:
		return name
	case plainScalar.MatchString(p.Value):
		return name + ": " + p.Value
	}
	return name + ": " + strconv.Quote(p.Value)
}

// plainScalar matches values that need no quotes in YAML. It does not match all of them.
var plainScalar = regexp.MustCompile(`^[\pL\pN_-](?:[\pL\pN_.:,/-]*[\pL\pN_.])?$`)

// Keys returns the text with places that String spells as keys of a spec, if has returns true for the key.
func (t Text) Keys(has func(key string) bool) Text {
	var b strings.Builder
	for _, p := range t.Parts() {
		p.Key = p.Key || p.HasName && has(strings.ReplaceAll(p.Option, "-", "_"))
		b.WriteString(string(p.text()))
	}
	return Text(b.String())
}

// word writes a value as a shell reads it, or, if it is not printable, as Go writes it.
func word(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return shellword.Quote(value)
}

// hasPlaces reports whether a text has places.
func (t Text) hasPlaces() bool { return strings.ContainsRune(string(t), begin) }

// Join joins texts with a separator that has no places.
func Join(list []Text, separator string) Text {
	var b strings.Builder
	for i, text := range list {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(string(text))
	}
	return Text(b.String())
}

// Literals returns texts without places.
func Literals(list []string) (texts []Text) {
	for _, text := range list {
		texts = append(texts, Text(clean(text)))
	}
	return texts
}

// Strings returns texts as the command line spells them.
func Strings(texts []Text) (list []string) {
	for _, text := range texts {
		list = append(list, text.String())
	}
	return list
}

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
	WrongRequest  Code = "wrong-request"  // what was asked for is not possible
)

// Codes lists all codes.
func Codes() []Code {
	return []Code{WrongOption, UnknownOption, WrongSetting, WrongSpec, WrongRow, WrongData, AmbiguousData, NoAccess,
		WrongRequest}
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
	if len(f.Text) == 0 || f.Text[0].Option == "" {
		return f
	}
	first := f.Text[0]
	f.Parameter, f.Value = first.Option, first.Value
	if first.Option == "set" {
		f.Parameter, f.Value, _ = strings.Cut(first.Value, "=")
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

// walk calls f with the errors of a tree that have a form. If f returns true, walk also calls it with what the error
// wraps.
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
