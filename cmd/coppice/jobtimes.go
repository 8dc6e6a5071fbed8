package main

import (
	"encoding/json"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// estimate is how long a job will still run.
type estimate struct {
	Rate    float64 `json:"steps_per_second,omitempty"` // 0: not known
	Seconds float64 `json:"seconds_left"`
	AtMost  bool    `json:"at_most,omitempty"` // it may end earlier
}

// text writes the seconds that are left.
func (e *estimate) text() string {
	if e.AtMost {
		return "at most " + duration(e.Seconds)
	}
	return duration(e.Seconds)
}

// stepsLeft is how many steps are to come, and whether they may be fewer; -1 where it is
// not known.
func stepsLeft(p *round.Progress) (left float64, atMost bool) {
	most := max(p.Steps, p.MostSteps)
	if p.Step == 0 || most < p.Step {
		return -1, false
	}
	return float64(most - p.Step), p.MostSteps > 0
}

// estimateOf estimates what is left of a running job by the rate of its curve, or else by the
// seconds that it has run; nil where nothing is known. A tree is a step.
func estimateOf(j *protocol.JobInfo, points []curve.Point, seconds float64) *estimate {
	if j.State != protocol.Running || j.Progress == nil {
		return nil
	}
	left, atMost := stepsLeft(j.Progress)
	if left < 0 || seconds <= 0 {
		return nil
	}
	if rate := rateOf(points); rate > 0 {
		return &estimate{Rate: rate, Seconds: left / rate, AtMost: atMost}
	}
	return &estimate{Seconds: left * seconds / float64(j.Progress.Step), AtMost: atMost}
}

// rateOf returns the steps a second over the second half of a curve's time; 0 where it is not
// known.
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

// ranOf is how many seconds a job has run, without its pauses; of a running one by this
// machine's clock.
func ranOf(j *protocol.JobInfo, now time.Time) float64 {
	switch {
	case j.State == protocol.Running:
		return j.Ran + max(0, float64(now.UnixMilli())/1000-j.Since)
	case j.State.Final():
		return j.Seconds
	}
	return j.Ran
}

// runningLines tells how far a job that has not ended is.
func runningLines(j *protocol.JobInfo, points []curve.Point, now time.Time) (lines [][2]string) {
	if p := j.Progress; p != nil {
		lines = append(lines, [2]string{"step", stepText(p)}, [2]string{"training loss", lossText(p.Loss)})
		if p.ValidatedAt > 0 {
			lines = append(lines, [2]string{"validation loss", lossText(p.Validation) + " at step " + count(p.ValidatedAt)})
		}
		if p.BestStep > 0 {
			lines = append(lines, [2]string{"best so far", lossText(p.BestLoss) + " at step " + count(p.BestStep)})
		}
	}
	if j.State != protocol.Running {
		return lines
	}
	if e := estimateOf(j, points, ranOf(j, now)); e != nil {
		if e.Rate > 0 {
			lines = append(lines, [2]string{"rate", rateText(e.Rate)})
		}
		lines = append(lines, [2]string{"ETA", e.text()})
	}
	return lines
}

// stepText tells the step of a progress, of how many.
func stepText(p *round.Progress) string {
	switch {
	case p.MostSteps > 0:
		return count(p.Step) + " of at most " + count(p.MostSteps)
	case p.Steps > 0:
		return count(p.Step) + " of " + count(p.Steps)
	}
	return count(p.Step)
}

// lossText writes a loss, which is negative where it is not known: before the first
// gradient step.
func lossText(loss float64) string {
	if loss < 0 {
		return "not known"
	}
	return "K-L " + figure(loss)
}

// rateText writes steps a second, or, where they take long, seconds a step.
func rateText(rate float64) string {
	if rate < 1 {
		return duration(1/rate) + " a step"
	}
	return count(uint64(rate+0.5)) + " steps/s"
}

// lossJSON is a loss in JSON: null where it is not known.
type lossJSON float64

// MarshalJSON implements json.Marshaler.
func (l lossJSON) MarshalJSON() ([]byte, error) {
	if l < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(l))
}
