package local

import (
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// line records a job's learning curve; nil records nothing.
type line struct {
	*curve.Recorder
	began time.Time // zero: points have no seconds
}

// record begins or continues the curve of a job whose trainer begins or continues.
func (o *Options) record(t round.Trainer) (*line, error) {
	if o.Points == 0 {
		return nil, nil
	}
	var before *curve.Curve
	if len(o.Resume.Curve) > 0 {
		c, err := curve.Decode(o.Resume.Curve)
		if err != nil {
			return nil, err
		}
		before = c
	}
	l := &line{Recorder: curve.NewRecorder(o.Points, before)}
	if o.Timed {
		l.began = time.Now()
	}
	l.Observe(t.Progress(), l.millis())
	return l, nil
}

func (l *line) millis() int64 {
	if l.began.IsZero() {
		return curve.Unknown
	}
	return time.Since(l.began).Milliseconds()
}

// observer records what a trainer says, beside another observer.
func (l *line) observer(beside engine.Observer) engine.Observer {
	if l == nil {
		return beside
	}
	return func(rounds uint64, t round.Trainer) error {
		l.Follow(t, l.millis())
		return beside(rounds, t)
	}
}

// encoded returns the curve so far, for a checkpoint.
func (l *line) encoded() []byte {
	if l == nil {
		return nil
	}
	return l.Curve().Append(nil)
}

// finish gives an outcome its curve; nil: the job did not end.
func (l *line) finish(o *pipeline.Outcome) {
	if l == nil || o == nil {
		return
	}
	l.End()
	o.Curve = l.Curve()
}
