package yamltree

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

var kind = Kind{Name: "a file", Bytes: 1 << 10, Brackets: 10, Looks: "is lines"}

func TestFaults(t *testing.T) {
	for text, want := range map[string]Fault{
		"- 1\n":                   {Place{1, 1}, "a file is lines"},
		"a: 1\n---\nb: 2\n":       {Place{3, 2}, "the file has a second YAML document; a file is a single document"},
		strings.Repeat("[", 11):   {Place{}, "the file has 11 brackets, which is too many; a file is lines"},
		strings.Repeat("#", 1025): {Place{}, "the file has 1025 bytes, but a file has at most 1024"},
	} {
		if _, fault := kind.Mapping([]byte(text)); fault == nil || *fault != want {
			t.Errorf("%.20q: %+v, want %+v", text, fault, want)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "null\n"} {
		if n, fault := kind.Mapping([]byte(empty)); n != nil || fault != nil {
			t.Errorf("%q: %v, %+v", empty, n, fault)
		}
	}
}

// FuzzMapping: no bytes make it panic or take much memory, and a fault says why.
// TestLongPaths: a file with long paths of nodes is refused before the parser keeps them.
func TestLongPaths(t *testing.T) {
	long := Kind{Name: "a file", Bytes: 1 << 20, Brackets: 10_000, Looks: "is lines"}
	const n = 16 << 10
	for name, text := range map[string]string{
		"entries in entries": "a:\n  " + strings.Repeat("- ", n) + "b\n",
		"a long key":         strings.Repeat("k", n) + ":\n" + strings.Repeat("- a\n", n),
		"a long inner key":   "- " + strings.Repeat("k", n) + ":\n" + strings.Repeat("  - a\n", n),
		"a tag": strings.Repeat(" ", 9) + "!!str " + strings.Repeat("k", n) + ":\n" +
			strings.Repeat(strings.Repeat(" ", 9)+"- a\n", n),
		"a long key of flow": "{" + strings.Repeat("k", n) + ": [" + strings.Repeat("a, ", n) + "a]}\n",
		"a question":         "? " + strings.Repeat("k", n) + "\n:\n" + strings.Repeat("  - a\n", n),
		"brackets":           "a: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		allocs.AtMost(t, 64<<20, name, func() {
			if _, fault := long.Mapping([]byte(text)); fault == nil ||
				!strings.HasPrefix(fault.Reason, "the keys up to here are too long") {
				t.Errorf("%s: %+v", name, fault)
			}
		})
	}
	if _, fault := long.Mapping([]byte("methods:\n" +
		strings.Repeat("- {algorithm: rf, settings: {trees: 1}}\n- algorithm: rf\n  settings:\n    trees: 2\n",
			2000))); fault != nil {
		t.Errorf("a file without long paths: %+v", fault)
	}
}

func FuzzMapping(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [1, x]\n", "a:\n  b: c\n", "{a: &x 1, b: *x}", "a: |\n x\n", "---\n---\n", "\t"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 4<<10*len(b)+16<<20, "a file", func() {
			if n, fault := kind.Mapping(b); fault != nil && (n != nil || fault.Reason == "") {
				t.Fatalf("%q: %v, %+v", b, n, fault)
			}
		})
	})
}
