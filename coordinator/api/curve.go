package api

import (
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/algorithms/curve"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// curve answers with a job's learning curve as far as it is committed.
func (s *Server) curve(r *http.Request) (any, error) {
	j, err := s.findJob(s.cfg.Store.State(), r)
	if err != nil {
		return nil, err
	}
	return curveOf(j)
}

func curveOf(j *state.Job) (*protocol.JobCurve, error) {
	c := &protocol.JobCurve{ID: j.ID, Name: j.Name, State: j.State}
	var err error
	if c.Points, err = pointsOf(j.Curve); err != nil {
		return nil, fmt.Errorf("%v: %w", j, err)
	}
	for fold, b := range j.FoldCurves {
		points, err := pointsOf(b)
		if err != nil {
			return nil, fmt.Errorf("%v, fold %d: %w", j, fold, err)
		}
		c.Folds = append(c.Folds, points)
	}
	return c, nil
}

// pointsOf decodes the points of a curve, which may be empty.
func pointsOf(b []byte) ([]curve.Point, error) {
	if len(b) == 0 {
		return []curve.Point{}, nil
	}
	c, err := curve.Decode(b)
	if err != nil {
		return nil, err
	}
	return c.Points(), nil
}
