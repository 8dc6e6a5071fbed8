package param

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// TestItems: what is written is read, with whatever characters; spaces may stand between words.
func TestItems(t *testing.T) {
	items := []Item{{Name: "a"}, {Name: "b c", Set: []Pair{{"x", "1e-3"}, {"y", "1,2:3=4"}, {"", `"`}, {"ü", "\n"}}},
		{Name: "a"}}
	text := FormatItems(items)
	if want := `a,"b c":x=1e-3:y="1,2:3=4":""="\"":"\u00fc"="\n",a`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	back, err := ParseItems(text)
	if diff := cmp.Diff(items, back); diff != "" || err != nil {
		t.Errorf("error %v, %s", err, diff)
	}
	spaced, err := ParseItems(` a , "b" : x = 1 2 : y="3" ,c`)
	want := []Item{{Name: "a"}, {Name: "b", Set: []Pair{{"x", "1 2"}, {"y", "3"}}}, {Name: "c"}}
	if diff := cmp.Diff(want, spaced); diff != "" || err != nil {
		t.Errorf("error %v, %s", err, diff)
	}
	for text, want := range map[string]string{
		"": "is missing", "a,": "is missing", ",a": "is missing", "a:": "after a: a name", "a:x": "want KEY=VALUE",
		"a:x=":   "a: x: a name",
		`a:x="1`: `the closing quote is missing after "\"1"`, `a"b"`: "want a comma", `"a"b`: "want a comma",
		"a=1": "want a comma", `a\`: "want a comma",
	} {
		if _, err := ParseItems(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// FuzzItems: no text makes ParseItems panic, and what it takes has one text.
func FuzzItems(f *testing.F) {
	for _, text := range []string{"a,b", `a:x=1:"y"="\"",b`, `"`, "a:=,", "a\\"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var items []Item
		var err error
		allocs.AtMost(t, 512*len(text)+64<<10, "a list", func() { items, err = ParseItems(text) })
		if err != nil {
			return
		}
		back, err := ParseItems(FormatItems(items))
		if diff := cmp.Diff(items, back); diff != "" || err != nil {
			t.Fatalf("%q is written %q: error %v, %s", text, FormatItems(items), err, diff)
		}
	})
}
