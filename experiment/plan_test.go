package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// planned makes the plan of a spec for its only dataset, of 60 rows.
func planned(t testing.TB, text string) (*Spec, *Plan) {
	t.Helper()
	s, err := Parse(t.Context(), "s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// keysOf returns the keys of a plan's runs by method name, repeat and fold.
func keysOf(t testing.TB, s *Spec, p *Plan) map[string]string {
	t.Helper()
	cells, err := p.Runs()
	if err != nil {
		t.Fatal(err)
	}
	keys, seen := make(map[string]string), make(map[string]bool)
	for _, c := range cells {
		keys[fmt.Sprintf("%s %d %d", s.Methods[c.Method].Name, c.Repeat, c.Fold)] = c.Key
		if seen[c.Key] {
			t.Fatalf("two runs have the key %s", c.Key)
		}
		seen[c.Key] = true
	}
	return keys
}

// TestLongList: a plan makes no list of folds of more bytes than it may. Folds by the spec's own seed need no list.
func TestLongList(t *testing.T) {
	m, _ := datatest.Artificial(t, 60)
	for text, bytes := range map[string]int64{"{sklearn: 4, repeats: 5}": 240, "{k: 4, repeats: 5, seed: 7}": 240,
		"{k: 4, repeats: 5}": 1} {
		s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [rf]\nfolds: "+text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m, MaxList: bytes}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		const want = "the list of 20 folds of 60 samples takes 240 B, want at most 239 B"
		if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m, MaxList: bytes - 1}); bytes > 1 &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestKeysStay: more rows, repeats, settings written otherwise and other measures leave the keys of
// runs that were there; another seed, setting or number of folds changes them.
func TestKeysStay(t *testing.T) {
	base := "name: a\ndatasets: [b]\nmethods: [{algorithm: structrf, name: s}]\nfolds: "
	for _, folds := range []string{"{k: 3}", "{sklearn: 3, seed: 0}", "{k: 3, seed: 5}"} {
		s, p := planned(t, base+folds)
		before := keysOf(t, s, p)
		if len(before) != 3 {
			t.Fatalf("%s: %d runs", folds, len(before))
		}
		more := strings.Replace(base, "[{", "[rf, {settings: {trees: 200}, ", 1) + strings.Replace(folds, "}",
			", repeats: 3}", 1)
		s, p = planned(t, more)
		after := keysOf(t, s, p)
		if len(after) != 18 {
			t.Fatalf("%s: %d runs", folds, len(after))
		}
		for at, key := range before {
			if after[at] != key {
				t.Errorf("%s: the key of %s has changed", folds, at)
			}
		}
		for _, shown := range []string{"measures: [clark, spearman]\n", "clip: pyldl\n", "record: [curve, predictions]\n"} {
			s, p = planned(t, shown+base+folds)
			for at, key := range keysOf(t, s, p) {
				if before[at] != key {
					t.Errorf("%s: with %q %s has another key", folds, shown, at)
				}
			}
		}
		for _, other := range []string{strings.Replace(base, "name: s", "name: s, settings: {trees: 49}", 1) + folds,
			"seed: 2\n" + base + folds, base + strings.Replace(folds, "3", "4", 1)} {
			s, p = planned(t, other)
			for at, key := range keysOf(t, s, p) {
				if before[at] == key {
					t.Errorf("%s: %s has the same key in %q", folds, at, other)
				}
			}
		}
	}
}

// TestKeysOfLabels: a run has measures of its own where the same distributions are classes, or a scale, so the
// same bytes of another type are other runs, of a plan as of its outline.
func TestKeysOfLabels(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 2\nmeasures: [kl, "+
		"mae_expected]"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for i, labels := range []dataset.LabelType{
		{}, {Classes: true}, {Scale: &dataset.Scale{True: dataset.TrueExpected}},
		{Scale: &dataset.Scale{True: dataset.TrueMode}}, {Scale: &dataset.Scale{Low: 1, True: dataset.TrueMode}},
	} {
		m, _ := datatest.Artificial(t, 60)
		m.LabelType = labels
		p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m})
		if err != nil {
			t.Fatal(err)
		}
		o, err := DecodeOutline(marshalled(NewOutline(s, []*Plan{p}, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l, err := o.Layout()
		if err != nil {
			t.Fatal(err)
		}
		for at, key := range keysOf(t, s, p) {
			if other, twice := seen[key]; twice || !slices.Contains(l.Keys, key) {
				t.Errorf("labels %d: %s has the key of labels %d, or another in the outline", i, at, other)
			}
			seen[key] = i
		}
	}
}

// TestSplits: each run tests the rows that the folds say, whatever the form of the list.
func TestSplits(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k, repeats := rapid.IntRange(2, 9).Draw(r, "k"), rapid.IntRange(1, 4).Draw(r, "repeats")
		way := rapid.SampledFrom([]string{"k", "sklearn"}).Draw(r, "way")
		seed := rapid.Uint64Range(0, 99).Draw(r, "seed")
		s, p := planned(t, fmt.Sprintf("name: a\nseed: 7\ndatasets: [b]\nmethods: [rf, ldlf]\nfolds: {%s: %d, seed: %d, "+
			"repeats: %d}", way, k, seed, repeats))
		scheme := folds.Scheme{Way: map[string]string{"k": folds.Seeded, "sklearn": folds.ScikitLearn}[way], Folds: k,
			Seed: seed, Repeats: repeats}
		for unit, at := range p.Job.Cells.All() {
			j, err := pipeline.Cell(p.Job, unit)
			if err != nil {
				r.Fatal(err)
			}
			roles, err := j.Split.Assign(60, p.Assigned)
			if err != nil {
				r.Fatal(err)
			}
			want, err := scheme.Divide(&folds.Rows{Count: 60}, at.Repeat)
			if err != nil {
				r.Fatal(err)
			}
			for row, role := range roles {
				if (role == dataset.Test) != (int(want.Assigned[row]) == at.Fold) {
					r.Fatalf("run %v: method %d has the role %d, its fold is %d", at, row, role, want.Assigned[row])
				}
			}
			if j.Seed != 7+uint64(at.Repeat) || j.Algorithm != s.Methods[at.Row].Algorithm {
				r.Fatalf("run %v has seed %d and %s", at, j.Seed, j.Algorithm)
			}
		}
	})
}

// TestGroupsOfAPlan: groups of the dataset are folds, under the digest that jobs of groups have.
func TestGroupsOfAPlan(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [{algorithm: rf, settings: "+
		"{min_samples: 2}}, ldlf]\nfolds: groups"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 6)
	groups := []uint16{1, 0, 2, 1, 0, 2}
	if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m}); err == nil ||
		!strings.Contains(err.Error(), "s.yaml:4:8: dataset b: the dataset has no groups") {
		t.Errorf("without groups: %v", err)
	}
	m.Groups = &dataset.Groups{Digest: hexSum(dataset.EncodeFolds(groups)), Names: []string{"a", "b", "c"}}
	p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m, Groups: groups})
	if err != nil || p.Job == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if p.Folds != 3 || !slices.Equal(p.Assigned, groups) || p.Job.Split.Overlap {
		t.Errorf("%+v, %v", p, err)
	}
	for unit, want := range []string{"", m.Groups.Digest} { // a forest has no validation samples
		j, err := pipeline.Cell(p.Job, unit)
		if err != nil || j.Split.Groups != want || p.Job.Split.Groups != m.Groups.Digest {
			t.Errorf("%s has the groups %q, want %q, error %v", j.Algorithm, j.Split.Groups, want, err)
		}
	}
	if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m, Groups: groups[:3]}); err == nil {
		t.Error("groups of other methods passed")
	}
}

// TestWholeFoldsOfAPlan: where a file lists the folds, the inner folds of ensembles and of choose keep them whole, as
// with coppice train; other rows, and other folds, have the settings that they have without a file.
func TestWholeFoldsOfAPlan(t *testing.T) {
	const methods = "name: a\ndatasets: [b]\nmethods: [rf, {algorithm: rf, grid: {trees: [1, 2]}, choose: {validation: " +
		"0.1}}, {algorithm: ensemble, settings: {members: 'rf,rf'}}]\n"
	m, _ := datatest.Artificial(t, 60)
	list := &dataset.SplitList{Folds: 4, Assigned: make([]uint16, 60)}
	for row := range list.Assigned {
		list.Assigned[row] = uint16(row / 15)
	}
	paramsOf := func(folds string, data *Data) (p *Plan, params []string) {
		s, err := Parse(t.Context(), "s.yaml", []byte(methods+folds))
		if err == nil {
			p, err = NewPlan(t.Context(), s, &s.Datasets[0], data)
		}
		if err != nil || len(p.Refused) > 0 {
			t.Fatalf("%s: %+v, %v", folds, p, err)
		}
		for _, r := range p.Job.Cells.Rows {
			params = append(params, string(r.Params))
		}
		return p, params
	}
	_, seeded := paramsOf("folds: 4", &Data{Manifest: m})
	if _, python := paramsOf("folds: {sklearn: 4, seed: 0}", &Data{Manifest: m}); !slices.Equal(python, seeded) {
		t.Errorf("%s, want %s", python, seeded)
	}
	p, listed := paramsOf("folds: {file: f.csv}", &Data{Manifest: m, Splits: list})
	for i, params := range listed {
		want := seeded[i]
		if i > 0 {
			want = strings.Replace(want, `,"weight_rows"`, `,"inner":"folds","weight_rows"`, 1)
		}
		if params != want {
			t.Errorf("method %d: %s, want %s", i, params, want)
		}
	}
	s := protocol.Spec{Algorithm: "ensemble", Set: map[string]string{"members": "rf,rf"}, Folds: 4,
		Assigned: p.Job.Split.Assigned}
	if alone, err := spec.Resolve(s, m); err != nil || string(alone.Params) != listed[2] {
		t.Errorf("trained alone: %+v, %v; want %s", alone, err, listed[2])
	}
}

// TestPlanErrors: folds above the rows, and methods that do not go with the data.
func TestPlanErrors(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 61"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m}); err == nil ||
		!strings.Contains(err.Error(), "s.yaml:4:8: dataset b: want 2 to 60 folds for 60 samples") {
		t.Errorf("error %v", err)
	}
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [ranking, rf]\nfolds: 2")
	if p.Refused[0] == "" || p.Refused[1] != "" || !slices.Equal(p.Methods, []int{1}) {
		t.Errorf("%+v", p)
	}
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := Count(l.Table); n != (Counts{Failed: 2, Missing: 2}) || l.Keys[0] != "" || l.Keys[2] == "" {
		t.Errorf("%+v, keys %q", n, l.Keys)
	}
	for from, want := range map[string]string{
		"m.model":               "is not the digest of uploaded weights",
		strings.Repeat("0", 64): "a method of an experiment cannot start from the weights",
	} {
		_, p := planned(t, fmt.Sprintf("name: a\ndatasets: [b]\nmethods:\n  - algorithm: dldl\n    settings: {init_from: "+
			"%q}\nfolds: 2", from))
		if !strings.Contains(p.Refused[0], want) {
			t.Errorf("from %s: refused because %q, want %s", from, p.Refused[0], want)
		}
	}
	if _, p := planned(t, "name: a\ndatasets: [b]\nmethods: [ranking]\nfolds: 2"); p.Job != nil {
		t.Error("a plan without methods has a job")
	}
}

// TestOnly: the job of some runs has those and no others, with the same keys.
func TestOnly(t *testing.T) {
	_, p := planned(t,
		"name: a\ndatasets: [b]\nmethods: [ranking, rf, structrf]\nfolds: {sklearn: 3, repeats: 2, seed: 1}")
	cells, err := p.Runs()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		chosen := make(map[string]bool)
		for _, c := range cells {
			chosen[c.Key] = rapid.Bool().Draw(t, "chosen")
		}
		j, rows := p.Only(cells, func(c *Run) bool { return chosen[c.Key] })
		n := 0
		if j != nil {
			some, err := RunsOf(j, p.Tested, rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range some {
				if !chosen[c.Key] {
					t.Fatalf("the run %v was not chosen", c)
				}
			}
			if n = len(some); len(rows) != len(j.Cells.Rows) {
				t.Fatalf("methods %v of %d", rows, len(j.Cells.Rows))
			}
			for i, row := range rows {
				if j.Cells.Rows[i].Algorithm != []string{"ranking", "rf", "structrf"}[row] {
					t.Fatalf("method %d is %s", row, j.Cells.Rows[i].Algorithm)
				}
			}
		}
		for _, yes := range chosen {
			if yes {
				n--
			}
		}
		if n != 0 {
			t.Fatalf("%d runs too many", n)
		}
	})
	if p.Job.Cells.Rows[0].Only != nil {
		t.Error("the plan's own job has changed")
	}
}

// TestFill: records come to their runs, with the measures in the order of the table.
func TestFill(t *testing.T) {
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [rf, structrf]\nfolds: 2\nmeasures: [clark, kl]")
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &pipeline.Outcome{ModelDigest: "d", Rows: pipeline.Counts{Test: 30}}
	o.Measures[0].Mean, o.Measures[7].Mean, o.MeanPredictor[0].Mean = 1, 2, 3
	table := l.Fill(map[string]*Record{
		l.Keys[1]: {Key: l.Keys[1], Seconds: 4, Outcome: o},
		l.Keys[2]: {Key: l.Keys[2], Outcome: &pipeline.Outcome{Error: "why"}},
	})
	if err := table.Validate(); err != nil {
		t.Fatal(err)
	}
	c := table.Runs[1]
	if c.Method != 0 || c.Fold != 1 || c.Seconds != 4 || c.Digest != "d" || c.Rows != 30 ||
		!slices.Equal(c.Values, []float64{2, 1}) || !slices.Equal(c.Mean, []float64{0, 3}) {
		t.Errorf("%+v", c)
	}
	if table.Runs[2].Error != "why" || table.Runs[3].State != result.Missing || l.Table.Runs[1].State != result.Missing {
		t.Errorf("%+v", table.Runs)
	}
	if n := Count(table); n != (Counts{Done: 1, Failed: 1, Missing: 2}) {
		t.Errorf("%+v", n)
	}
	if round.Numerics != p.Job.Numerics {
		t.Error("other numerics")
	}
}

// TestSomeRuns: the runs of a job of some runs are those that were wanted, and each has the
// key of the job that its unit is.
func TestSomeRuns(t *testing.T) {
	_, p := planned(t, "name: a\ndatasets: [b]\nmethods: [rf, ldlf, aa-knn]\nfolds: {sklearn: 4, seed: 1, repeats: 3}")
	all, err := p.Runs()
	if err != nil {
		t.Fatal(err)
	}
	wanted := make(map[string]bool)
	for i := range all {
		wanted[all[i].Key] = i%5 < 2
	}
	p.Job, p.Methods = p.Only(all, func(c *Run) bool { return wanted[c.Key] })
	some, err := p.Runs()
	if err != nil || len(some) != 15 {
		t.Fatalf("%d of %d runs, error %v", len(some), len(all), err)
	}
	for i := range some {
		j, err := pipeline.Cell(p.Job, i)
		if err != nil {
			t.Fatal(err)
		}
		tested, err := testedBy(p.Job.Split, p.Assigned, 60)
		if c := &some[i]; err != nil || !wanted[c.Key] || c.Unit != i ||
			c.Key != keyOf(j, tested[j.Split.Fold], &p.Job.Cells.Labels) {
			t.Errorf("run %d: %+v, error %v", i, c, err)
		}
	}
}

// TestOutlineAsJSON: an outline that was written and read makes the layout of the plans, with
// the keys of all runs.
func TestOutlineAsJSON(t *testing.T) {
	for _, folds := range []string{"3", "{sklearn: 3, repeats: 2, seed: 1}", "{k: 2, repeats: 3}"} {
		s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [ranking, rf, aa-knn]\nfolds: "+folds)
		want, err := NewLayout(s, []*Plan{p}, []string{"gone"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(NewOutline(s, []*Plan{p}, []string{"gone"}))
		if err != nil {
			t.Fatal(err)
		}
		o, err := DecodeOutline(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.Layout()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		keys := keysOf(t, s, p)
		for i := range got.Table.Runs {
			c := &got.Table.Runs[i]
			if name := got.Table.NameOf(c); got.Keys[i] != keys[fmt.Sprintf("%s %d %d", name.Method, c.Repeat, c.Fold)] {
				t.Errorf("%v has the key %q", name, got.Keys[i])
			}
		}
		o.Sets[0].Methods[0] = 3
		if _, err := o.Layout(); !errors.Is(err, ErrFolder) {
			t.Errorf("a method that is not there: %v", err)
		}
		o.Sets[0].Job = nil
		if _, err := o.Layout(); !errors.Is(err, ErrFolder) {
			t.Errorf("methods without a job: %v", err)
		}
	}
}

// TestOnlySomeFolds: the runs of some folds are those of all folds, key for key, and the table has no
// others.
func TestOnlySomeFolds(t *testing.T) {
	for _, way := range []string{"k: 4, seed: 9", "k: 4", "sklearn: 4, seed: 1"} {
		_, all := planned(t, "name: a\ndatasets: [b]\nmethods: [rf, aa-knn]\nfolds: {"+way+", repeats: 2}")
		s, some := planned(t, "name: a\ndatasets: [b]\nmethods: [rf, aa-knn]\nfolds: {"+way+", repeats: 2, only: [2, 0]}")
		want, err := all.Runs()
		if err != nil {
			t.Fatal(err)
		}
		keys := make(map[[3]int]string)
		for _, c := range want {
			keys[[3]int{c.Method, c.Repeat, c.Fold}] = c.Key
		}
		l, err := NewLayout(s, []*Plan{some}, nil)
		if err != nil || len(l.Table.Runs) != 2*2*2 {
			t.Fatalf("%s: %d runs, error %v", way, len(l.Table.Runs), err)
		}
		for i, c := range l.Table.Runs {
			if (c.Fold != 0 && c.Fold != 2) || l.Keys[i] == "" || l.Keys[i] != keys[[3]int{c.Method, c.Repeat, c.Fold}] {
				t.Errorf("%s: %+v with the key %q", way, c, l.Keys[i])
			}
		}
	}
}

// TestOnlyFoldsThatAreThere: a fold beyond the last is an error at the folds of the spec.
func TestOnlyFoldsThatAreThere(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {k: 4, only: [1, 4]}"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	if _, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m}); err == nil ||
		err.Error() != "s.yaml:4:8: dataset b: the key \"only\" lists fold 4, but folds are numbered 0 to 3" {
		t.Errorf("error %v", err)
	}
}

// TestScores: a run that chose has the K-L of the candidates, and that of the mean predictor, though clipped
// measures are shown; one with other members has none.
func TestScores(t *testing.T) {
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [{algorithm: aa-knn, grid: [{}, {k: [3, 5]}], choose: {inner: "+
		"2}}]\nfolds: 2\nmeasures: [kl]\nclip: pyldl")
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kl := []float64{3, 1, 2}
	outcome := func(members int) *pipeline.Outcome {
		x := &algorithms.Mixture{}
		for i := range members {
			x.Members = append(x.Members, algorithms.Share{OutOfFoldKL: &kl[i]})
		}
		o := &pipeline.Outcome{Mixture: x, Clipped: &pipeline.Clipped{Model: new(measures.Clipped),
			MeanPredictor: new(measures.Clipped)}}
		o.MeanPredictor[0].Mean, o.Clipped.MeanPredictor.Ten[0].Mean = 4, 5
		return o
	}
	table := l.Fill(map[string]*Record{l.Keys[0]: {Outcome: outcome(3)}, l.Keys[1]: {Outcome: outcome(2)}})
	if want := []string{"default", "k=3", "k=5"}; !slices.Equal(table.Methods[0].Candidates, want) ||
		!slices.Equal(table.Runs[0].CandidateKL, kl) || table.Runs[1].CandidateKL != nil {
		t.Errorf("%+v", table)
	}
	if table.Clip != "pyldl" {
		t.Errorf("clip %q", table.Clip)
	}
	if c := table.Runs; c[0].MeanKL != 4 || c[0].Mean[0] != 5 || c[1].MeanKL != 0 {
		t.Errorf("of the mean baseline: %+v", c)
	}
	if err := table.Validate(); err != nil {
		t.Error(err)
	}
}
