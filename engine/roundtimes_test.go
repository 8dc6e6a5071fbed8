package engine

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
)

// slow takes a while for a round, and says that less was computed.
type slow struct{ took, computed time.Duration }

func (s *slow) Do(context.Context, uint64, *round.Round, *round.Result) error {
	for began := time.Now(); time.Since(began) < s.took; {
	}
	return nil
}

func (s *slow) Computed() time.Duration { return s.computed }

// TestSpent: rounds are summed up by their kind, and no more than was computed; whole jobs
// that are measured by themselves are left out.
func TestSpent(t *testing.T) {
	var s RoundTimes
	x := &slow{took: 2 * time.Millisecond}
	do := func(apart bool, r *round.Round) {
		if err := s.Measure(x, apart).Do(t.Context(), 0, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	do(true, &round.Round{Kind: "step", How: &round.Reduce{}})
	do(true, &round.Round{Kind: "step", How: &round.Reduce{}})
	do(true, &round.Round{Kind: "fold", How: &round.Gather{SubJob: round.Jobs(&round.Job{})}})
	x.computed = time.Nanosecond
	do(true, &round.Round{Kind: "validation", How: &round.Reduce{}})
	do(false, &round.Round{Kind: "tree", How: &round.Gather{}}) // nobody says
	do(false, &round.Round{Kind: "fold", How: &round.Gather{SubJob: round.Jobs(&round.Job{})}})
	got, took := s.Seconds(), x.took.Seconds()
	if len(got) != 4 || got["step"] < 2*took || got["validation"] != x.computed.Seconds() || got["tree"] < took ||
		got["fold"] < took {
		t.Errorf("spent %v", got)
	}
}
