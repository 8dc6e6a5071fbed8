package ldlf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sbinet/npyio/npz"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// trajectory is a float64 run of the forest by another implementation; see
// shared/data/README.md.
type trajectory struct {
	t    *testing.T
	file *npz.Reader
}

func (g *trajectory) f64(name string) []float64 {
	var v []float64
	if err := g.file.Read(name+".npy", &v); err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return v
}

func (g *trajectory) i32(name string) []uint32 {
	var v []int32
	if err := g.file.Read(name+".npy", &v); err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	w := make([]uint32, len(v))
	for i, x := range v {
		w[i] = uint32(x)
	}
	return w
}

func narrowed(v []float64) []float32 {
	w := make([]float32, len(v))
	for i, x := range v {
		w[i] = float32(x)
	}
	return w
}

// given draws mini-batches that were written down: original row numbers, each of
// which belongs to the unit that owns its shard.
type given struct {
	rows  []uint32
	batch int
	unit  []uint32 // of each row
	at    []uint32 // of each row, among the rows of its unit
}

func newGiven(rows []uint32, batch, units int, d *dataset.Data) *given {
	g := &given{rows: rows, batch: batch, unit: make([]uint32, d.Manifest.Rows), at: make([]uint32, d.Manifest.Rows)}
	for u := range units {
		unit := round.Task{ID: u, Of: units, Roles: dataset.Train}
		for i, ref := range unit.Rows(d) {
			row := d.Shard(int(ref.Shard)).Row[ref.Pos]
			g.unit[row], g.at[row] = uint32(u), uint32(i)
		}
	}
	return g
}

func (g *given) Draw(dst []uint32, u *round.Task, _ int, step uint64) []uint32 {
	for _, row := range g.rows[int(step)*g.batch : (int(step)+1)*g.batch] {
		if int(g.unit[row]) == u.ID {
			dst = append(dst, g.at[row])
		}
	}
	return dst
}

// TestGoldenTrajectories follows the float64 trajectories in shared/golden, given
// their rows, Θ0 and φ, with the trainer, kernel and reduction of real jobs.
func TestGoldenTrajectories(t *testing.T) {
	testkit.WithoutRace(t)
	sjaffe := Config{Scaling: scaling.Standard, LearningRate: 1}
	movie := Config{Scaling: scaling.None, LearningRate: 5}
	t.Run("SJAFFE", func(t *testing.T) { followGolden(t, "SJAFFE.mat", "ldlf_sjaffe.npz", sjaffe) })
	t.Run("Movie", func(t *testing.T) {
		testkit.Large(t)
		followGolden(t, "Movie.mat", "ldlf_movie.npz", movie)
	})
}

func followGolden(t *testing.T, data, file string, c Config) {
	m, shards := datatest.Shared(t, data)
	d := datatest.Data(t, m, shards, dataset.Split{}, nil)
	r, err := npz.Open(testkit.Shared(t, "golden/"+file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := &trajectory{t, r}

	const marks = 5
	tr, k := goldenJob(t, c, m)
	k.descent.Draws = newGiven(g.i32("rows"), 64, algorithms.BatchUnits(64, len(m.Shards)), d)
	k.phi = g.i32("phi")
	copy(tr.phi, k.phi)
	copy(tr.Theta(), narrowed(g.f64("theta0")))
	seen := 0
	see := func(tr *trainer) {
		if mark := markOf(tr, seen == 0); mark != "" {
			g.compare(mark, tr, d)
			seen++
		}
	}
	see(tr)
	drive(t, tr, k, d, 1, see)
	if seen != marks {
		t.Errorf("%d marks of %d were compared", seen, marks)
	}
}

// markOf returns the mark at which the trainer is, or "". Steps 1 to 100 have no
// gradient and the trainer passes over them: what it has before the first leaf
// update is the state after step 1.
func markOf(tr *trainer, first bool) string {
	switch {
	case first && tr.Phase == gradient.PhaseOwn:
		return "1"
	case tr.Phase != gradient.PhaseOwn && slices.Contains([]uint64{100, 101, 200, 1000}, tr.Step):
		return fmt.Sprint(tr.Step)
	}
	return ""
}

func goldenJob(t testing.TB, c Config, m *dataset.Manifest) (*trainer, *kernel) {
	c.Network, c.Strategy = settings.Default().Network, strategyJoint
	c.Preset, c.Trees, c.Depth, c.Outputs, c.Bias = param.Paper, 5, 7, 64, true
	c.BatchSize, c.Optimizer, c.Momentum, c.WeightDecay = 64, optimizerSGD, 0.9, 1e-5
	c.LearningRateDecay, c.Init, c.Patience = 1, initXavier, 1
	c.LeafBatches, c.LeafIterations, c.Steps = 100, 20, 1000
	return start(t, jobOf(&c, 1), m)
}

// compare holds the trainer's state against a mark of the trajectory.
func (g *trajectory) compare(mark string, tr *trainer, d *dataset.Data) {
	m := tr.model(tr.Theta(), tr.q.Data)
	predicted := predictAll(m, d)
	want := g.f64("pred_" + mark)
	e := maxDifference(predicted[:len(want)], want)
	kl := meanDivergence(predicted, d, m.labels)
	eKL := abs(kl - g.f64("kl_" + mark)[0])
	theta := g.f64("theta_" + mark)
	g.t.Logf("mark %s: predictions within %.1e, K-L %.6f within %.1e, Θ within %.1e, q within %.1e",
		mark, e, kl, eKL, maxDifference(tr.Theta()[:len(theta)], theta), maxDifference(tr.q.Data, g.f64("q_"+mark)))
	if !(e <= 1e-5) || !(eKL <= 1e-6) {
		g.t.Errorf("mark %s: predictions differ by %.2g (at most 1e-5), K-L by %.2g (at most 1e-6)", mark, e, eKL)
	}
}

func meanDivergence(predicted []float32, d *dataset.Data, labels int) float64 {
	sum := 0.0
	for i := range d.Manifest.Shards {
		r := d.Shard(i)
		for pos, row := range r.Row {
			sum += divergence(r.Label(pos), predicted[int(row)*labels:(int(row)+1)*labels])
		}
	}
	return sum / float64(d.Manifest.Rows)
}
