package worker

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// keeper is a kernel that derives 10 bytes.
type keeper struct{ round.Kernel }

type tenBytes struct{ round.Unpooled }

func (tenBytes) Bytes() int { return 10 }

func (keeper) Derive(round.Unit, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return tenBytes{}, nil
}

func (keeper) Run(*round.Partial, round.Unit, *dataset.Data, round.Vars, round.Derived, any) error {
	return nil
}

// TestJobsGiveKeptMemoryBack: what a job keeps counts for all jobs of a worker, until the job
// is forgotten.
func TestJobsGiveKeptMemoryBack(t *testing.T) {
	w := &worker{kept: engine.NewDerivedMemory(15)}
	var jobs []*job
	for id := range uint64(2) {
		j := newJob(t.Context(), &protocol.Setup{ID: id, Manifest: &dataset.Manifest{}}, 1, w.kept)
		u := round.Unit{Of: 1, DerivedVersion: 1}
		if err := engine.RunUnit(new(round.Partial), keeper{}, u, nil, nil, j.kept.Load(), nil); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if w.kept.Used() != 10 {
		t.Errorf("two jobs keep %d bytes of 15; one value has 10", w.kept.Used())
	}
	for _, j := range jobs {
		j.users, j.forgotten = 1, true
		w.leave(j)
	}
	if w.kept.Used() != 0 {
		t.Errorf("forgotten jobs keep %d bytes", w.kept.Used())
	}
}
