package remaining

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// timed is a point at a second.
func timed(step uint64, loss float64, second int64) curve.Point {
	return curve.Point{Step: step, Training: loss, Validation: math.NaN(), Millis: 1000 * second}
}

// TestOf: the estimate follows the rate of the curve's second half; where training may end early it is
// at most that.
func TestOf(t *testing.T) {
	running := func(p round.Progress) *protocol.JobInfo {
		return &protocol.JobInfo{State: protocol.Running, Progress: &p}
	}
	slowStart := []curve.Point{timed(1, 1, 10), timed(100, 1, 20), timed(200, 1, 30)}
	for _, test := range []struct {
		what   string
		job    *protocol.JobInfo
		points []curve.Point
		want   *Estimate
	}{
		{"by its seconds", running(round.Progress{Step: 50, Steps: 100}), nil, &Estimate{Seconds: 30}},
		{"by its curve", running(round.Progress{Step: 200, Steps: 300}), slowStart,
			&Estimate{Rate: 10, Seconds: 10}},
		{"early stopping", running(round.Progress{Step: 200, Steps: 300, MostSteps: 300}), slowStart,
			&Estimate{Rate: 10, Seconds: 10, AtMost: true}},
		{"a refit to come", running(round.Progress{Step: 200, Steps: 300, MostSteps: 600}), slowStart,
			&Estimate{Rate: 10, Seconds: 40, AtMost: true}},
		{"no step yet", running(round.Progress{Steps: 100}), nil, nil},
		{"nothing known", &protocol.JobInfo{State: protocol.Running}, nil, nil},
		{"not running", &protocol.JobInfo{State: protocol.Paused, Progress: &round.Progress{Step: 5, Steps: 9}}, nil, nil},
	} {
		if diff := cmp.Diff(test.want, Of(test.job, test.points, 30)); diff != "" {
			t.Errorf("%s: %s", test.what, diff)
		}
	}
	e := Estimate{Seconds: 185, AtMost: true}
	if got := e.Text(); got != "at most 3m05s" {
		t.Errorf("%q", got)
	}
}
