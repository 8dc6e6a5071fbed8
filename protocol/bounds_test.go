package protocol

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// fielded returns the messages of codecs that processes exchange, one of each type: entries of the log are not among
// them.
func fielded(t *testing.T) map[string]message {
	t.Helper()
	all := make(map[string]message)
	for _, c := range codecs() {
		typ := reflect.TypeOf(c.sample).Elem()
		if name, _, _ := strings.Cut(c.name, "/"); name != "entry" && name == typ.Name() && all[name] == nil {
			all[name] = c.empty()
			if err := all[name].Decode(c.sample.Append(nil)); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d messages: this looks at the wrong things", len(all))
	}
	return all
}

// TestBounds: each field of each message has a bound, and Decode refuses what is outside. With -update it writes the
// table of PROTOCOL.md.
func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString("| message | field | type | bound |\n| --- | --- | --- | --- |\n")
	refused := 0
	for _, c := range codecs() {
		m := fielded(t)[c.name]
		if m == nil {
			continue
		}
		typ := reflect.TypeOf(m).Elem()
		for _, r := range rulesOf(typ) {
			fmt.Fprintf(&b, "| %s | %s | %v | %s |\n", c.name, r.path, typ.FieldByIndex(r.index).Type, r.bounds)
			for _, wrong := range outside(t, typ.FieldByIndex(r.index).Type, r.bounds) {
				m := fielded(t)[c.name]
				field := reflect.ValueOf(m).Elem().FieldByIndex(r.index)
				field.Set(wrong)
				encoded, got := encode(m), c.empty()
				if encoded == nil {
					continue
				}
				err := got.Decode(encoded)
				if err == nil && !reflect.DeepEqual(reflect.ValueOf(got).Elem().FieldByIndex(r.index).Interface(),
					wrong.Interface()) {
					continue // no bytes have the value
				}
				refused++
				if !errors.Is(err, ErrMessage) {
					t.Errorf("%s with %s = %.60v: %v", c.name, r.path, wrong, err)
				}
			}
		}
	}
	if refused < 80 {
		t.Errorf("only %d values outside of bounds were tried", refused)
	}
	const page, first, last = "PROTOCOL.md", "<!-- bounds from the code -->\n", "<!-- end of bounds -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), first)
	_, tail, also := strings.Cut(rest, last)
	if !ok || !also {
		t.Fatalf("%s has no lines %q and %q", page, first, last)
	}
	if want := head + first + "\n" + b.String() + "\n" + last + tail; want != string(text) && !*update {
		t.Errorf("the table of %s differs from the code; go test ./protocol -update writes it", page)
	} else if want != string(text) {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// encode returns the bytes of a message; nil: encoding panics, or JSON cannot have a value of it.
func encode(m message) (b []byte) {
	defer func() {
		if recover() != nil {
			b = nil
		}
	}()
	return m.Append(nil)
}

// outside returns values of a type that are outside of a bound.
func outside(t *testing.T, typ reflect.Type, bounds string) (all []reflect.Value) {
	t.Helper()
	element, list := typ, typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array
	if list {
		element = typ.Elem()
	}
	wrap := func(v reflect.Value) reflect.Value {
		if !list {
			return v
		}
		all := reflect.New(typ).Elem()
		if typ.Kind() == reflect.Slice {
			all.Set(reflect.MakeSlice(typ, 1, 1))
		}
		all.Index(0).Set(v)
		return all
	}
	for _, bound := range strings.Fields(bounds) {
		low, high, isRange := strings.Cut(bound, "..")
		switch {
		case isRange && low == "":
			n, err := strconv.Atoi(high)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case typ.Kind() == reflect.String:
				all = append(all, reflect.ValueOf(strings.Repeat("x", n+1)).Convert(typ))
			case typ.Kind() == reflect.Map:
				m := reflect.MakeMap(typ)
				for i := range n + 1 {
					m.SetMapIndex(reflect.ValueOf(strconv.Itoa(i)), reflect.ValueOf(""))
				}
				all = append(all, m)
			default:
				all = append(all, reflect.MakeSlice(typ, n+1, n+1))
			}
		case isRange && element.Kind() == reflect.Struct:
			for i := range element.NumField() {
				for _, wrong := range outside(t, element.Field(i).Type, bound) {
					v := reflect.New(element).Elem()
					v.Field(i).Set(wrong)
					all = append(all, v)
				}
			}
		case isRange:
			for _, v := range beyond(t, element, low, high) {
				all = append(all, wrap(v))
			}
		case bound == "name":
			all = append(all, wrap(reflect.ValueOf("a b")), wrap(reflect.ValueOf(strings.Repeat("x", 65))))
		case bound == "digest":
			all = append(all, wrap(reflect.ValueOf(strings.Repeat("x", 64))), wrap(reflect.ValueOf("0")))
		case bound == "finite":
			all = append(all, reflect.ValueOf(math.NaN()), reflect.ValueOf(math.Inf(-1)))
		case bound == "checked":
			all = append(all, wrap(reflect.Zero(element)))
		}
	}
	return all
}

// beyond returns extreme numbers of a type that are outside of a range.
func beyond(t *testing.T, typ reflect.Type, low, high string) (all []reflect.Value) {
	t.Helper()
	for _, x := range []float64{math.Inf(-1), math.MinInt64, -1, 0, 1 << 31, 1 << 54, math.MaxInt64, math.MaxUint64,
		math.NaN(), math.Inf(1)} {
		v := reflect.New(typ).Elem()
		switch {
		case v.CanFloat():
			v.SetFloat(x)
		case x-x != 0:
			continue
		case v.CanInt() && x < math.MaxInt64:
			v.SetInt(int64(x))
		case v.CanInt():
			v.SetInt(math.MaxInt64)
		case x >= math.MaxUint64:
			v.SetUint(math.MaxUint64 >> (64 - typ.Bits()))
		case x < 0 || v.OverflowUint(uint64(x)):
			continue
		default:
			v.SetUint(uint64(x))
		}
		if !inside(t, v, low, high) {
			all = append(all, v)
		}
	}
	return all
}

// inside reports whether a number is in a range.
func inside(t *testing.T, v reflect.Value, low, high string) bool {
	t.Helper()
	least, errLow := strconv.ParseFloat(low, 64)
	most, errHigh := strconv.ParseFloat(high, 64)
	if errLow != nil || errHigh != nil {
		t.Fatalf("%q..%q is not a range", low, high)
	}
	x := 0.0
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanUint():
		x = float64(v.Uint())
	default:
		x = v.Float()
	}
	return x >= least && x <= most
}

// panicking is a message that cannot be decoded.
type panicking struct{ Reply }

func (*panicking) Decode([]byte) error { panic("out of range") }

// TestReadRecovers: a panic of a decoder is an error.
func TestReadRecovers(t *testing.T) {
	err := Read(&panicking{}, nil)
	if !errors.Is(err, ErrPanic) || !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), "bounds_test.go") {
		t.Errorf("error %v", err)
	}
}
