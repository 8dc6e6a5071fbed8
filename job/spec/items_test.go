package spec

import (
	"errors"
	"strings"
	"testing"
)

// TestItems: what a list of items is as the text of a setting.
func TestItems(t *testing.T) {
	const head = "algorithm: ensemble\n"
	for text, want := range map[string]string{
		"members:\n  - structrf\n  - ldlf\n":                                        "structrf,ldlf",
		"members: [structrf, ldlf]\n":                                               "structrf,ldlf",
		"members:\n  - algorithm: structrf\n    trees: 7\n    depth: 3\n  - ldlf\n": "structrf:trees=7:depth=3,ldlf",
		"members:\n  - {trees: 7, algorithm: structrf}\n  - algorithm: ldlf\n":      "structrf:trees=7,ldlf",
		"members: structrf:trees=7,ldlf\n":                                          "structrf:trees=7,ldlf",
	} {
		f, err := Parse("s.yaml", []byte(head+strings.ReplaceAll(text, "depth", "max_depth")), "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, want := f.Set["members"], strings.ReplaceAll(want, "depth", "max_depth"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestItemsRefused: errors name the place and say what would be right.
func TestItemsRefused(t *testing.T) {
	for _, c := range []struct{ text, place, want string }{
		{"algorithm: ldlf\ntrees: [1, 2]\n", "2:", "trees"},
		{"algorithm: ensemble\nmembers: []\n", "2:", "the list is empty"},
		{"algorithm: ensemble\nmembers:\n  - trees: 7\n", "3:", "must have the key algorithm"},
		{"algorithm: ensemble\nmembers:\n  - [ldlf]\n", "3:", "want a name"},
		{"algorithm: ensemble\nmembers:\n  - algorithm: ldlf\n    trees: [1]\n", "4:", "trees"},
		{"algorithm: ensemble\nmembers:\n  - {trees: 7, trees: 8, algorithm: ldlf}\n", "3:", "trees"},
		{"algorithm: ensemble\nmembers:\n  - ldlf\n  - nothing\n", "3:", "nothing"},
	} {
		_, err := Parse("s.yaml", []byte(c.text), "")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "s.yaml:"+c.place) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one at %s with %q", c.text, err, c.place, c.want)
		}
	}
}
