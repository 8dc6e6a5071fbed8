// Package remaining estimates how long a running job still runs.
package remaining

import (
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Estimate is how long a job will still run.
type Estimate struct {
	Rate    float64 `json:"steps_per_second,omitempty"` // 0 if not known
	Seconds float64 `json:"seconds_left"`
	AtMost  bool    `json:"at_most,omitempty"` // true if the job may end earlier
}

// Text writes the time that is left.
func (e *Estimate) Text() string {
	if e.AtMost {
		return "at most " + units.Duration(e.Seconds)
	}
	return units.Duration(e.Seconds)
}

// Of estimates how long a job still runs, by the rate of its curve, or else by the seconds that it has run. It returns
// nil if nothing is known. A tree is a step.
func Of(j *protocol.JobInfo, points []curve.Point, seconds float64) *Estimate {
	if j.State != protocol.Running || j.Progress == nil {
		return nil
	}
	left, atMost := Steps(j.Progress)
	if left < 0 || seconds <= 0 {
		return nil
	}
	if rate := rateOf(points); rate > 0 {
		return &Estimate{Rate: rate, Seconds: left / rate, AtMost: atMost}
	}
	return &Estimate{Seconds: left * seconds / float64(j.Progress.Step), AtMost: atMost}
}

// Steps returns the number of steps to come, or -1 if it is not known. atMost is true if there may be fewer.
func Steps(p *round.Progress) (left float64, atMost bool) {
	most := max(p.Steps, p.MostSteps)
	if p.Step == 0 || most < p.Step {
		return -1, false
	}
	return float64(most - p.Step), p.MostSteps > 0
}

// Ran returns the seconds that a job has run, without its pauses. For a running job it uses the time of this machine.
func Ran(j *protocol.JobInfo, now time.Time) float64 {
	switch {
	case j.State == protocol.Running:
		return j.Ran + max(0, float64(now.UnixMilli())/1000-j.Since)
	case j.State.Final():
		return j.Seconds
	}
	return j.Ran
}

// rateOf returns the steps per second over the second half of the time of a curve, or 0 if they are not known.
func rateOf(points []curve.Point) float64 {
	var timed []curve.Point
	for _, p := range points {
		if p.Millis >= 0 {
			timed = append(timed, p)
		}
	}
	if len(timed) < 2 {
		return 0
	}
	last := timed[len(timed)-1]
	from := timed[0]
	for _, p := range timed {
		if 2*(last.Millis-p.Millis) >= last.Millis-timed[0].Millis {
			from = p
		}
	}
	if last.Millis <= from.Millis {
		return 0
	}
	return float64(last.Step-from.Step) * 1000 / float64(last.Millis-from.Millis)
}
