package forest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// TestMemory: two slots at work on a dataset that is not small hold at most twice
// the memory of its shards, so that all is at most three times as much.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts two million values: not with -short")
	}
	for name, share := range map[string]float64{"dense": 1, "sparse": 0.1} {
		t.Run(name, func(t *testing.T) {
			p := makeProblem(1, 40_000, 40, 4, share)
			d := p.data(8, share < 1, dataset.Split{})
			decoded := 0
			for i := range d.Manifest.Shards {
				r := d.Shard(i)
				decoded += 4 * (len(r.X) + len(r.Index) + len(r.Start) + len(r.D) + len(r.Row))
			}
			c := smallConfig()
			c.MinSamples = 2000
			before := liveHeap()
			tab, err := newTable(&c, d, d.Select(0, 8, dataset.Train))
			if err != nil {
				t.Fatal(err)
			}
			var lanes [2]*grower
			for i := range lanes {
				lanes[i] = newKernel(families["two"], c, 1, d).newGrower()
				if _, err := lanes[i].grow(t.Context(), tab, uint32(i)); err != nil {
					t.Fatal(err)
				}
			}
			held := liveHeap() - before
			t.Logf("%d bytes of shards, %d bytes for two lanes: %.2f times as much", decoded, held,
				float64(held)/float64(decoded))
			if held > 2*decoded {
				t.Errorf("%d bytes are held for %d bytes of shards", held, decoded)
			}
			runtime.KeepAlive(lanes)
		})
	}
}

// TestRest: a kernel that rests holds nothing, and what it grows later is the same.
func TestRest(t *testing.T) {
	d := makeProblem(6, 300, 5, 3, 1).data(4, false, dataset.Split{})
	k := newKernel(families["two"], smallConfig(), 1, d)
	u := round.Task{Of: 1, Op: OpGrow, Scope: round.Whole, Roles: dataset.Train}
	collect := func() []byte {
		part, err := k.Gather(t.Context(), u, d, nil, k.NewScratch())
		if err != nil {
			t.Fatal(err)
		}
		return part
	}
	first := collect()
	if len(k.idleGrowers) != 1 || k.table == nil {
		t.Fatal("nothing is kept between trees")
	}
	if again := collect(); !bytes.Equal(again, first) || len(k.idleGrowers) != 1 {
		t.Error("a grower is not used again, or grows otherwise")
	}
	k.ReleaseMemory()
	k.ReleaseMemory()
	if k.idleGrowers != nil || k.table != nil || k.data != nil {
		t.Error("a kernel at rest holds memory")
	}
	if later := collect(); !bytes.Equal(later, first) {
		t.Error("after a rest another tree grows")
	}
}

// liveHeap is the memory in use once what is unused is collected.
func liveHeap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
