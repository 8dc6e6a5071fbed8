package protocol

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The tag bound of a message's field says which values Decode accepts:
//
//	bound:"1..4096"    numbers from 1 to 4096; of a list of numbers, each number
//	bound:"..64"       texts of at most 64 bytes, lists and maps of at most 64 elements
//	bound:"name"       texts that CheckID accepts, and the empty text
//	bound:"digest"     texts of 64 hexadecimal digits; of a list, each text
//	bound:"finite"     floating-point numbers that are neither NaN nor infinite
//	bound:"checked"    types with a method Check; of a list, each element
//	bound:"any"        all values: receivers only compare the value, or count only bytes that exist
//
// Several bounds are separated by spaces. Fields of structs of this package have bounds of their own. PROTOCOL.md has
// a table of all fields, which TestBounds writes.

// Bounds of fields that other packages use as well.
const (
	// MaxCount bounds counts: float64 holds them all.
	MaxCount = 1 << 53
	// MaxBlob is the greatest blob, in bytes.
	MaxBlob = 64 << 30
	// MaxCompute bounds how long a worker says that it computed a task.
	MaxCompute time.Duration = 30 * 24 * time.Hour
	// MaxSlots is the greatest number of tasks that a worker computes at once.
	MaxSlots = 4096
	// MaxShown is the greatest length, in bytes, of what a worker says of its machine: its host and its addresses.
	MaxShown = 256
)

// ErrPanic is wrapped by the error of Read if decoding panicked.
var ErrPanic = errors.New("decoding panicked")

// Read decodes a message and checks the range of each field. The error wraps ErrMessage. If decoding panics, the error
// wraps ErrPanic as well, and its text has the stack.
func Read(m interface{ Decode(b []byte) error }, b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v\n%s", ErrMessage, ErrPanic, p, debug.Stack())
		}
	}()
	return m.Decode(b)
}

// checker is a type with the bound "checked".
type checker interface{ Check() error }

// A rule checks a field of a message.
type rule struct {
	path   string // such as Resume.Rounds
	index  []int  // of reflect.Value.FieldByIndex
	bounds string // the tag
	checks []func(reflect.Value) error
}

// rulesOf returns the rules of the fields of a message's type, in order.
var rulesOf = func() func(reflect.Type) []rule {
	var known sync.Map // by type
	return func(t reflect.Type) []rule {
		if rules, ok := known.Load(t); ok {
			return rules.([]rule)
		}
		var rules []rule
		appendRules(&rules, t, "", nil)
		known.Store(t, rules)
		return rules
	}
}()

// appendRules appends the rules of the fields of a struct. A field without a bound panics: TestBounds finds it.
func appendRules(rules *[]rule, t reflect.Type, prefix string, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		path, index := prefix+f.Name, append(at[:len(at):len(at)], i)
		tag := f.Tag.Get("bound")
		if tag == "" && f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == reflect.TypeFor[rule]().PkgPath() {
			appendRules(rules, f.Type, path+".", index)
			continue
		}
		if tag == "" {
			panic(fmt.Sprintf("protocol: the field %s of %v has no bound", path, t))
		}
		r := rule{path: path, index: index, bounds: tag}
		for _, bound := range strings.Fields(tag) {
			if check := checkOf(bound, f.Type); check != nil {
				r.checks = append(r.checks, check)
			}
		}
		*rules = append(*rules, r)
	}
}

// checkOf returns the check of a bound for values of a type; nil: all values are accepted.
func checkOf(bound string, t reflect.Type) func(reflect.Value) error {
	low, high, isRange := strings.Cut(bound, "..")
	switch {
	case bound == "any":
		return nil
	case isRange && low == "":
		most, err := strconv.Atoi(high)
		if err != nil {
			panic(err)
		}
		return func(v reflect.Value) error {
			if v.Len() > most {
				return fmt.Errorf("its length is %d, want at most %d", v.Len(), most)
			}
			return nil
		}
	}
	var one func(v reflect.Value) error
	element := t
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		element = t.Elem()
	}
	switch {
	case isRange:
		one = rangeOf(low, high, element)
	case bound == "name":
		one = func(v reflect.Value) error {
			if v.Len() == 0 {
				return nil
			}
			return CheckID(v.String())
		}
	case bound == "digest":
		one = func(v reflect.Value) error {
			if text := v.String(); len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
				return fmt.Errorf("want 64 hexadecimal digits, got %.80q", text)
			}
			return nil
		}
	case bound == "finite":
		one = func(v reflect.Value) error {
			if x := v.Float(); x-x != 0 {
				return fmt.Errorf("%v is not a finite number", x)
			}
			return nil
		}
	case bound == "checked":
		one = func(v reflect.Value) error {
			if v.Kind() == reflect.Pointer && v.IsNil() {
				return errors.New("it is missing")
			}
			return v.Interface().(checker).Check()
		}
	default:
		panic(fmt.Sprintf("protocol: unknown bound %q", bound))
	}
	if element == t {
		return one
	}
	return func(v reflect.Value) error {
		for i := range v.Len() {
			if err := one(v.Index(i)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
}

// rangeOf returns the check of numbers of a type from low to high. If the type is a struct, it checks each of its numbers.
func rangeOf(low, high string, t reflect.Type) func(reflect.Value) error {
	switch t.Kind() {
	case reflect.Struct:
		var fields []func(reflect.Value) error
		for i := range t.NumField() {
			fields = append(fields, rangeOf(low, high, t.Field(i).Type))
		}
		return func(v reflect.Value) error {
			for i, check := range fields {
				if err := check(v.Field(i)); err != nil {
					return fmt.Errorf("%s: %w", t.Field(i).Name, err)
				}
			}
			return nil
		}
	case reflect.Float64:
		least, most := number(low, strconv.ParseFloat), number(high, strconv.ParseFloat)
		return func(v reflect.Value) error {
			if x := v.Float(); !(x >= least && x <= most) {
				return fmt.Errorf("want a number from %s to %s, got %v", low, high, x)
			}
			return nil
		}
	case reflect.Int, reflect.Int64:
		parse := func(text string, bits int) (int64, error) { return strconv.ParseInt(text, 10, bits) }
		least, most := number(low, parse), number(high, parse)
		return func(v reflect.Value) error {
			if n := v.Int(); n < least || n > most {
				return fmt.Errorf("want a number from %s to %s, got %d", low, high, n)
			}
			return nil
		}
	}
	parse := func(text string, bits int) (uint64, error) { return strconv.ParseUint(text, 10, bits) }
	least, most := number(low, parse), number(high, parse)
	return func(v reflect.Value) error {
		if n := v.Uint(); n < least || n > most {
			return fmt.Errorf("want a number from %s to %s, got %d", low, high, n)
		}
		return nil
	}
}

// number parses a number of a tag.
func number[T any](text string, parse func(string, int) (T, error)) T {
	n, err := parse(text, 64)
	if err != nil {
		panic(fmt.Sprintf("protocol: %q in a bound is not a number of its field", text))
	}
	return n
}

// bounded returns err, or an error that wraps ErrMessage if a field of m, a pointer to a message, is out of its bound.
func bounded(m any, err error) error {
	if err != nil {
		return err
	}
	v := reflect.ValueOf(m).Elem()
	rules := rulesOf(v.Type())
	for i := range rules {
		r := &rules[i]
		for _, check := range r.checks {
			if err := check(v.FieldByIndex(r.index)); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrMessage, r.path, err)
			}
		}
	}
	return nil
}
