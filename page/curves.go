package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
)

// steps are the steps of a training; 0: not known.
type steps struct {
	All, Best uint64
	Refit     uint64 // the last steps, which trained on training and validation samples
}

// lossOf names the loss of a job.
func lossOf(j *protocol.JobInfo) string {
	if j.Job != nil && j.Job.Bounds != nil {
		return "squared error of scaled targets"
	}
	return "loss (K-L)"
}

// axis is the horizontal axis of learning curves.
type axis struct{ Seconds bool }

func axisOf(v *visit) axis { return axis{v.URL.Query().Get("by") == "seconds"} }

// Caption names the axis.
func (a axis) Caption() string {
	if a.Seconds {
		return "seconds of running"
	}
	return "step"
}

// at returns the place of a point; NaN: it is not known.
func (a axis) at(p *curve.Point) float64 {
	if !a.Seconds {
		return float64(p.Step)
	}
	if s, known := p.Seconds(); known {
		return s
	}
	return math.NaN()
}

// lines returns the lines of a learning curve. name, if set, comes before their names.
func (a axis) lines(c *protocol.JobCurve, name string, colour int) (all []series) {
	add := func(points []curve.Point, what string, dashed bool, loss func(*curve.Point) float64, colour int) {
		s := series{Name: strings.TrimSpace(name + " " + what), Dashed: dashed, Colour: colour}
		for i := range points {
			if x, y := a.at(&points[i]), loss(&points[i]); !math.IsNaN(x) && !math.IsNaN(y) {
				s.X, s.Y = append(s.X, x), append(s.Y, y)
			}
		}
		if len(s.X) > 0 {
			all = append(all, s)
		}
	}
	training := func(p *curve.Point) float64 { return p.Training }
	validation := func(p *curve.Point) float64 { return p.Validation }
	add(c.Points, "training", false, training, colour)
	add(c.Points, "validation", true, validation, colour)
	for i, points := range c.Folds {
		add(points, "fold "+strconv.Itoa(i), false, training, colour+i)
	}
	return all
}

// marks returns the best step, the begin of the second training and the events of a job.
func (a axis) marks(j *protocol.JobInfo, c *protocol.JobCurve, r *steps) (all []mark) {
	refit := false
	for i := range c.Points {
		p := &c.Points[i]
		switch x := a.at(p); {
		case math.IsNaN(x):
		case p.Step == r.Best && p.Step > 0:
			all = append(all, mark{X: x, Kind: bestMark, Label: "best", Text: fmt.Sprintf("best step: %s, validation loss %s",
				formatNumber(p.Step), formatNumber(p.Validation))})
		case r.Refit > 0 && p.Step > r.All-r.Refit && !refit:
			refit = true
			all = append(all, mark{X: x, Kind: "refit", Label: "refit",
				Text: "refit: training begins again, with the validation samples included"})
		}
	}
	for i, e := range j.Events {
		number := strconv.FormatUint(eventNumber(i, j.EventsDropped), 10)
		m := mark{X: float64(e.Step), Kind: eventMark, Label: number, Text: e.Text}
		if a.Seconds {
			m.X = e.Seconds
		}
		all = append(all, m)
	}
	return all
}
