package softmaxtest

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// data builds generated rows, dense or sparse, with a tenth of them for tests.
func data(t testing.TB, rows int, density, validation float64) *dataset.Data {
	t.Helper()
	features := 12
	if density < 1 {
		features = 40
	}
	src, err := generate.New(generate.Options{Rows: rows, Features: features, Labels: 4, Density: density, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	if m.Sparse != (density < 1) {
		t.Fatalf("density %v: sparse %v", density, m.Sparse)
	}
	return datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.1, ValidationFraction: validation}, nil)
}

// settings train in a second.
func settings() gradient.Settings {
	return gradient.Settings{
		Rule:    gradient.Rule{Rate: 0.5, RateStep: 300, RateDecay: 0.5, Momentum: 0.9},
		Scaling: scaling.Standard, BatchSize: 64, Steps: 3000, Interval: 20, Terms: 1,
	}
}

// train runs a job to its end; each sees the trainer after every round and may return another.
func train(t testing.TB, set gradient.Settings, d *dataset.Data, each func(*trainer) *trainer) *trainer {
	t.Helper()
	tr := newTrainer(set, 3, d.Manifest)
	tr.Start()
	return contract.Follow(t, tr, contract.Lanes(t, newKernel(&set, 3, d.Manifest), d, 2), each)
}

func same(tr *trainer) *trainer { return tr }

func digest(t testing.TB, tr *trainer) string {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return modelfile.Digest("softmax", m.Tensors())
}

// reference is softmax regression in float64, written from its equations: the slow twin.
type reference struct {
	x, d  [][]float64 // rows: features, standardised, and a 1; labels
	theta [][]float64 // features and bias × labels
}

// newReference has the rows of some roles, standardised by themselves where scaled.
func newReference(d *dataset.Data, roles dataset.Roles, scaled bool) *reference {
	r := new(reference)
	for _, ref := range d.Select(0, len(d.Manifest.Shards), roles) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		x := make([]float64, d.Manifest.Features+1)
		x[d.Manifest.Features] = 1
		if s := gradient.SampleOf(rows, pos); s.Sparse {
			for i, c := range s.Columns {
				x[c] = float64(s.X[i])
			}
		} else {
			for c, v := range s.X {
				x[c] = float64(v)
			}
		}
		var label []float64
		for _, v := range rows.Label(pos) {
			label = append(label, float64(v))
		}
		r.x, r.d = append(r.x, x), append(r.d, label)
	}
	for j := 0; scaled && j < d.Manifest.Features; j++ {
		mean, variance := 0.0, 0.0
		for _, x := range r.x {
			mean += x[j] / float64(len(r.x))
		}
		for _, x := range r.x {
			variance += (x[j] - mean) * (x[j] - mean) / float64(len(r.x))
		}
		for _, x := range r.x {
			x[j] = (x[j] - mean) / math.Sqrt(variance)
		}
	}
	r.theta = make([][]float64, d.Manifest.Features+1)
	for j := range r.theta {
		r.theta[j] = make([]float64, d.Manifest.Labels)
	}
	return r
}

func (r *reference) predict(x []float64) []float64 {
	p, sum := make([]float64, len(r.theta[0])), 0.0
	for c := range p {
		for j, v := range x {
			p[c] += v * r.theta[j][c]
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// loss is the mean K-L divergence.
func (r *reference) loss() (kl float64) {
	for i, x := range r.x {
		for c, p := range r.predict(x) {
			if d := r.d[i][c]; d > 0 {
				kl += d * math.Log(d/p) / float64(len(r.x))
			}
		}
	}
	return kl
}

// fit goes down the gradient of all rows.
func (r *reference) fit(steps int, rate float64) {
	for range steps {
		for i, g := range r.gradient() {
			for c := range g {
				r.theta[i][c] -= rate * g[c]
			}
		}
	}
}

func (r *reference) gradient() [][]float64 {
	g := make([][]float64, len(r.theta))
	for j := range g {
		g[j] = make([]float64, len(r.theta[0]))
	}
	for i, x := range r.x {
		for c, p := range r.predict(x) {
			for j, v := range x {
				g[j][c] += v * (p - r.d[i][c]) / float64(len(r.x))
			}
		}
	}
	return g
}

// set takes the parameters of a trainer.
func (r *reference) set(theta []float32) {
	for j, row := range r.theta {
		for c := range row {
			row[c] = float64(theta[j*len(row)+c])
		}
	}
}

// TestGradient holds the gradient of a mini-batch that has every row against central differences
// of the loss in float64.
func TestGradient(t *testing.T) {
	for _, density := range []float64{1, 0.1} {
		d := data(t, 70, density, 0)
		r := newReference(d, dataset.Train, true)
		set := settings()
		set.BatchSize = len(r.x) // below 64: one unit, which draws each row once
		set.Momentum, set.Steps = 0, 1
		before := newTrainer(set, 3, d.Manifest)
		before.Start()
		r.set(before.Theta())
		tr := train(t, set, d, same)
		const h = 1e-5
		for j, row := range r.theta {
			for c, x := range row {
				row[c] = x + h
				up := r.loss()
				row[c] = x - h
				down := r.loss()
				row[c] = x
				at := j*len(row) + c
				got := float64(before.Theta()[at]-tr.Theta()[at]) / set.Rate
				if want := (up - down) / (2 * h); math.Abs(got-want) > 1e-6 {
					t.Fatalf("density %v: the step's gradient by feature %d, label %d is %v, want %v", density, j, c, got, want)
				}
			}
		}
	}
}

// TestReachesTheOptimum: SGD and Adam end at the loss that a slow reference in float64 has when
// it has converged, on dense and on sparse rows.
func TestReachesTheOptimum(t *testing.T) {
	testkit.WithoutRace(t)
	for _, density := range []float64{1, 0.1} {
		d := data(t, 400, density, 0)
		want := newReference(d, dataset.Train, true)
		want.fit(1500, 1)
		mean := newReference(d, dataset.Train, true)
		for j := range mean.x {
			clear(mean.x[j][:d.Manifest.Features])
		}
		mean.fit(200, 1) // the bias alone
		for _, adam := range []bool{false, true} {
			set := settings()
			if adam {
				set.Adam, set.Rate = true, 0.02
			}
			got := newReference(d, dataset.Train, true)
			got.set(train(t, set, d, same).Theta())
			t.Logf("density %v, adam %v: K-L %.6f, reference %.6f, bias alone %.6f", density, adam, got.loss(), want.loss(),
				mean.loss())
			if !(got.loss() < want.loss()*1.002+1e-6) || !(want.loss() < 0.9*mean.loss()) {
				t.Errorf("density %v, adam %v: K-L %v, reference %v, of the bias alone %v", density, adam, got.loss(), want.loss(),
					mean.loss())
			}
		}
	}
}

// stopping is a job with early stopping and a refit.
func stopping() gradient.Settings {
	set := settings()
	set.StopRule, set.Refit = gradient.StopRule{Validates: true, Patience: 3}, true
	set.Rate, set.BatchSize = 4, 32 // too fast to go on for long
	return set
}

// TestRefit: a refit is the job on training and validation rows with as many steps as were
// best, and its training goes on from the state after any round.
func TestRefit(t *testing.T) {
	for _, kind := range scaling.Kinds {
		for _, margin := range []float64{0, 0.5} {
			set := stopping()
			set.Scaling, set.Margin = kind, margin
			d := data(t, 300, 0.1, 0.2)
			tr := train(t, set, d, func(tr *trainer) *trainer { return again(t, set, d.Manifest, tr) })
			best, p := tr.Stopping.Best.Step, tr.Progress()
			if best == 0 || tr.Before <= best || p.Refit != best || p.Step != tr.Before+best || p.BestLoss <= 0 {
				t.Fatalf("%s: progress %+v", kind, p)
			}
			alone := set
			alone.StopRule, alone.Refit, alone.Steps = gradient.StopRule{}, false, best
			if got, want := digest(t, tr), digest(t, train(t, alone, data(t, 300, 0.1, 0), same)); got != want {
				t.Errorf("%s, margin %v: digest %s, without validation %s", kind, margin, got, want)
			}
		}
	}
}

// again returns a trainer with tr's state.
func again(t testing.TB, set gradient.Settings, m *dataset.Manifest, tr *trainer) *trainer {
	t.Helper()
	state, err := tr.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	next := newTrainer(set, 3, m)
	if err := fields.Read(state, 1, next.State); err != nil {
		t.Fatal(err)
	}
	if second, err := next.AppendState(nil); err != nil || !bytes.Equal(second, state) ||
		next.Progress() != tr.Progress() {
		t.Fatalf("a restored trainer has another state, error %v", err)
	}
	return next
}

// TestStops: the model without a refit is the state of the least validation loss, and training
// ends once the patience does.
func TestStops(t *testing.T) {
	set := stopping()
	set.Refit = false
	d := data(t, 300, 1, 0.2)
	var losses []float64
	at := uint64(0)
	tr := train(t, set, d, func(tr *trainer) *trainer {
		if p := tr.Progress(); p.ValidatedAt != at {
			at = p.ValidatedAt
			r := newReference(d, dataset.Validation, false)
			x := tr.Fit.Values()
			for _, row := range r.x {
				for j := range x.Shift {
					row[j] = (row[j] - x.Shift[j]) * x.Scale[j]
				}
			}
			r.set(tr.Theta())
			if math.Abs(p.Validation-r.loss()) > 1e-6 {
				t.Errorf("step %d: validation loss %v, want %v", at, p.Validation, r.loss())
			}
			losses = append(losses, p.Validation)
		}
		return tr
	})
	best := 0
	for i, loss := range losses {
		if loss < losses[best] {
			best = i
		}
	}
	if len(losses) != best+1+int(set.Patience) || tr.Stopping.Best.Step != uint64(best+1)*set.Interval ||
		tr.Step >= set.Steps {
		t.Errorf("best at step %d, stopped at %d; validations %v", tr.Stopping.Best.Step, tr.Step, losses)
	}
	v, err := tr.Trained()
	if err != nil || &v[0].Data[0] != &tr.Stopping.Best.Vectors[0].Data[0] {
		t.Errorf("the model is not the best state: %v", err)
	}
}

// TestModel: the model predicts what the equations say of its tensors.
func TestModel(t *testing.T) {
	set := settings()
	set.Steps = 100
	for _, density := range []float64{1, 0.1} {
		d := data(t, 200, density, 0)
		tr := train(t, set, d, same)
		m, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		r := newReference(d, dataset.Train, true)
		r.set(tr.Theta())
		refs := d.Select(0, len(d.Manifest.Shards), dataset.Train)
		_, labels := m.Shape()
		got := make([]float32, len(refs)*labels)
		m.Predict(got, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
		for i, x := range r.x {
			for c, p := range r.predict(x) {
				if e := math.Abs(float64(got[i*labels+c]) - p); e > 1e-5 {
					t.Fatalf("row %d, label %d: %v, want %v", i, c, got[i*labels+c], p)
				}
			}
		}
	}
}

// TestErrors: a job without rows and a round of another's are errors.
func TestErrors(t *testing.T) {
	d := data(t, 60, 1, 0)
	tr := newTrainer(settings(), 3, d.Manifest)
	tr.Start()
	r, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	var empty round.Partial
	empty.Reset(r.Reduce().Shape)
	if err := tr.Fold(&round.Result{Sum: &empty}); err == nil ||
		!strings.Contains(err.Error(), "there are no training samples") {
		t.Errorf("no rows: error %v", err)
	}
	if _, err := tr.Model(); err == nil {
		t.Error("a model before the end")
	}
	k := newKernel(&gradient.Settings{BatchSize: 1}, 3, d.Manifest)
	if err := k.Run(&empty, round.Task{Of: 1, Op: 9}, d, nil, nil, k.NewScratch()); err == nil {
		t.Error("an unknown operation is run")
	}
}
