package ensemble

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestMembersAreRefused: each text is refused with the name of the setting and a reason.
func TestMembersAreRefused(t *testing.T) {
	a := New(family())
	for text, want := range map[string]string{
		"structrf,ensemble": "an ensemble cannot be a member of an ensemble; possible members are " +
			"ldlf, structrf, rf",
		"structrf,regression":                   "regression predicts a number, but members must predict label distributions",
		"structrf,ldfl":                         `algorithm "ldfl" is unknown (did you mean "ldlf"?)`,
		"structrf":                              `got 1 member, want 2 to 20`,
		"typo":                                  `algorithm "typo" is unknown; possible members are ldlf, structrf, rf`,
		"structrf:trees=0":                      `structrf: trees: "0" is not a whole number from 1 to 10000`,
		strings.Repeat("rf,", 20) + "rf":        "got 21 members",
		"structrf:tree=3,ldlf":                  `structrf: tree: there is no such setting (did you mean "trees"?); the settings are preset, trees`,
		"structrf:trees=0,ldlf":                 `structrf: trees: "0" is not a whole number from 1 to 10000`,
		"structrf,rf,structrf:trees=x":          `structrf 2: trees: "x" is not a whole number`,
		"structrf:trees=1:trees=2,ldlf":         "structrf: trees: the setting is given twice",
		"structrf:trees,ldlf":                   `structrf: want KEY=VALUE after the colon, got "trees"`,
		"structrf,,ldlf":                        "a name, a key or a value is missing",
		"":                                      "a name, a key or a value is missing",
		`structrf:features="1,ldlf`:             `the closing quote is missing after "\"1,ldlf"`,
		`structrf:features="no",ldlf`:           `structrf: features: "no": want all, sqrt`,
		"structrf:min_samples=2,ldlf:outputs=2": "ldlf: outputs: got 2 outputs, but a tree of depth 7 has 63 split nodes",
		"structrf:min_samples=2,ldlf:features=mlp:init_from=" +
			strings.Repeat("0", 64): "ldlf: init_from: a member of an ensemble cannot start from given weights",
		"structrf:preset=paper,ldlf": "structrf: min_samples: a sampling_ratio of 0.8 of 8 training samples makes 6 draws",
	} {
		_, err := a.Resolve(param.Values{"members": text}, smallManifest())
		var wrong *param.Error
		if !errors.As(err, &wrong) || wrong.Name != "members" || !strings.Contains(wrong.Reason.String(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	_, err := a.Resolve(param.Values{"members": smallMembers, "inner_folds": int64(9)}, smallManifest())
	if err == nil || err.Error() != "inner_folds: 9 folds are too many for 8 samples: some folds would be empty" {
		t.Errorf("error %v", err)
	}
}

// TestInnerFolds: few rows have ten inner folds, unless groups are too few for them, by default and with fitted weights
// alone.
func TestInnerFolds(t *testing.T) {
	for _, c := range []struct {
		rows, groups int
		given        param.Values
		want         int
	}{
		{99, 0, nil, 5}, {100, 0, nil, 10}, {2000, 0, nil, 10}, {2001, 0, nil, 5},
		{300, 10, nil, 5}, {300, 11, nil, 10},
		{300, 0, param.Values{"preset": "paper"}, 5},
		{300, 0, param.Values{"weights": "best"}, 5},
		{300, 0, param.Values{"inner_folds": int64(3)}, 3},
	} {
		m := &dataset.Manifest{Format: 1, Rows: c.rows, Features: 3, Labels: 2, NonZeros: int64(3 * c.rows),
			Shards: make([]dataset.ShardRef, 1)}
		if c.groups > 0 {
			m.Groups = &dataset.Groups{Names: make([]string, c.groups)}
		}
		given := param.Values{"members": smallMembers}
		maps.Copy(given, c.given)
		r, err := New(family()).Resolve(given, m)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			InnerFolds int `json:"inner_folds"`
		}
		if err := json.Unmarshal(r.Params, &got); err != nil || got.InnerFolds != c.want {
			t.Errorf("%d rows of %d groups, %v: %d inner folds (%v), want %d", c.rows, c.groups, c.given, got.InnerFolds,
				err, c.want)
		}
	}
}

// TestSettingsAreResolved: members get all of their settings, and given again these are the
// same; a member may be there twice.
func TestSettingsAreResolved(t *testing.T) {
	k := family()
	members, err := k.resolve(`structrf:preset=paper:min_samples=2, structrf : trees = 3:min_samples=2:features="0.5"`,
		smallManifest())
	if err != nil {
		t.Fatal(err)
	}
	const settings = "max_depth=20:sampling_ratio=0.8:min_samples=2:features="
	text := format(members)
	if want := "structrf:trees=50:" + settings + "all:step=exhaustive:alpha=0.25:beta=8,structrf:trees=3:" + settings +
		"0.5:step=exhaustive:alpha=0.25:beta=8"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if again, err := k.resolve(text, smallManifest()); err != nil || format(again) != text {
		t.Errorf("given again: %v", err)
	}
	if members[1].label != "structrf 2" {
		t.Errorf("the second is called %q", members[1].label)
	}
}

// TestChildren: which rows each child job trains on, and what it keeps.
func TestChildren(t *testing.T) {
	j := smallJob(t, nil)
	j.Split.Folds, j.Split.Fold, j.Predictions = 4, 1, 100
	a := New(family()).(algorithms.Parent)
	outer, err := j.Split.Assign(8, nil)
	if err != nil {
		t.Fatal(err)
	}
	tested := make([]int, 8)
	for unit := range 6 {
		c, err := a.SubJob(j, smallManifest(), unit)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := c.Split.Assign(8, nil)
		if err != nil {
			t.Fatal(err)
		}
		inner := unit >= 2
		if c.Algorithm != []string{"structrf", "rf"}[unit%2] || c.Folds != 0 || (c.Predictions > 0) != inner ||
			c.NoModel != inner || c.Seed != j.Seed {
			t.Errorf("unit %d: %+v", unit, c)
		}
		for row, r := range roles {
			switch {
			case !inner && r != outer[row]:
				t.Errorf("unit %d: row %d has the role %d, %d in the job", unit, row, r, outer[row])
			case inner && (r == dataset.Outside) != (outer[row] == dataset.Test):
				t.Errorf("unit %d: row %d has the role %d, %d in the job", unit, row, r, outer[row])
			case inner && r == dataset.Test:
				tested[row]++
			}
		}
	}
	for row, n := range tested {
		if want := 2; outer[row] != dataset.Test && n != want || outer[row] == dataset.Test && n != 0 {
			t.Errorf("row %d is predicted %d times by inner jobs", row, n)
		}
	}
	for _, unit := range []int{-1, 6} {
		if _, err := a.SubJob(j, smallManifest(), unit); err == nil {
			t.Errorf("there is a unit %d", unit)
		}
	}
}

// TestChildValidates: a member that stops early validates on rows of its own training rows, in
// inner folds too; groups stay whole.
func TestChildValidates(t *testing.T) {
	m := smallManifest()
	m.Rows, m.Groups = 300, &dataset.Groups{Digest: "groups", Names: []string{"a", "b", "c", "d"}}
	a := New(family())
	r, err := a.Resolve(param.Values{"members": "structrf,ldlf", "inner_folds": int64(3)}, m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Params: r.Params, Split: dataset.Split{Assigned: "groups",
		Folds: 4, Fold: 2}}
	assigned := make([]uint16, 300)
	for i := range assigned {
		assigned[i] = uint16(i % 4)
	}
	for unit := range 8 {
		c, err := a.(algorithms.Parent).SubJob(j, m, unit)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := c.Split.Assign(300, assigned)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[dataset.Roles]int{}
		held := map[uint16]bool{}
		for row, r := range roles {
			counts[r]++
			if r == dataset.Test {
				held[assigned[row]] = true
			}
		}
		trained := 225
		if unit >= 2 {
			trained = 150
		}
		validates := 0
		if c.Algorithm == "ldlf" {
			validates = trained / 5
		}
		if counts[dataset.Validation] != validates || counts[dataset.Train] != trained-validates || len(held) != 1 {
			t.Errorf("unit %d (%s): rows by role %v, groups held out %v", unit, c.Algorithm, counts, held)
		}
	}
}

// TestWholeFolds: where a file lists the folds, inner folds are whole ones, as many as are left. Where the split names
// groups, they are of whole groups. Elsewhere, and where settings say so, they are of rows. The settings of jobs
// without such folds have no word of it.
func TestWholeFolds(t *testing.T) {
	testkit.WithoutRace(t)
	m := smallManifest()
	m.Rows, m.Groups = 300, &dataset.Groups{Digest: "groups", Names: []string{"a", "b", "c", "d"}}
	file := func(folds int) dataset.Split { return dataset.Split{Assigned: "file", Folds: folds, Fold: 1} }
	for _, c := range []struct {
		split   dataset.Split
		weights string
		given   string
		want    string // of the setting
		inner   int    // folds; 0: there are none
		whole   bool
	}{
		{file(10), "fitted", "auto", "folds", 5, true},
		{file(10), "best", "auto", "folds", 5, true},
		{file(10), "validated", "auto", "folds", 5, true},
		{file(4), "validated", "auto", "folds", 3, true},
		{file(5), "fitted", "auto", "folds", 4, true},
		{file(3), "fitted", "folds", "folds", 2, true},
		{file(2), "fitted", "auto", "auto", 5, false},
		{file(10), "mean", "auto", "auto", 0, false},
		{file(10), "fitted", "rows", "rows", 5, false},
		{dataset.Split{Assigned: "groups", Folds: 6}, "fitted", "auto", "auto", 5, true},
		{dataset.Split{Assigned: "groups", Folds: 4}, "fitted", "auto", "folds", 3, true},
		{dataset.Split{Assigned: "file", Folds: 10, Overlap: true}, "fitted", "auto", "auto", 5, false},
		{dataset.Split{Folds: 10}, "fitted", "auto", "auto", 5, false},
		{dataset.Split{TestFraction: .1}, "fitted", "auto", "auto", 5, false},
		{dataset.Split{TestFraction: .1, Groups: "groups"}, "fitted", "auto", "auto", 4, false},
		{dataset.Split{Assigned: "file", Folds: 10, Groups: "groups"}, "fitted", "auto", "auto", 4, false},
		{dataset.Split{Assigned: "file", Folds: 10, Groups: "groups"}, "fitted", "rows", "rows", 5, false},
		{dataset.Split{Assigned: "file", Folds: 10, Groups: "groups"}, "fitted", "folds", "folds", 5, true},
		{dataset.Split{Assigned: "groups", Folds: 6, Groups: "groups"}, "fitted", "auto", "auto", 5, true},
		{dataset.Split{Assigned: "groups", Folds: 4, Groups: "groups"}, "fitted", "auto", "folds", 3, true},
	} {
		m := *m
		if c.split.Groups == "" && c.split.Assigned != "groups" {
			m.Groups = nil
		}
		a := New(family())
		r, err := a.Resolve(param.Values{"members": smallMembers, "inner_folds": int64(5), "weights": c.weights,
			"inner": c.given}, &m)
		if err != nil {
			t.Fatal(err)
		}
		params, err := a.(algorithms.Divider).Divided(r.Params, &c.split, &m)
		if err != nil {
			t.Fatal(err)
		}
		got := struct{ Inner string }{"auto"}
		if err := json.Unmarshal(params, &got); err != nil || got.Inner != c.want || c.want == "auto" &&
			string(params) != string(r.Params) {
			t.Errorf("%+v, weights %s, %s: %s", c.split, c.weights, c.given, params)
		}
		j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Params: params, Split: c.split}
		units := 0
		for ; ; units++ {
			child, err := a.(algorithms.Parent).SubJob(j, &m, units)
			if err != nil {
				break
			}
			if s := child.Split; units >= 2 && (s.Inner != c.inner || s.InnerWhole != c.whole || s.Check() != nil ||
				s.InnerGroups != (s.Groups != "" && !c.whole && c.given == "auto")) {
				t.Errorf("%+v, %s: unit %d has the split %+v, error %v", c.split, c.given, units, s, s.Check())
			}
		}
		held := c.inner
		if c.weights == "validated" {
			held = 1
		}
		if units != 2*(1+held) {
			t.Errorf("%+v, weights %s, %s: %d units, want %d inner folds", c.split, c.weights, c.given, units, c.inner)
		}
	}
	for _, s := range []dataset.Split{{}, {Folds: 10}, file(2), {Assigned: "file", Folds: 10, Overlap: true}} {
		a := New(family())
		r, err := a.Resolve(param.Values{"members": smallMembers, "inner": "folds"}, m)
		if err != nil {
			t.Fatal(err)
		}
		var wrong *param.Error
		if _, err := a.(algorithms.Divider).Divided(r.Params, &s, m); !errors.As(err, &wrong) || wrong.Name != "inner" {
			t.Errorf("%+v: error %v", s, err)
		}
		tr, err := a.NewTrainer(&round.Job{Algorithm: Name, Numerics: round.Numerics, Params: r.Params, Split: s}, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if next, err := tr.Next(); err != nil || next.Gather().SubJob(2).Split.Check() == nil {
			t.Errorf("%+v: error %v, or a child of it has a split that is taken", s, err)
		}
	}
}

// TestFold: the weights of six results, in whichever order they are taken; a result that does
// not belong is refused.
func TestFold(t *testing.T) {
	j := smallJob(t, nil)
	tr, err := newSmall(t, j, nil)
	if err != nil {
		t.Fatal(err)
	}
	res := &round.Result{Gathered: make([][]byte, 6)}
	for unit := range 6 {
		if unit%2 == 0 {
			res.Gathered[unit] = part(t, unit)
		} else if err := tr.TakeResult(unit, part(t, unit)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tr.Model(); err == nil {
		t.Error("there is a model before the end")
	}
	if err := tr.Fold(res); err != nil {
		t.Fatal(err)
	}
	x := tr.Mixture()
	if x.Rows != 8 || x.Members[0].Weight < 1-1e-3 || x.Members[0].Member != "structrf" ||
		*x.Members[1].OutOfFoldKL <= *x.Members[0].OutOfFoldKL {
		t.Errorf("%+v", x)
	}
	if p := tr.Progress(); p.Step != 12 || p.Steps != 12 || p.Samples != 96 || math.Abs(p.Loss-0.5) > 1e-12 ||
		p.Phase != "6 of 6 models trained" {
		t.Errorf("%+v", p)
	}
	if n := tr.Counters()["gain_evaluations"]; n != 15 {
		t.Errorf("%d gain evaluations", n)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	if lines := m.Describe(); lines[0][0] != "weight of structrf" || !slices.ContainsFunc(lines, func(l [2]string) bool {
		return strings.HasPrefix(l[0], "rf: ")
	}) {
		t.Errorf("%v", lines)
	}
	for unit, other := range map[int]int{0: 1, 1: 2, 2: 0} {
		if err := tr.TakeResult(unit, part(t, other)); err == nil {
			t.Errorf("unit %d takes the result of unit %d", unit, other)
		}
	}
	if err := tr.TakeResult(0, []byte{1}); err == nil {
		t.Error("a byte is a result")
	}
}

// validatedSmall is the trainer of the small job whose first inner fold chooses the member.
func validatedSmall(t testing.TB) *trainer {
	t.Helper()
	tr, err := newSmall(t, smallJob(t, param.Values{"weights": WeightsValidated}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// step runs the round that a trainer asks for.
func step(t testing.TB, tr *trainer) {
	t.Helper()
	r, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return
	}
	collected := make([][]byte, r.Tasks)
	for unit, has := range r.Gather().Has {
		if !has {
			collected[unit] = part(t, unit)
		}
	}
	if err := tr.Fold(&round.Result{Gathered: collected}); err != nil {
		t.Fatal(err)
	}
}

// TestProgressByTime: a step of the second member takes ten times as long as one of the first. The step is in
// proportion to time.
func TestProgressByTime(t *testing.T) {
	tr, err := newSmall(t, smallJob(t, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := make([]round.TaskProgress, 6)
	now := 0.0
	for unit, seconds := range []float64{1, 10, 1} {
		tasks[unit].Note(round.Progress{Steps: 100}, now)
		now += seconds
		tasks[unit].Note(round.Progress{Step: 100, Steps: 100}, now)
		tasks[unit].Done = true
	}
	if p := tr.RoundProgress(tasks); p.Steps != 600 || p.Step != 600*12/33 || p.Phase != "3 of 6 models trained" {
		t.Errorf("%+v", p)
	}
}

// TestValidatedRounds: the first round scores the members, the second trains the best on all rows, and
// from the state of any time training goes on to the same model.
func TestValidatedRounds(t *testing.T) {
	tr := validatedSmall(t)
	for n, want := range [][]bool{{true, true, false, false}, {false, true, true, true}, nil} {
		r, err := tr.Next()
		if err != nil || (r == nil) != (want == nil) || r != nil && !slices.Equal(r.Gather().Has, want) {
			t.Fatalf("round %d: %+v, error %v", n, r, err)
		}
		if _, err := tr.Model(); (err == nil) != (r == nil) {
			t.Errorf("before round %d: a model, error %v", n, err)
		}
		wantDone := []string{"0 of 3 models trained", "2 of 3 models trained", "3 of 3 models trained"}[n]
		if p := tr.Progress(); p.Phase != wantDone {
			t.Errorf("before round %d: %s", n, p.Phase)
		}
		if tr, err = newSmall(t, tr.job.Job, stateOf(t, tr)); err != nil {
			t.Fatal(err)
		}
		step(t, tr)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	if lines := m.Describe(); lines[0] != [2]string{"weight of structrf", "1.0000"} || len(m.(*model).members) != 1 {
		t.Errorf("%v", lines)
	}
	if x := tr.Mixture(); len(x.Members) != 2 || x.Members[0].Weight != 1 || x.Rows != 4 {
		t.Errorf("%+v", x)
	}
	for unit, why := range map[int]string{0: "before the weights", 1: "of a member that is not the best"} {
		odd := validatedSmall(t)
		if unit == 1 {
			step(t, odd)
		}
		if err := odd.TakeResult(unit, part(t, unit)); err != nil {
			t.Fatal(err)
		}
		if _, err := newSmall(t, odd.job.Job, stateOf(t, odd)); err == nil {
			t.Errorf("a state with a model %s was taken", why)
		}
	}
}

// TestMean: without inner folds, all weights are the same.
func TestMean(t *testing.T) {
	tr, err := newSmall(t, smallJob(t, param.Values{"weights": "mean"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fold(&round.Result{Gathered: [][]byte{part(t, 0), part(t, 1)}}); err != nil {
		t.Fatal(err)
	}
	if x := tr.Mixture(); x.Members[0].Weight != 0.5 || x.OutOfFoldKL != nil || x.Rows != 0 {
		t.Errorf("%+v", x)
	}
}

// TestDraw: of more rows than wanted, so many are drawn, others by another seed.
func TestDraw(t *testing.T) {
	count := func(v []bool) (n int) {
		for _, d := range v {
			if d {
				n++
			}
		}
		return n
	}
	if draw(1, 10, 10) != nil || count(draw(1, 1000, 10)) != 10 || slices.Equal(draw(1, 1000, 10), draw(2, 1000, 10)) {
		t.Error("other rows are drawn")
	}
	tr, err := newSmall(t, smallJob(t, param.Values{"weight_rows": int64(3)}),
		after(t, smallJob(t, param.Values{"weight_rows": int64(3)}), 6))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := tr.sample(); err != nil || s.rows() != 3 {
		t.Errorf("%v, error %v", s, err)
	}
}

// TestPredict: a prediction is the weighted sum of the members', by definition.
func TestPredict(t *testing.T) {
	rows := &dataset.Rows{N: 600, Features: 3, Labels: 2}
	var refs []dataset.RowRef
	for i := range rows.N {
		rows.X = append(rows.X, 0, float32(i%2), 0)
		refs = append(refs, dataset.RowRef{Pos: uint32(i)})
	}
	m := &model{weights: []float64{0.25, 0.75}, names: []string{"rf", "rf"}}
	for _, low := range []float32{0.25, 0.5} {
		one, err := family()[2].DecodeModel(stump(low))
		if err != nil {
			t.Fatal(err)
		}
		m.members = append(m.members, one)
	}
	out := make([]float32, 1200)
	m.Predict(out, refs, func(uint32) *dataset.Rows { return rows }, m.NewScratch())
	for i := range rows.N {
		want := float32(0.75) // mean of 1 and 0.5
		if i%2 == 1 {
			want = 0.25*(0.25+0.5)/2 + 0.75*0.5
		}
		if out[2*i] != want || out[2*i+1] != 1-want {
			t.Fatalf("row %d: %v, want %v", i, out[2*i:2*i+2], want)
		}
	}
}

// TestModelsAreRefused: tensors that are bent in one way each.
func TestModelsAreRefused(t *testing.T) {
	for want, bend := range map[string]func([]algorithms.Tensor) []algorithms.Tensor{
		`the tensor "settings" is missing`: func([]algorithms.Tensor) []algorithms.Tensor {
			return nil
		},
		"the weights of the members are [0.5 0.75], want numbers of at least 0 that sum to 1": func(
			v []algorithms.Tensor) []algorithms.Tensor {
			v[1].F64[0] = 0.5
			return v
		},
		"the weights of the members are [-0.5 1.5], want numbers of at least 0 that sum to 1": func(
			v []algorithms.Tensor) []algorithms.Tensor {
			v[1].F64[0], v[1].F64[1] = -0.5, 1.5
			return v
		},
		"the tensors of member 1 are missing": func(v []algorithms.Tensor) []algorithms.Tensor {
			return v[:12]
		},
		`the tensor "0/none/x" is not a tensor of any member`: func(v []algorithms.Tensor) []algorithms.Tensor {
			return append(v, algorithms.Tensor{Name: "0/none/x"})
		},
		`algorithm "none" is unknown`: func(v []algorithms.Tensor) []algorithms.Tensor {
			v[2].Name = "0/none/x"
			return v
		},
		"an ensemble cannot be a member": func(v []algorithms.Tensor) []algorithms.Tensor {
			v[2].Name = "0/ensemble/x"
			return v
		},
		"all members must have the same features and labels, and predict the same kind of output": func(
			v []algorithms.Tensor) []algorithms.Tensor {
			v[12].U32[2] = 4
			return v
		},
	} {
		m := &model{weights: []float64{0.25, 0.75}, names: []string{"rf", "rf"}}
		for range 2 {
			one, err := family()[2].DecodeModel(stump(0.25))
			if err != nil {
				t.Fatal(err)
			}
			m.members = append(m.members, one)
		}
		file, _ := modelfile.Encode(Name, m.Tensors(), nil)
		f, err := modelfile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(family()).DecodeModel(bend(f.Tensors))
		if !errors.Is(err, learner.ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestFootprint: a model is expected to take what its members take and their weights; a state the models twice, as
// files and to predict with, and until the weights are known the predictions of each member twice, encoded and decoded.
func TestFootprint(t *testing.T) {
	const held = 4000
	m := smallManifest()
	m.Rows, m.NonZeros = held, 3*held
	expected := func(weights, members string, folds int64) algorithms.Footprint {
		a := New(family())
		r, err := a.Resolve(param.Values{"members": members, "inner_folds": folds, "weights": weights}, m)
		if err != nil {
			t.Fatal(err)
		}
		f, err := a.Footprint(&round.Job{Algorithm: Name, Numerics: round.Numerics, Params: r.Params}, m)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	set := predictions.Set{Labels: m.Labels}
	for i := range uint32(held) {
		set.Add(i, []float32{0.25, 0.75}, []float32{0.5, 0.5})
	}
	each := int64(len(set.Encode())) // the predictions of one member
	const one, other, third = "structrf:trees=2:min_samples=2", "rf:trees=2:min_samples=2", "rf:trees=1:min_samples=2"
	for members, count := range map[string]int64{one + "," + other: 2, one + "," + other + "," + third: 3} {
		mean, fitted, validated := expected("mean", members, 2), expected("fitted", members, 2),
			expected("validated", members, 2)
		for name, f := range map[string]algorithms.Footprint{"fitted": fitted, "validated": validated} {
			if got := f.State - mean.State; got < 2*count*each || got > 6*count*each {
				t.Errorf("%d members, %s: predictions of %d bytes are expected to take %d", count, name, count*each, got)
			}
		}
		if fitted.Model != mean.Model || mean.State < 2*mean.Model+count*(4<<10) || mean.State > 2*mean.Model+count*(16<<10) {
			t.Errorf("%d members: a model of %d bytes, a state of %d", count, mean.Model, mean.State)
		}
		if more := expected("fitted", members, 12).State - fitted.State; more < 10*count*256 || more > 10*count*(4<<10) {
			t.Errorf("%d members: ten more inner folds are expected to take %d bytes", count, more)
		}
	}
	two, three := expected("mean", one+","+other, 2), expected("mean", one+","+other+","+third, 2)
	a := rf.New()
	r, err := a.Resolve(param.Values{"trees": int64(1), "min_samples": int64(2)}, m)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := a.Footprint(&round.Job{Params: r.Params}, m)
	if err != nil {
		t.Fatal(err)
	}
	if more := three.Model - two.Model - alone.Model; more < 8 || more > 64 {
		t.Errorf("a member whose model takes %d bytes adds %d more", alone.Model, more)
	}
}
