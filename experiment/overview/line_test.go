package overview

import (
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestLine: the line of an experiment says how its ETA was made, or why there is none.
func TestLine(t *testing.T) {
	for want, x := range map[string]protocol.Experiment{
		" 25 %  1 of 4 runs  ETA 6.0 s, from 1 of 4 runs  a: runs": {SecondsLeft: 6,
			EstimatedFrom: "from 1 of 4 runs"},
		" 25 %  1 of 4 runs  no ETA yet: no run of b on a has ended yet  a: runs":    {EstimatedFrom: "no run of b on a has ended yet"},
		" 25 %  1 of 4 runs  a: runs  paused; to go on: coppice experiment resume e": {Name: "e", State: protocol.Paused},
		" 25 %  1 of 4 runs  a: runs  waits: no worker":                              {Waiting: "no worker"},
	} {
		x.Done, x.Runs, x.Phases = 1, 4, []string{"a: runs"}
		if got := Line(&x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
