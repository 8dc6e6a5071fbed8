package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	got, err := Parse("c.yaml", []byte("# a comment\nserver: [a:1, b:2]\noutput: json\ncoordinator:\n  max-queue: 5\n  "+
		"dir: \"/x y\"\njob:\n  list: {output: text}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{
		{Name: "server", Place: at(2, 1), List: []string{"a:1", "b:2"}},
		{Name: "output", Place: at(3, 1), Value: "json"},
		{Name: "coordinator", Place: at(4, 1), Section: &Section{File: "c.yaml", Keys: []Key{
			{Name: "max-queue", Place: at(5, 3), Value: "5"}, {Name: "dir", Place: at(6, 3), Value: "/x y"},
		}}},
		{Name: "job", Place: at(7, 1), Section: &Section{File: "c.yaml", Keys: []Key{
			{Name: "list", Place: at(8, 3), Section: &Section{File: "c.yaml",
				Keys: []Key{{Name: "output", Place: at(8, 10), Value: "text"}}}},
		}}},
	}
	if diff := cmp.Diff(want, got.Keys, cmpopts.IgnoreFields(Key{}, "ValueAt")); diff != "" {
		t.Error(diff)
	}
	if got.Keys[1].ValueAt != at(3, 9) {
		t.Errorf("the value stands at %v", got.Keys[1].ValueAt)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if s, err := Parse("c", []byte(empty)); err != nil || len(s.Keys) > 0 {
			t.Errorf("%q: %v, %v", empty, s, err)
		}
	}
}

// Each fault is told on one line with its place.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\na: 2\n": "c:2:1: mapping key \"a\" already defined", "a:\n": "c:1:1: a: want a number",
		"- 1\n":      "c:1:1: a configuration consists of lines",
		"a: [[1]]\n": "c:1:5: a: a list can hold", "a: 1\n---\nb: 2\n": "c:3:2: the file has a second YAML document",
		"1: 2\n":                     "c:1:1: every key must be a plain word",
		"a: {b: {c: {d: {e: 1}}}}\n": "the section is nested deeper than any command", "a: *x\n": "c:1:", "a: [\n": "c:1:",
		strings.Repeat("x", MaxBytes+1): "at most 65536",
		strings.Repeat("[", 300):        "brackets",
	} {
		_, err := Parse("c", []byte(text))
		var fault *Error
		if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "c:") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"server: [a:1]\njob:\n  list:\n    output: json\n", "a: &x 1\nb: *x\n", "{a: {b: {}}}",
		"a: |\n  x\n", "? a\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse("c", b)
		var fault *Error
		if err != nil && !errors.As(err, &fault) || err == nil && s == nil {
			t.Errorf("%v, %v", s, err)
		}
	})
}

func at(line, column int) Place { return Place{Line: line, Column: column} }
