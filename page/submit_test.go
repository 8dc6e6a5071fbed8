package page

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestFieldsOfForms: each key of every spec has one field. No hyperparameter has the name of another field.
func TestFieldsOfForms(t *testing.T) {
	for _, a := range spec.Choices() {
		names := map[string]int{"token": 1, "shared": 1, "check": 1, "like": 1, "assigned": 1, "overlap": 1, "shown": 1,
			"algorithm": 1, "dataset": 1}
		want := maps.Clone(names)
		want["audit"] = 1
		for _, p := range slices.Concat(spec.Common(), a.Params()) {
			want[p.Name] = 1
		}
		for _, g := range groupsOf(a, nil, nil) {
			for _, f := range slices.Concat(g.Fields, g.Seldom) {
				names[f.Name]++
			}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: number of fields (-want +got):\n%s", a.Name(), diff)
		}
	}
}

// TestAnother: another seed makes another name.
func TestAnother(t *testing.T) {
	for _, c := range [][4]string{{"", "", "2", ""}, {"7", "a", "8", "a-seed-8"}, {"8", "a-seed-8", "9", "a-seed-9"},
		{"18446744073709551615", "a", "0", "a-seed-0"}, {"1", strings.Repeat("a", 98), "2", ""}} {
		v := url.Values{"seed": {c[0]}, "name": {c[1]}}
		if another(v); v.Get("seed") != c[2] || v.Get("name") != c[3] {
			t.Errorf("%q: %v", c, v)
		}
	}
	if err := protocol.CheckName("a-seed-8"); err != nil {
		t.Error(err)
	}
}

// TestMarks: marks that would cover each other become one.
func TestMarks(t *testing.T) {
	var marks []mark
	for i, x := range []float64{0, 1, 2, 50, 99, 1000} {
		marks = append(marks, mark{X: x, Kind: "event", Text: "text " + string(rune('a'+i)), Label: string(rune('1' + i))})
	}
	c := newChart("t", "x", "y", []series{{X: []float64{0, 100}, Y: []float64{1, 2}}}, marks)
	var labels []string
	for _, m := range c.Marks {
		labels = append(labels, m.Label+": "+m.Text)
	}
	if diff := cmp.Diff([]string{"1-3: text a; text b; text c", "4: text d", "5-6: text e; text f"}, labels); diff != "" {
		t.Error(diff)
	}
}
