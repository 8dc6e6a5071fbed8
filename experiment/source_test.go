package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// TestCompare: results are of a spec, of an earlier text of it, or of another one.
func TestCompare(t *testing.T) {
	const text = "name: study\ndatasets: [a.csv]\nfolds: 3\nmethods: [aa-knn, {algorithm: rf, settings: {trees: 3}}]\n"
	parse := func(file, text string) *Spec {
		s, err := Parse(t.Context(), file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ran := parse("folder/study.yaml", text)
	results := &Layout{Table: &result.Table{Spec: ran.identity()}, Text: ran.Source}
	for _, c := range []struct {
		file, text string
		want       Kinship
		says       string
	}{
		{"study.yaml", text, SameSpec, ""},
		{"moved/study.yaml", "# a comment\n" + strings.Replace(text, "[a.csv]", `["a.csv"]`, 1), SameSpec, ""},
		{"other.yaml", text, SameSpec, ""},
		{"study.yaml", text + "budget: 5m\n", SameSpec, ""},
		{"study.yaml", strings.Replace(text, "trees: 3", "trees: 4", 1), EditedSpec,
			"methods that have no results: rf trees=4; methods that are only in the results: rf trees=3"},
		{"study.yaml", strings.Replace(text, "folds: 3", "folds: 4", 1), EditedSpec, "datasets with other settings: a"},
		{"study.yaml", text + "seed: 2\nmeasures: [kl]\n", EditedSpec, "the key seed; the key measures"},
		{"other.yaml", text + "seed: 2\n", OtherSpec, "the key seed"},
		{"study.yaml", strings.Replace(text, "a.csv", "b.csv", 1), OtherSpec,
			"datasets that have no results: b; datasets that are only in the results: a"},
		{"study.yaml", "name: study\ndatasets: [a.csv]\nmethods: [ldlf]\n", OtherSpec, "methods that have no results: ldlf"},
	} {
		kinship, changes := parse(c.file, c.text).Compare(results)
		if kinship != c.want || !strings.Contains(strings.Join(changes, "; "), c.says) {
			t.Errorf("%s, %q: %v, %q; want %v, %q", c.file, c.text, kinship, changes, c.want, c.says)
		}
	}
}

// layoutOf plans a spec on a set of so many rows, in two groups.
func layoutOf(t *testing.T, s *Spec, rows int) *Layout {
	t.Helper()
	m, _ := datatest.Artificial(t, rows)
	m.Groups = &dataset.Groups{Names: []string{"first", "second"}}
	groups := make([]uint16, rows)
	for row := range groups {
		groups[row] = uint16(row % 2)
	}
	var plans []*Plan
	for i := range s.Datasets {
		p, err := NewPlan(t.Context(), s, &s.Datasets[i], &Data{Manifest: m, Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	l, err := NewLayout(s, plans, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSameRuns: methods and datasets whose runs have the same keys are one, however they are written.
func TestSameRuns(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte(`name: s
datasets: [a.csv, {file: copy.csv, name: b}, {file: a.csv, name: c, folds: 3}]
folds: 2
methods:
  - {algorithm: aa-knn, grid: {k: [3, 03, "003", 5]}}
  - structrf
  - {algorithm: structrf, name: paper, preset: paper}
  - {algorithm: structrf, grid: {trees: [200, 51]}}
  - ranking
  - {algorithm: ranking, name: again}
  - {algorithm: aa-knn, name: scaled, settings: {k: 3, scaling: standard}}
  - {algorithm: aa-knn, name: paper k, preset: paper, settings: {k: "3", scaling: standard}}
  - {algorithm: aa-knn, name: raw, preset: paper, settings: {k: 3}}
  - {algorithm: sa-bfgs, name: decay, settings: {l2: 0.01}}
  - {algorithm: sa-bfgs, name: spelled, preset: auto, settings: {l2: 1e-2}}
  - {algorithm: aa-knn, name: best, grid: {k: [3, 4]}, choose: {inner: 2}}
  - {algorithm: aa-knn, name: best spelled, grid: {k: [3, 04], scaling: standard}, choose: {inner: 2}}
  - {algorithm: aa-knn, name: best of others, grid: {k: [3, 5]}, choose: {inner: 2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := layoutOf(t, s, 60)
	same := make(map[string]string)
	for _, r := range l.Table.Methods {
		same[r.Name] = r.Same
	}
	for row, want := range map[string]string{
		"aa-knn k=3": "", "aa-knn k=03": "aa-knn k=3", "aa-knn k=003": "aa-knn k=3", "aa-knn k=5": "", "structrf": "",
		"structrf trees=200": "structrf", "structrf trees=51": "",
		"ranking": "", "again": "", // neither has a run
		"scaled": "aa-knn k=3", "paper k": "aa-knn k=3", "raw": "", // dense features are standardised by the preset auto
		"decay": "", "spelled": "decay", "best": "", "best spelled": "best", "best of others": "",
	} {
		if got, ok := same[row]; !ok || got != want {
			t.Errorf("method %s is the same as %q, want %q", row, got, want)
		}
	}
	if a, b, c := l.Table.Datasets[0].Same, l.Table.Datasets[1].Same, l.Table.Datasets[2].Same; a != "" ||
		b != "a" || c != "" {
		t.Errorf("datasets are the same as %q, %q and %q", a, b, c)
	}
}

// TestDivisions: folds of a file and of groups are the same in each repeat, folds of one row are those of any seed, and
// other folds are divided anew.
func TestDivisions(t *testing.T) {
	for _, c := range []struct {
		folds string
		want  []int
	}{
		{"{k: 2, repeats: 2}", nil},
		{"{k: 20, repeats: 2}", []int{}},
		{"{sklearn: 20, seed: 4, repeats: 2}", []int{}},
		{"{sklearn: 2, seed: 4, repeats: 2}", nil},
		{"{groups: true, repeats: 3}", []int{0, 1, 0, 1, 0, 1}},
		{"{groups: true}", nil},
	} {
		s, err := Parse(t.Context(), "s.yaml", []byte("name: s\ndatasets: [a.csv]\nfolds: "+c.folds+"\nmethods: [aa-knn]\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := layoutOf(t, s, 20).Table.Datasets[0].Divisions
		if c.want == nil && got != nil || len(c.want) > 0 && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.folds, got, c.want)
		}
		if c.want != nil && len(c.want) == 0 && (len(got) != 40 || slices.Max(got) != 19) {
			t.Errorf("%s: %v, want each method twice", c.folds, got)
		}
	}
}
