package ldlf

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
)

// crew lends lanes to a unit without an engine: every part runs in a lane of its own.
type crew struct{ k *kernel }

func (crew) Idle() int { return 3 }

func (c crew) Do(n int, p algorithms.Parts) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { p.Part(n-1-i, c.k.NewScratch()) })
	}
	wait.Wait()
}

// sharedTwin is leafSums as several lanes do it, whatever the size of the unit.
func (fc *forestCase) sharedTwin(d *dataset.Data, u algorithms.Unit, dst []float64, tellsLoss, byTrees bool) {
	k, s := fc.k, fc.k.NewScratch().(*scratch)
	u.Lanes = crew{k}
	kept, err := k.Derive(u, d, fc.vars(), s)
	if err != nil {
		panic(err)
	}
	s.leaves.begin(k.labels, s.abreast.width, k.treeQ())
	t := dst[leafAt : leafAt+k.q()]
	if byTrees {
		k.keptSums(dst, t, kept.(*routing), fc.q, tellsLoss, u.Lanes, s)
		return
	}
	s.leaves.share = leafShare{k: k, kept: kept.(*routing), q: fc.q, t: t, tellsLoss: tellsLoss}
	k.sharedSums(dst, u.Lanes, &s.leaves)
}

// TestSharedChunks: rows beyond what is at hand at a time follow the others.
func TestSharedChunks(t *testing.T) {
	c := smallConfig()
	c.Trees, c.Depth, c.Outputs = 1, 2, 2
	fc := newCase(c, makeProblem(1, sharedValues/65+300, 3, 65, 1), 7, 1)
	_, d := fc.p.data(1, false, dataset.Split{})
	fc.k.draws = uneven{}
	u := algorithms.Unit{Of: 1, Op: opLeaves, Roles: dataset.Train, Steps: [2]uint64{0, 3}, Keep: 1}
	want := fc.rowByRow(d, &u)
	got := make([]float64, len(want))
	fc.sharedTwin(d, u, got, true, false)
	for i, x := range got {
		if math.Float64bits(x) != math.Float64bits(want[i]) {
			t.Fatalf("value %d is %v, want %v", i, x, want[i])
		}
	}
}

// counted is a kernel that counts the units for which there were helpers.
type counted struct {
	*kernel
	helped atomic.Int32
}

func (c *counted) Run(dst *algorithms.Partial, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, kept, s any) error {
	if u.Op == opLeaves && u.Helpers() > 0 {
		c.helped.Add(1)
	}
	return c.kernel.Run(dst, u, d, v, kept, s)
}

// TestLanesShareLeafUpdates: any number of lanes ends with the same model, of one unit and
// of three, with kept routing and without.
func TestLanesShareLeafUpdates(t *testing.T) {
	c := smallConfig()
	c.Depth, c.Outputs, c.BatchSize, c.LeafBatches, c.Steps = 7, 64, 250, 12, 24
	p := makeProblem(5, 2600, 5, 9, 1)
	for _, shards := range []int{1, 3} {
		c.Trees = 4 - shards // one alone has two halves
		want := ""
		for _, limit := range []int{engine.KeptLimit, 0} {
			for lanes := 1; lanes <= 4; lanes++ {
				j := jobOf(c, 3)
				m, d := p.data(shards, false, j.Split)
				tr, k := start(t, j, m)
				x := &counted{kernel: k}
				l := engine.NewLocal(x, d, lanes, nil)
				l.Share(engine.NewKeptMemory(limit))
				if err := engine.Drive(t.Context(), tr, 0, l, func(uint64, algorithms.Trainer) error { return nil }); err != nil {
					t.Fatal(err)
				}
				got := digest(modelOf(t, tr))
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%d units, %d lanes, %d bytes kept: digest %s, want %s", shards, lanes, limit, got, want)
				}
				if helped := x.helped.Load(); lanes > shards && helped == 0 || lanes == 1 && helped > 0 {
					t.Errorf("%d units, %d lanes: lanes were idle in %d units", shards, lanes, helped)
				}
			}
		}
	}
}
