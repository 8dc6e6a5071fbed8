package worker

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// numbers notes the numbers that it is told.
type numbers struct {
	mu   sync.Mutex
	list []int
}

func (n *numbers) tell(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, number)
}

func (n *numbers) all() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// latest returns the latest number, 0 if there was none.
func (n *numbers) latest() int {
	list := n.all()
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// TestProcessors: few are enough once there was nothing but steps for a while; whatever else begins has all
// of them at once.
func TestProcessors(t *testing.T) {
	n := new(numbers)
	p := newProcessors(2, 8, n.tell)
	expect := func(want ...int) {
		t.Helper()
		if got := n.all(); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	}
	quiet := func() { p.ended = time.Now().Add(-2 * calmAfter) }
	p.step()
	expect()
	quiet()
	p.begin()
	p.step() // something goes on
	expect()
	p.end()
	p.step() // and has just ended
	expect()
	quiet()
	p.step()
	p.step()
	expect(2)
	p.begin()
	p.begin()
	expect(2, 8)
	p.end()
	quiet()
	p.step() // one of two goes on
	p.end()
	quiet()
	p.step()
	expect(2, 8, 2)

	for name, p := range map[string]*processors{"as many slots": newProcessors(8, 8, n.tell),
		"nobody to tell": newProcessors(2, 8, nil)} {
		p.ended = time.Time{}
		p.step()
		p.begin()
		p.end()
		if got := n.all(); len(got) != 3 {
			t.Errorf("%s: told %v", name, got)
		}
	}
}

// TestProcessorsOfAWorker: steps take few, the set-up of another job and a tree have all.
func TestProcessorsOfAWorker(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	all := runtime.GOMAXPROCS(0)
	if all < 2 {
		t.Skip("one processor alone: there is nothing to tell")
	}
	n := new(numbers)
	w := c.start(Config{Slots: 1, Processors: n.tell})
	procs := w.procs
	job := newTestJob(t, d, 7, nil)
	trainer := must[pipeline.Finisher](t)(pipeline.New(job, d.manifest, nil))
	r := must[*round.Round](t)(trainer.Next())
	step := func(number uint64) {
		l.values(w, 40, r)
		l.to(w, l.message(40, number, r, []uint32{0}))
		receive(t, "a part", l.parts)
	}
	l.setup(w, 40, job, d.manifest)
	number := uint64(0)
	eventually(t, "few processors", func() bool {
		step(number)
		number++
		return n.latest() == 1
	})
	folds, children := foldsRound(t, d, 2, nil)
	l.setup(w, 41, folds, d.manifest)
	eventually(t, "all processors", func() bool { return n.latest() == all })
	l.to(w, l.message(41, 0, children, []uint32{0}))
	receive(t, "a fold", l.gathered)
	eventually(t, "nothing beside steps", func() bool {
		procs.mu.Lock()
		defer procs.mu.Unlock()
		return procs.other == 0
	})
}
