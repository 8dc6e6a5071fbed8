package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
)

// curve answers with a job's learning curve as far as it is committed.
func (s *Server) curve(r *http.Request) (any, error) {
	j, err := s.findJob(s.cfg.Store.State(), r)
	if err != nil {
		return nil, err
	}
	c, err := curveOf(j)
	if err == nil && !j.State.Final() && j.Job.Folds > 0 {
		c.Folds = s.endedFolds(r.Context(), j)
	}
	return c, err
}

// endedFolds lists the curves of the folds of a job that has not ended: of those whose
// results are recorded, at hand and read. The others are empty.
func (s *Server) endedFolds(ctx context.Context, j *state.Job) [][]curve.Point {
	folds := make([][]curve.Point, j.Job.Folds)
	for i := range folds {
		folds[i] = []curve.Point{}
	}
	parts := j.Parts(j.Round + 1)
	known := s.folds.of(ctx, parts, s.cfg.Blobs.Folder.Get)
	for _, part := range parts {
		if points := known[part.Digest]; int(part.Unit) < len(folds) && len(points) > 0 {
			folds[part.Unit] = points
		}
	}
	return folds
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
