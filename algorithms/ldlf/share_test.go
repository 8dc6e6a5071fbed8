package ldlf

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// crew lends lanes to a unit without an engine: every part runs in a lane of its own.
type crew struct{ k *kernel }

func (crew) Idle() int { return 3 }

func (c crew) Do(n int, p round.Parts) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { p.Part(n-1-i, c.k.NewScratch()) })
	}
	wait.Wait()
}

// sharedTwin is leafSums as several lanes do it, whatever the size of the unit.
func (fc *forestCase) sharedTwin(d *dataset.Data, u round.Task, dst []float64, tellsLoss bool) {
	k, s := fc.k, fc.k.NewScratch().(*scratch)
	u.Lanes = crew{k}
	derived, err := k.Derive(u, d, fc.vars(), s)
	if err != nil {
		panic(err)
	}
	s.leaves.begin(k.labels, s.block.width, k.treeQ())
	k.derivedSums(dst, dst[leafAt:leafAt+k.q()], derived.(*routing), fc.q, tellsLoss, u.Lanes, s)
}

// counted is a kernel that counts what it has lanes share.
type counted struct {
	*kernel
	shared atomic.Int32
}

func (c *counted) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s any) error {
	u.Lanes = countedLanes{u.Lanes, &c.shared}
	return c.kernel.Run(dst, u, d, v, derived, s)
}

type countedLanes struct {
	round.Lanes
	n *atomic.Int32
}

func (c countedLanes) Do(n int, p round.Parts) {
	c.n.Add(1)
	c.Lanes.Do(n, p)
}

// TestLanesShareLeafUpdates: any number of lanes ends with the same model, of one unit and
// of three, with derived routing and without.
func TestLanesShareLeafUpdates(t *testing.T) {
	c := smallConfig()
	c.Depth, c.Outputs, c.BatchSize, c.LeafBatches, c.Steps = 7, 64, 250, 12, 24
	p := makeProblem(5, 2600, 5, 9, 1)
	for _, shards := range []int{1, 3} {
		want := ""
		for _, limit := range []int{engine.DerivedLimit, 0} {
			for lanes := 1; lanes <= 4; lanes++ {
				j := jobOf(c, 3)
				m, d := p.data(shards, false, j.Split)
				tr, k := start(t, j, m)
				x := &counted{kernel: k}
				l := engine.NewLocal(x, d, lanes, nil)
				l.UseMemory(engine.NewDerivedMemory(limit))
				if err := engine.Drive(t.Context(), tr, 0, l, func(uint64, round.Trainer) error { return nil }); err != nil {
					t.Fatal(err)
				}
				got := digest(modelOf(t, tr))
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%d units, %d lanes, %d bytes cached: digest %s, want %s", shards, lanes, limit, got, want)
				}
				if n, shares := x.shared.Load(), shards == 1 && lanes > 1 && limit > 0; shares != (n > 0) {
					t.Errorf("%d units, %d lanes, %d bytes cached: lanes shared %d times", shards, lanes, limit, n)
				}
			}
		}
	}
}
