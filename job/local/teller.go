package local

import (
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The least times between two calls of Options.Progress, and of Options.Report.
const (
	showEvery   = 100 * time.Millisecond
	reportEvery = 500 * time.Millisecond
)

// teller tells those who asked how far a job is, at most as often as they want to hear. It asks
// the trainer only then, so that short rounds stay short.
type teller struct {
	o               *Options
	rounds          uint64 // folded
	shown, reported time.Time
}

func newTeller(o *Options) *teller {
	return &teller{o: o, rounds: o.Resume.Rounds, reported: time.Now()}
}

// asked reports whether anybody wants to hear how far the job is.
func (t *teller) asked() bool { return t.o.Progress != nil || t.o.Report != nil }

func (t *teller) tell(progress func() round.Progress) {
	if !t.asked() {
		return
	}
	now := time.Now()
	if t.o.Progress != nil && now.Sub(t.shown) >= showEvery {
		t.shown = now
		t.o.Progress(progress())
	}
	if t.o.Report != nil && now.Sub(t.reported) >= reportEvery {
		t.reported = now
		t.o.Report(t.rounds, progress())
	}
}

// observer tells after each round, before another observer.
func (t *teller) observer(other engine.Observer) engine.Observer {
	return func(rounds uint64, tr round.Trainer) error {
		t.rounds = rounds
		t.tell(tr.Progress)
		return other(rounds, tr)
	}
}

// end tells of the end of the job. One that stopped early has done all its steps.
func (t *teller) end(p round.Progress) {
	p.Steps = p.Step
	if t.o.Progress != nil {
		t.o.Progress(p)
	}
	if t.o.Report != nil {
		t.o.Report(t.rounds, p)
	}
}
