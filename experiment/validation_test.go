package experiment

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// validatedSet returns the manifest of 30 samples and, if own is true, of ten validation samples of a file.
func validatedSet(t *testing.T, own bool) *dataset.Manifest {
	t.Helper()
	l := &datasettest.Listed{Described: dataset.Info{Rows: 30, Features: 2, Labels: 2}}
	if own {
		l.Described.Rows, l.Described.Validation = 40, &dataset.Info{File: "v.csv", Rows: 10}
	}
	for i := range l.Described.Rows {
		l.Rows = append(l.Rows, dataset.Row{Number: i, Validation: i >= 30, Values: []float64{float64(i), 1},
			Labels: []float64{0.25, 0.75}})
	}
	m, _ := datatest.Build(t, l)
	return m
}

// planOf plans a spec on a manifest.
func planOf(t *testing.T, text string, m *dataset.Manifest) (*Spec, *Plan) {
	t.Helper()
	s, err := Parse(t.Context(), "s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// TestValidation: validation samples of a file change no fold, and are validation samples of all runs. Methods that do
// not use them are named, and the commands of their runs do not have the file.
func TestValidation(t *testing.T) {
	const methods = "\nmethods:\n  - ldlf\n  - aa-knn\n  - {algorithm: best, settings: {members: 'sa-bfgs,structrf'}}\n" +
		"  - {algorithm: structrf, grid: {trees: [1, 2]}, choose: {inner: 2}}\n" +
		"  - {algorithm: structrf, grid: {trees: [1, 2]}, choose: {validation: 0.2}, name: held}\n"
	for _, folds := range []string{"3", "{k: 3, repeats: 2}", "{k: 2, seed: 9, repeats: 2}", "{sklearn: 3, seed: 1}"} {
		text := "name: e\nfolds: " + folds + "\ndatasets: [{file: a.csv, validation: v.csv}]" + methods
		s, p := planOf(t, text, validatedSet(t, true))
		_, without := planOf(t, strings.Replace(text, ", validation: v.csv", "", 1), validatedSet(t, false))
		if want := []int{1, 3}; !slices.Equal(p.Unvalidated, want) || len(p.Refused) > 0 || without.Unvalidated != nil {
			t.Fatalf("methods %v and %v do not validate, %v are refused; want %v", p.Unvalidated, without.Unvalidated,
				p.Refused, want)
		}
		var roles [][]dataset.Roles
		take := func(of *Plan) func(int, round.Cell, *round.Job) error {
			return func(_ int, _ round.Cell, child *round.Job) error {
				all, err := child.Split.Assign(of.Manifest.Rows, of.Assigned)
				roles = append(roles, all)
				return err
			}
		}
		if err := pipeline.Cells(without.Job, take(without)); err != nil {
			t.Fatal(err)
		}
		before := len(roles)
		if err := pipeline.Cells(p.Job, take(p)); err != nil {
			t.Fatal(err)
		}
		if len(roles) != 2*before {
			t.Fatalf("folds %s: %d runs, without the file %d", folds, len(roles)-before, before)
		}
		for i, want := range roles[:before] {
			for row, got := range roles[before+i] {
				own := dataset.Train // but for tested samples
				switch {
				case row >= len(want):
					own = dataset.Validation
				case want[row] == dataset.Test:
					own = dataset.Test
				}
				if got != own {
					t.Fatalf("folds %s, run %d: sample %d has the role %v, want %v", folds, i, row, got, own)
				}
			}
		}
		l, err := NewLayout(s, []*Plan{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := l.Table.Datasets[0]; d.Rows != 30 || d.Validation != 10 || d.Folds != without.Folds {
			t.Errorf("the table has %+v", d)
		}
		if notes := l.Table.Notes(); len(notes) == 0 || !strings.Contains(notes[len(notes)-1], "do not use them: aa-knn, "+
			"structrf, chosen of 2.") {
			t.Errorf("notes %q", notes)
		}
		c, err := NewCommands(l, Sources{File: func(path string) string { return path }})
		if err != nil {
			t.Fatal(err)
		}
		for method := range s.Methods {
			line, err := c.Alone(&result.Run{Method: method})
			if uses := !slices.Contains(p.Unvalidated, method); err != nil ||
				strings.Contains(line, "--validation=v.csv") != uses {
				t.Errorf("method %d: %s, %v", method, line, err)
			}
		}
		there, err := NewCommands(l, Sources{Sets: []string{"set"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = there.Alone(&result.Run{Method: 1})
		datasettest.MustContain(t, err, "set has validation samples", "aa-knn does not use")
	}
}

// TestValidationRefused: validation samples are of a file, which is named.
func TestValidationRefused(t *testing.T) {
	for set, want := range map[string]string{
		"{dataset: a, validation: v.csv}": "validation applies only to a file",
		"{file: a.csv, validation: ''}":   "validation: want the path of a file",
	} {
		_, err := Parse(t.Context(), "s.yaml", []byte("name: e\nfolds: 2\nmethods: [ldlf]\ndatasets:\n  - "+set+"\n"))
		datasettest.MustContain(t, err, "s.yaml:5:", want)
	}
}

// TestBestMethod: a method of best has the runs and the settings of the ensemble with preset best. Reports have its
// hyperparameters, with the budget that the spec gives, and the hyperparameters of other methods.
func TestBestMethod(t *testing.T) {
	m, _ := datatest.Artificial(t, 60)
	s, p := planOf(t, "name: e\nfolds: 2\ndatasets: [a.csv]\nmethods:\n  - best\n  - {algorithm: ensemble, preset: best}\n"+
		"  - {algorithm: best, settings: {budget: 0.1}}\n  - {algorithm: ensemble, preset: best, settings: {budget: 0.1}, "+
		"name: few}\n  - sa-bfgs\n", m)
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, same := range []string{"", "best", "", "best budget=0.1", ""} {
		if got := l.Table.Methods[i]; got.Same != same {
			t.Errorf("method %s is the same as %q, want %q", got.Name, got.Same, same)
		}
	}
	if !slices.Equal(l.Keys[:2], l.Keys[2:4]) || !slices.Equal(l.Keys[4:6], l.Keys[6:8]) {
		t.Errorf("the runs of best and of the ensemble have the keys %q", l.Keys)
	}
	budgets := make(map[string]string)
	for _, h := range l.Table.Hyperparameters {
		for _, of := range h.Methods {
			budgets[h.Algorithm+" "+l.Table.Methods[of.Method].Name] = of.Values["budget"]
		}
	}
	if want := map[string]string{"best best": "500", "best best budget=0.1": "0.1", "ensemble ensemble best": "500",
		"ensemble few": "0.1", "sa-bfgs sa-bfgs": ""}; !maps.Equal(budgets, want) {
		t.Errorf("budgets %v, want %v", budgets, want)
	}
	for method, want := range map[string]string{
		"bst": `"bst" is unknown (did you mean "best"?)`,
		"{algorithm: best, settings: {trees: 4}}": "unknown setting trees of best; its settings are members,",
		"{algorithm: best, budget: 50}": "50 is not a duration, such as 20m, which limits the computing time of the method; " +
			"the budget of work of best is one of its settings: settings: {budget: 50}",
		"{algorithm: best, preset: paper}":                                              "algorithm best has no other preset",
		"{algorithm: best, grid: {budget: [1, 2]}, choose: {inner: 3}}":                 "a method of best is an ensemble",
		"{algorithm: best, search: {draws: 2, space: {inner_folds: {real: [2.5, 5]}}}}": "not a whole number",
	} {
		_, err := Parse(t.Context(), "s.yaml", []byte("name: e\nfolds: 2\ndatasets: [a.csv]\nmethods:\n  - "+method+"\n"))
		datasettest.MustContain(t, err, "s.yaml:5:", want)
	}
}
