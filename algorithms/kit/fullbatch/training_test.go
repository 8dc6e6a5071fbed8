package fullbatch

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// curved is the objective of the tests: over rows with a number each, the mean of
// Σ_j curve_j (x_j - row)⁴/4, which no method minimises in one step.
type curved struct{ curve []float64 }

const varPoint = 1

func (o *curved) Sums() int { return len(o.curve) }

func (o *curved) AppendVars(vars []round.Var, x []float64, version uint64) []round.Var {
	return append(vars, round.Var{ID: varPoint, Version: version, Data: num.Bytes64(slices.Clone(x))})
}

func (o *curved) Fold(g, _ []float64, rows, losses float64, sums []float64) float64 {
	for j := range g {
		g[j] = sums[j] / rows
	}
	return losses / rows
}

// sum is what the workers do of it.
func (o *curved) sum(to []float64, x []float64, rows []float64) {
	for _, y := range rows {
		to[0]++
		for j, k := range o.curve {
			away := x[j] - y
			to[1] += k * away * away * away * away / 4
			if len(to) > SumsAt {
				to[SumsAt+j] += k * away * away * away
			}
		}
	}
}

// The rows of the tests; the least mean loss of the validation rows is between the start and the
// minimum of the training rows, which is near 2.115.
var (
	trainRows      = []float64{1, 2, 3, 3}
	validationRows = []float64{1, 1.5}
)

// settings are those of the tests.
func settings(validates bool) Settings {
	return Settings{StopRule: gradient.StopRule{Validates: validates, Patience: 2}, Scaling: scaling.None, Steps: 60,
		Interval: 2, Derived: 1}
}

var manifest = &dataset.Manifest{Rows: 6, Features: 3, Labels: 2, Shards: make([]dataset.ShardRef, 4)}

// repeating is L-BFGS from 0 as a Repeater.
type repeating struct {
	*lbfgs.Minimiser
	options lbfgs.Options
}

func (r *repeating) Repeat(iterations uint64) {
	r.options.Iterations = int(iterations)
	r.RestartAt(make([]float64, len(r.Best())), r.options)
}

// State also lists the options, which Repeat changes.
func (r *repeating) State(l *fields.List) {
	n := uint64(r.options.Iterations)
	l.Uint64(&n)
	if l.Reading() {
		r.options.Iterations = int(n)
		r.Restart(r.options)
	}
	r.Minimiser.State(l)
}

// newTraining returns a training by L-BFGS, not started, and its objective.
func newTraining(set Settings) (*Training, *curved) {
	o := &curved{[]float64{1, 10, 0.01}}
	options := lbfgs.Options{Iterations: int(set.Steps), Gradient: 1e-8}
	by := lbfgs.New(make([]float64, len(o.curve)), options)
	return New(set, o, &repeating{by, options}, scaling.NewFit(set.Scaling, manifest), manifest), o
}

// step takes a round: it computes the sum of what Next describes, and folds it. It reports false at the end.
func step(t *testing.T, tr *Training, o *curved) (r round.Round, more bool) {
	t.Helper()
	next, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	if next == nil {
		return r, false
	}
	r = *next
	var sum round.Partial
	sum.Reset(r.Reduce().Shape)
	x := num.Float64s(round.Vars(r.Vars).Get(varPoint))
	rows := map[dataset.Roles][]float64{
		dataset.Train: trainRows, dataset.Validation: validationRows, dataset.Train |
			dataset.Validation: slices.Concat(trainRows, validationRows),
	}[r.Roles]
	o.sum(sum.F64, x, rows)
	if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// mean returns the mean loss of rows.
func (o *curved) mean(x, rows []float64) float64 {
	var to [SumsAt]float64
	o.sum(to[:], x, rows)
	return to[1] / to[0]
}

// TestCourse: evaluations are at the optimiser's point and validations at its best, after each Interval-th
// iteration and once after the last; losses, iterations and rows are counted as they come.
func TestCourse(t *testing.T) {
	set := settings(true)
	set.Patience = 1000
	tr, o := newTraining(set)
	tr.Start()
	var validated []uint64
	versions := make(map[uint64][]byte)
	evaluations := uint64(0)
	for {
		point := slices.Clone(tr.Optimiser.Point())
		r, more := step(t, tr, o)
		if !more {
			break
		}
		v := round.Vars(r.Vars)
		if before, ok := versions[v.Version(varPoint)]; ok && !slices.Equal(before, v.Get(varPoint)) {
			t.Fatalf("version %d stands for two points", v.Version(varPoint))
		}
		versions[v.Version(varPoint)] = slices.Clone(v.Get(varPoint))
		p := tr.Progress()
		switch r.Op {
		case OpEvaluate:
			evaluations++
			if !slices.Equal(num.Float64s(v.Get(varPoint)), point) || r.Roles != dataset.Train ||
				r.Reduce().DerivedVersion != 1 || r.Reduce().Shape.F64 != SumsAt+3 {
				t.Fatalf("evaluation %d: %+v, want one at %v", evaluations, r, point)
			}
		case gradient.OpValidate:
			best := tr.Optimiser.Best()
			if !slices.Equal(num.Float64s(v.Get(varPoint)), best) || r.Roles != dataset.Validation {
				t.Fatalf("validation at iteration %d: %+v, want one at %v", p.Step, r, best)
			}
			if validated = append(validated, p.Step); p.Validation != o.mean(best, validationRows) || p.ValidatedAt != p.Step {
				t.Fatalf("progress %+v, want the validation loss %v", p, o.mean(best, validationRows))
			}
		}
		if want := o.mean(tr.Optimiser.Best(), trainRows); math.Abs(p.Loss-want) > 1e-15 {
			t.Fatalf("iteration %d: loss %v, want %v", p.Step, p.Loss, want)
		}
		if p.Samples != evaluations*uint64(len(trainRows)) || tr.Evaluations != evaluations {
			t.Fatalf("%d rows in %d evaluations, want %d", p.Samples, tr.Evaluations, evaluations)
		}
	}
	last := tr.Progress().Step
	var want []uint64
	for n := set.Interval; n <= last; n += set.Interval {
		want = append(want, n)
	}
	if last%set.Interval != 0 {
		want = append(want, last)
	}
	if !slices.Equal(validated, want) || last < 5 || evaluations <= last {
		t.Errorf("validations at %v, want them at %v; %d evaluations", validated, want, evaluations)
	}
}

// scripted is an Optimiser whose evaluations end an iteration, or do not, as told; after the last it is done.
type scripted struct {
	accepts    []bool
	told       int
	iterations int
	x          [3]float64
}

func (s *scripted) Point() []float64   { return s.x[:] }
func (s *scripted) Best() []float64    { return s.x[:] }
func (s *scripted) Iterations() int    { return s.iterations }
func (s *scripted) Done() bool         { return s.told == len(s.accepts) }
func (s *scripted) State(*fields.List) {}
func (s *scripted) Tell(float64, []float64) {
	if s.accepts[s.told] {
		s.iterations++
	}
	s.told++
}

// TestTrials: evaluations that end no iteration change no loss and are not validated again, also where the last
// of them ends the search.
func TestTrials(t *testing.T) {
	tr, o := newTraining(Settings{StopRule: gradient.StopRule{Validates: true, Patience: 9}, Scaling: scaling.None,
		Steps: 9, Interval: 1})
	by := &scripted{accepts: []bool{false, true, false, true, false, false}}
	tr.Optimiser = by
	tr.Start()
	var course string
	for {
		by.x[0] = float64(by.told)
		before := tr.Progress().Loss
		r, more := step(t, tr, o)
		if !more {
			break
		}
		course += map[uint8]string{OpEvaluate: "e", gradient.OpValidate: "v"}[r.Op]
		if p := tr.Progress(); r.Op == OpEvaluate && by.told > 1 && (p.Loss != before) != by.accepts[by.told-1] {
			t.Errorf("evaluation %d: the loss goes from %v to %v", by.told, before, p.Loss)
		}
	}
	if course != "eeveevee" {
		t.Errorf("evaluations and validations come as %s", course)
	}
}

// TestEarlyStopping: training ends once the patience does, and what is trained is the point of the least
// validation loss; without validation it is the last one, the minimum.
func TestEarlyStopping(t *testing.T) {
	for _, validates := range []bool{true, false} {
		set := settings(validates)
		set.Interval = 1
		tr, o := newTraining(set)
		tr.Start()
		best, at, point := math.Inf(1), uint64(0), []float64(nil)
		for {
			r, more := step(t, tr, o)
			if !more {
				break
			}
			if p := tr.Progress(); r.Op == gradient.OpValidate && p.Validation < best {
				best, at, point = p.Validation, p.Step, slices.Clone(tr.Optimiser.Best())
			}
		}
		x, err := tr.Trained()
		if err != nil {
			t.Fatal(err)
		}
		p := tr.Progress()
		if !validates {
			if math.Abs(x[0]-2.1148) > 1e-3 || p.Validation != 0 {
				t.Errorf("without validation the point is %v", x)
			}
			continue
		}
		if !slices.Equal(x, point) || p.BestStep != at || p.BestLoss != best || p.Step != at+set.Patience ||
			tr.Optimiser.Done() {
			t.Errorf("point %v of %+v, want %v at iteration %d with %v", x, p, point, at, best)
		}
	}
}

// TestRefit: after early stopping the training begins again, on training and validation rows, for as many iterations
// as were best: it is then where a training on these rows alone is. What was derived of the training rows has another
// version.
func TestRefit(t *testing.T) {
	set := settings(true)
	set.Refit, set.Interval, set.OwnKind = true, 1, "means"
	tr, o := newTraining(set)
	began := 0
	tr.Restart = func() { began++ }
	tr.Start()
	tr.Resume()
	versions := make(map[uint64]bool)
	for !tr.Refitting {
		r, _ := step(t, tr, o)
		versions[r.Vars[0].Version] = true
	}
	before, best := tr.Before, tr.Stopping.Best.Step
	if r, err := tr.Next(); err != nil || tr.Phase != PhaseOwn || began != 1 || r.Roles != dataset.Train|
		dataset.Validation || before != best+set.Patience {
		t.Fatalf("phase %d, round %+v, after %d iterations: want the algorithm's own round, on training and validation "+
			"samples", tr.Phase, r, before)
	}
	tr.Resume()
	for {
		r, more := step(t, tr, o)
		if !more {
			break
		}
		if r.Op != OpEvaluate || r.Roles != dataset.Train|dataset.Validation || r.Reduce().DerivedVersion != 2 ||
			versions[r.Vars[0].Version] {
			t.Fatalf("round %+v of a refit", r)
		}
	}
	if p := tr.Progress(); p.Refit != best || p.Step != before+best || p.Steps != p.Step || p.BestStep != best {
		t.Errorf("progress %+v, want a refit of %d iterations after %d", p, best, before)
	}
	alone := settings(false)
	alone.Steps = best
	want, wantObjective := newTraining(alone)
	want.Start()
	all := slices.Concat(trainRows, validationRows)
	for !want.Optimiser.Done() {
		var sum round.Partial
		sum.Reset(round.Shape{F64: SumsAt + 3})
		wantObjective.sum(sum.F64, want.Optimiser.Point(), all)
		if err := want.Fold(&round.Result{Sum: &sum}); err != nil {
			t.Fatal(err)
		}
	}
	x, err := tr.Trained()
	y, _ := want.Trained()
	if err != nil || !slices.Equal(x, y) {
		t.Errorf("the refit ends at %v, want %v, error %v", x, y, err)
	}
}

// TestOrder: scaling comes first, then the algorithm's own rounds until Resume, then evaluations.
func TestOrder(t *testing.T) {
	set := settings(false)
	set.Scaling, set.OwnKind = scaling.Standard, "means"
	tr, o := newTraining(set)
	tr.Start()
	for rounds := 0; tr.Phase == PhaseScaling; rounds++ {
		r, err := tr.Next()
		if err != nil || r.Kind != "scaling" || rounds > 5 {
			t.Fatalf("round %d: %+v, error %v", rounds, r, err)
		}
		sum := round.Partial{F64: make([]float64, r.Reduce().Shape.F64)}
		sum.F64[0] = 4
		if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tr.Next()
	if err != nil || tr.Phase != PhaseOwn || r.Kind != "means" || r.Tasks != len(manifest.Shards) || r.Op != 0 {
		t.Fatalf("phase %d, round %+v, error %v: want the algorithm's own", tr.Phase, r, err)
	}
	if err := tr.Fold(&round.Result{Sum: new(round.Partial)}); err == nil || !strings.Contains(err.Error(), "means") {
		t.Errorf("a round of the algorithm's own is folded with error %v", err)
	}
	tr.Resume()
	if r, _ := step(t, tr, o); r.Op != OpEvaluate {
		t.Errorf("round %+v after Resume", r)
	}
}

// TestRefusals: what cannot be trained on, and what is asked for at a wrong time.
func TestRefusals(t *testing.T) {
	start := func() *Training {
		tr, _ := newTraining(settings(false))
		tr.Start()
		return tr
	}
	sum := func(rows, losses float64) *round.Result {
		return &round.Result{Sum: &round.Partial{F64: []float64{rows, losses, 0, 0, 0, 0}}}
	}
	if err := start().Fold(sum(0, 0)); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("no rows: error %v", err)
	}
	for _, loss := range []float64{math.NaN(), math.Inf(1)} {
		if err := start().Fold(sum(4, loss)); err == nil || !strings.Contains(err.Error(), "finite") {
			t.Errorf("a loss of %v at the start: error %v", loss, err)
		}
	}
	tr := start()
	if _, err := tr.Trained(); err == nil || !strings.Contains(err.Error(), "iteration 0 of 60") {
		t.Errorf("a model at the start: error %v", err)
	}
	if err := tr.Fold(sum(4, 8)); err != nil || tr.Phase != PhaseDone { // the gradient is 0
		t.Fatalf("phase %d, error %v", tr.Phase, err)
	}
	if err := tr.Fold(sum(4, 8)); err == nil {
		t.Error("a sum is folded after the end")
	}
	if p := tr.Progress(); p.Loss != 2 || p.Phase != "done" {
		t.Errorf("progress %+v", p)
	}
}

// TestNegativeLoss: a loss that rounding made negative is told as 0.
func TestNegativeLoss(t *testing.T) {
	tr, _ := newTraining(settings(false))
	tr.Start()
	if p := tr.Progress(); p.Loss != -1 {
		t.Errorf("loss %v before there is one", p.Loss)
	}
	if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: []float64{4, -1e-18, 0, 1, 1, 1}}}); err != nil ||
		tr.Progress().Loss != 0 {
		t.Errorf("loss %v, error %v", tr.Progress().Loss, err)
	}
}

// state returns the state of a training, which fits the estimate.
func state(t *testing.T, tr *Training) []byte {
	t.Helper()
	b, err := fields.Append(nil, 1, tr.State)
	if err != nil {
		t.Fatal(err)
	}
	n := len(tr.slope)
	if f := Memory(&tr.Settings, n, lbfgs.Bytes(n), tr.Objective.Sums(), manifest); int64(len(b)) > f.State ||
		f.Node < 8*int64(SumsAt+tr.Objective.Sums()) {
		t.Fatalf("a state of %d bytes, estimated %+v", len(b), f)
	}
	return b
}

// TestState: a training that is cut after each round ends at the same point, bit for bit.
func TestState(t *testing.T) {
	refits := settings(true)
	refits.Refit = true
	for _, set := range []Settings{settings(true), settings(false), refits} {
		whole, o := newTraining(set)
		whole.Start()
		cut, _ := newTraining(set)
		cut.Start()
		for more := true; more; {
			before := state(t, cut)
			cut, _ = newTraining(set)
			if err := fields.Read(before, 1, cut.State); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(state(t, cut), before) || cut.Progress() != whole.Progress() {
				t.Fatalf("a state is restored to another one: %+v, want %+v", cut.Progress(), whole.Progress())
			}
			_, more = step(t, whole, o)
			if _, other := step(t, cut, o); other != more {
				t.Fatalf("the training that is cut goes on: %v", other)
			}
		}
		a, err := whole.Trained()
		b, other := cut.Trained()
		if err != nil || other != nil || !slices.Equal(a, b) {
			t.Errorf("points %v and %v, errors %v and %v", a, b, err, other)
		}
	}
}

// TestStatesRefused: states that no run can be in.
func TestStatesRefused(t *testing.T) {
	for name, damage := range map[string]func(tr *Training){
		"no such phase":             func(tr *Training) { tr.Phase = phases },
		"scaling that there is not": func(tr *Training) { tr.Phase = PhaseScaling },
		"rounds of its own":         func(tr *Training) { tr.Phase = PhaseOwn },
		"an end that is none":       func(tr *Training) { tr.Phase = PhaseDone },
		"a validation at the start": func(tr *Training) { tr.Phase = PhaseValidation },
		"an iteration from nothing": func(tr *Training) {
			step(t, tr, tr.Objective.(*curved))
			step(t, tr, tr.Objective.(*curved))
			tr.Evaluations = 0
		},
		"a validation in time to come": func(tr *Training) { tr.Stopping.At = 7 },
		"a refit without a best point": func(tr *Training) { tr.Refitting = true },
		"iterations before no refit":   func(tr *Training) { tr.Before = 1 },
		"a bar without stages":         func(tr *Training) { tr.Stopping.Bar = 0.5 },
		"a best point at the start":    func(tr *Training) { tr.Stopping.Best.Any, tr.Stopping.Best.Loss = true, 1 },
	} {
		set := settings(true)
		set.Refit = true
		tr, _ := newTraining(set)
		tr.Start()
		damage(tr)
		b, err := fields.Append(nil, 1, tr.State)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := newTraining(set)
		if err := fields.Read(b, 1, again.State); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// staged is a search whose stage has ended.
type staged struct{ scripted }

func (*staged) Repeat(uint64)                { panic("a refit") }
func (*staged) StageDone() bool              { return true }
func (*staged) Advance(uint64, bool) float64 { panic("a stage begins") }

// TestStageEndRefused: a state with an evaluation in a stage that has ended. Advance follows the end of a stage at
// once.
func TestStageEndRefused(t *testing.T) {
	for _, by := range []Optimiser{&scripted{accepts: []bool{true}}, &staged{scripted{accepts: []bool{true}}}} {
		tr, _ := newTraining(settings(false))
		tr.Start()
		tr.Optimiser = by
		b, err := fields.Append(nil, 1, tr.State)
		if err != nil {
			t.Fatal(err)
		}
		_, refused := by.(Stager)
		if err := fields.Read(b, 1, tr.State); errors.Is(err, fields.ErrState) != refused {
			t.Errorf("%T: error %v", by, err)
		}
	}
}
