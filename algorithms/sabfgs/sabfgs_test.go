package sabfgs

import (
	"errors"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// cases are small jobs.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3),
		"patience": int64(2)}},
	{Name: "path", Set: param.Values{"iterations": int64(50), "validation_interval": int64(7)}},
	{Name: "fixed", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3),
		"patience": int64(2), "refit": false}},
	{Name: "path alone", Set: param.Values{"iterations": int64(50), "validation_interval": int64(7), "refit": false}},
	{Name: "minmax", Set: param.Values{"iterations": int64(12), "scaling": "minmax", "validation_fraction": 0.0}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, New(), contract.Sets(cases)...)
}

// problem builds generated rows, whose features differ in size so that fits are not easy.
func problem(t testing.TB, density float64) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 300, Features: 20, Labels: 4, Density: density, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	for _, rows := range shards {
		for i := range rows.X {
			column := i % m.Features
			if m.Sparse {
				column = int(rows.Index[i])
			}
			rows.X[i] *= []float32{1, 8, 0.125, 30, 0.5}[column%5]
		}
	}
	return m, shards
}

// train runs a job to its end.
func train(t testing.TB, m *dataset.Manifest, shards []*dataset.Rows, given param.Values, lanes int,
	cut bool) algorithms.Trainer {
	t.Helper()
	j := contract.Job(t, New(), given, m, dataset.Split{Seed: 5, TestFraction: 0.1})
	d := datatest.Data(t, m, shards, j.Split, nil)
	each := contract.Cut(t, New(), j, m)
	if !cut {
		each = nil
	}
	return contract.Train(t, New(), j, d, lanes, each)
}

// TestGoldenDigests pins the bits of small jobs, on one lane and on many, and cut after every
// round. The searches of these jobs take more than one trial here and there.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{
		"paper":             "2f150bcd8924ec6e5f89c6ae99e10bd889c222bdfe00e9259ee996e799846b09",
		"auto":              "7dd86a6dcc1d680c388d75b424b661d9b46d0a1b890b901d94026e15f6eb7de5",
		"path":              "d4c665822a7b6576cd683cdab9f92951d5ecee47428e51789d3625df616ded12",
		"path sparse":       "f1d1518bb5c48ae3334eb39e6500e0f084b299b44a868ff5b328a5c7a61e0ff5",
		"fixed":             "4b52764c95b87efbdc81deb531c8e9e505aef90dad38b76b7fdcdc457e131d40",
		"path alone":        "1d99ef64586a1bd5af53fb299fd8bc3d1532faa16d6b9574dae86c05fb371ca3",
		"path alone sparse": "5cd8d2fcb359d12f100dc793aa847c742d9cec8e454a19818ef1e42bbd56856f",
		"minmax":            "5fa5cf6af6d4439ceb1f1a642401d7b64e41039fdc05dcfd0d3b7e5b28ba699f",
		"long":              "d6a706496ff83fe692943af2276fe46fb0130b68642abe07b67c187b4d9676d8",
		"paper sparse":      "1135588f1b22f8f72b0f8f6e401d404ca3ed0f6db5f12d40629890901e4a56a2",
		"auto sparse":       "cbeb78141b629473b498ed3627eaf6e03760434534dedd3fa9416b9afb9aa00c",
		"fixed sparse":      "c187df46cefc8b2c779db844ad4ee55a92ae18b2fc274a44f8504b36bb248fcb",
		"minmax sparse":     "40aa1f7054ff744b8bc18fada117fd42df9bd19e004d2f22210e34d9a339f05a",
		"long sparse":       "e3b56552bc2d372c1e1bfc8d50cb5da5d77c68415d17cf83c9595c49d492e284",
	}
	for _, density := range []float64{1, 0.1} {
		m, shards := problem(t, density)
		for _, c := range append(cases, contract.Case{Name: "long", Set: param.Values{"preset": "paper",
			"iterations": int64(60)}}) {
			tr := train(t, m, shards, c.Set, 1, false)
			name := c.Name
			if m.Sparse {
				name += " sparse"
			}
			one := contract.Digest(t, New(), tr)
			if one != want[name] {
				t.Errorf("%q: %q,", name, one)
			}
			if many := contract.Digest(t, New(), train(t, m, shards, c.Set, 3, false)); many != one {
				t.Errorf("%s: on three lanes %s", name, many)
			}
			if cut := contract.Digest(t, New(), train(t, m, shards, c.Set, 1, true)); cut != one {
				t.Errorf("%s: cut after every round %s", name, cut)
			}
			if by := tr.(*maxent.Trainer); c.Name == "long" && by.Evaluations < by.Progress().Step+3 {
				t.Errorf("%s: %d evaluations in %d iterations: no search of several trials is cut", name, by.Evaluations,
					by.Progress().Step)
			}
		}
	}
}

// TestMergedDigests: a model of incomplete labels has the same bits on one lane and on many, and cut after every round;
// with nothing hidden, the bits of complete labels.
func TestMergedDigests(t *testing.T) {
	m, shards := problem(t, 1)
	for _, mask := range []dataset.Mask{{Rate: 0.5, Unlabelled: 0.1}, {Rate: 1e-300}} {
		for _, c := range cases {
			j := contract.Job(t, New(), c.Set, m, dataset.Split{Seed: 5, TestFraction: 0.1, Mask: mask})
			d := datatest.Data(t, m, shards, j.Split, nil).Masked(mask, 5)
			one := contract.Digest(t, New(), contract.Train(t, New(), j, d, 1, nil))
			if many := contract.Digest(t, New(), contract.Train(t, New(), j, d, 3, nil)); many != one {
				t.Errorf("%s: on three lanes %s, want %s", c.Name, many, one)
			}
			if cut := contract.Digest(t, New(), contract.Train(t, New(), j, d, 1, contract.Cut(t, New(), j, m))); cut != one {
				t.Errorf("%s: cut after every round %s, want %s", c.Name, cut, one)
			}
			complete := contract.Digest(t, New(), train(t, m, shards, c.Set, 1, false))
			if same := complete == one; same != (mask.Rate < 0.1) {
				t.Errorf("%s, %+v: digest %s, of complete labels %s", c.Name, mask, one, complete)
			}
		}
	}
}

// TestStopsEarly: the model is the point of the least validation loss, which is the mean K-L of
// the validation rows, and training ends once the patience does.
func TestStopsEarly(t *testing.T) {
	m, shards := problem(t, 1)
	given := param.Values{"decay": "fixed", "l2": 0.0, "validation_interval": int64(2), "patience": int64(3),
		"validation_fraction": 0.3, "refit": false}
	j := contract.Job(t, New(), given, m, dataset.Split{Seed: 5})
	d := datatest.Data(t, m, shards, j.Split, nil)
	best, at, last := math.Inf(1), uint64(0), uint64(0)
	tr := contract.Train(t, New(), j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
		if p := tr.Progress(); p.ValidatedAt != last {
			if last = p.ValidatedAt; last%2 != 0 {
				t.Errorf("a validation at iteration %d", last)
			}
			if p.Validation < best {
				best, at = p.Validation, last
			}
		}
		return tr
	}).(*maxent.Trainer)
	p := tr.Progress()
	if p.BestStep != at || p.BestLoss != best || p.Step != at+2*3 || p.Step >= p.Steps {
		t.Errorf("progress %+v, want the best at %d, %v", p, at, best)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	if kl, _ := divergence(model, d, dataset.Validation); math.Abs(kl-best) > 1e-6 {
		t.Errorf("the model's K-L of the validation samples is %v, want %v", kl, best)
	}
}

// divergence returns the mean K-L of rows of some roles, of a model and of predicting the mean of the
// training and validation rows.
func divergence(m algorithms.Model, d *dataset.Data, roles dataset.Roles) (model, mean float64) {
	shards, labels := len(d.Manifest.Shards), d.Manifest.Labels
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	average := make([]float64, labels)
	rest := d.Select(0, shards, dataset.Train|dataset.Validation)
	for _, ref := range rest {
		for c, x := range shard(ref.Shard).Label(int(ref.Pos)) {
			average[c] += float64(x) / float64(len(rest))
		}
	}
	refs := d.Select(0, shards, roles)
	p := make([]float32, len(refs)*labels)
	m.Predict(p, refs, shard, m.NewScratch())
	for i, ref := range refs {
		for c, x := range shard(ref.Shard).Label(int(ref.Pos)) {
			if x > 0 {
				model += float64(x) * math.Log(float64(x)/max(1e-12, float64(p[i*labels+c]))) / float64(len(refs))
				mean += float64(x) * math.Log(float64(x)/average[c]) / float64(len(refs))
			}
		}
	}
	return model, mean
}

// TestPresets: what follows from the data.
func TestPresets(t *testing.T) {
	dense := &dataset.Manifest{Rows: 213, Features: 243, Labels: 6, NonZeros: 213 * 243}
	sparse := &dataset.Manifest{Rows: 7755, Features: 1869, Labels: 5, NonZeros: 7755 * 21, Sparse: true}
	config := func(s maxent.Settings, by maxent.Search, l2 float64) Config {
		return Config{maxent.Fit{Settings: s, Search: by, L2: l2}}
	}
	rows := func(n int) *dataset.Manifest {
		return &dataset.Manifest{Rows: n, Features: 50, Labels: 10, NonZeros: int64(n) * 50}
	}
	shared := maxent.Settings{Preset: "auto", Bias: true, Scaling: "standard", Iterations: 1000, ValidationFraction: 0.1,
		ValidationInterval: 10, Patience: 5}
	fixed := maxent.Search{Tolerance: 1e-7, Decay: "fixed", FirstDecay: 3}
	path := maxent.Search{Tolerance: 1e-7, Decay: "path", FirstDecay: 3}
	refitted, refittedPath := fixed, path
	refitted.Refit, refittedPath.Refit = true, true
	raw, paper, few, none, many, plenty := shared, shared, shared, shared, shared, shared
	many.ValidationFraction, plenty.ValidationFraction = 0.1, 0.02
	pathMany, fixedMany := path, fixed
	pathMany.FirstDecay, fixedMany.FirstDecay = 1e-3, 1e-3
	raw.Scaling = "none"
	few.ValidationFraction = 0.2
	none.ValidationFraction = 0
	paper.Preset, paper.Bias, paper.Scaling, paper.ValidationFraction, paper.Iterations = "paper", false, "none", 0, 300
	for _, x := range []struct {
		name  string
		given param.Values
		m     *dataset.Manifest
		want  Config
	}{
		{"auto, dense", nil, dense, config(few, refittedPath, 0)},
		{"auto, sparse", nil, sparse, config(raw, refittedPath, 0)},
		{"auto, sparse, scaled", param.Values{"scaling": "standard"}, sparse, config(shared, refittedPath, 0)},
		{"auto, many samples", nil, rows(50_000), config(many, pathMany, 0)},
		{"auto, plenty of samples", nil, rows(500_000), config(plenty, fixedMany, 0)},
		{"no validation, many samples", param.Values{"validation_fraction": 0.0}, rows(50_000),
			config(none, fixedMany, 1e-2)},
		{"no validation, plenty of samples", param.Values{"validation_fraction": 0.0}, rows(500_000),
			config(none, fixedMany, 0)},
		{"paper, plenty of samples", param.Values{"preset": "paper"}, rows(500_000), config(paper, fixed, 0)},
		{"paper", param.Values{"preset": "paper"}, dense, config(paper, fixed, 0)},
		{"paper, path", param.Values{"preset": "paper", "decay": "path"}, dense, config(paper, path, 0)},
		{"l2 given", param.Values{"l2": 0.1}, dense, config(shared, refitted, 0.1)},
		{"path to l2", param.Values{"l2": 0.1, "decay": "path", "validation_fraction": 0.1}, dense,
			config(shared, refittedPath, 0.1)},
		{"no validation", param.Values{"validation_fraction": 0.0}, dense, config(none, fixed, 1e-2)},
	} {
		r, err := New().Resolve(x.given, x.m)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := settings.Parse(r.Params); err != nil || *c != x.want {
			t.Errorf("%s: %+v, want %+v, error %v", x.name, *c, x.want, err)
		}
	}
}

// TestRefit: a refit is the training without validation, on the same rows, as far as was best.
func TestRefit(t *testing.T) {
	m, shards := problem(t, 1)
	contract.CheckRefit(t, New(), param.Values{"decay": "fixed", "l2": 0.0, "validation_interval": int64(2),
		"patience": int64(3), "validation_fraction": 0.3},
		func(set param.Values) algorithms.Trainer { return train(t, m, shards, set, 2, false) })
	_, err := New().Resolve(param.Values{"refit": true, "validation_fraction": 0.0}, m)
	if wrong := new(param.Error); !errors.As(err, &wrong) || wrong.Name != "refit" {
		t.Errorf("a refit without validation: error %v", err)
	}
}

// TestPathEndsAtTheMinimum: the loss is convex, so that a path without validation ends where the fit under
// its last decay does.
func TestPathEndsAtTheMinimum(t *testing.T) {
	m, shards := problem(t, 1)
	loss := func(decay string) float64 {
		given := param.Values{"decay": decay, "l2": 1e-3, "validation_fraction": 0.0, "iterations": int64(2000),
			"tolerance": 1e-9}
		j := contract.Job(t, New(), given, m, dataset.Split{Seed: 5})
		d := datatest.Data(t, m, shards, j.Split, nil)
		model, err := contract.Train(t, New(), j, d, 1, nil).Model()
		if err != nil {
			t.Fatal(err)
		}
		kl, _ := divergence(model, d, dataset.Train)
		return kl
	}
	if path, fixed := loss("path"), loss("fixed"); math.Abs(path-fixed) > 1e-6*fixed {
		t.Errorf("K-L of the training samples: %v by the path, %v by the decay alone", path, fixed)
	}
}

// TestPathShrinks: where features say nothing of the labels, the decay that validation chooses leaves
// predictions near the mean label distribution; a small decay fits the noise.
func TestPathShrinks(t *testing.T) {
	m, shards := problem(t, 1)
	for i, rows := range shards { // labels of other rows
		n := len(rows.D) / 2 / m.Labels * m.Labels
		shards[i].D = append(append([]float32{}, rows.D[n:]...), rows.D[:n]...)
	}
	above := func(decay string) float64 {
		j := contract.Job(t, New(), param.Values{"decay": decay}, m, dataset.Split{Seed: 5, TestFraction: 0.5})
		d := datatest.Data(t, m, shards, j.Split, nil)
		model, err := contract.Train(t, New(), j, d, 1, nil).Model()
		if err != nil {
			t.Fatal(err)
		}
		kl, mean := divergence(model, d, dataset.Test)
		return kl/mean - 1
	}
	if path, fixed := above("path"), above("fixed"); path > 0.03 || fixed < 0.06 {
		t.Errorf("K-L of the test rows above the mean predictor's: %.3f by the path, %.3f by the decay alone", path, fixed)
	}
}
