package api

import (
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/algorithms/curve"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/coordinator/state"
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
		c.Folds = s.endedFolds(j)
	}
	return c, err
}

// maxFoldPart bounds the recorded result of a fold that is read for its curve.
const maxFoldPart = 64 << 20

// endedFolds lists the curves of the folds of a job that has not ended: of those whose
// results are recorded and at hand. The others are empty.
func (s *Server) endedFolds(j *state.Job) [][]curve.Point {
	folds := make([][]curve.Point, j.Job.Folds)
	for i := range folds {
		folds[i] = []curve.Point{}
	}
	for _, part := range j.Parts(j.Round + 1) {
		if int(part.Unit) >= len(folds) || part.Bytes > maxFoldPart {
			continue
		}
		b, err := s.cfg.Blobs.Folder.Get(part.Digest)
		if err != nil {
			continue
		}
		if o, err := pipeline.DecodeOutcome(b); err == nil && o.Curve != nil {
			folds[part.Unit] = o.Curve.Points()
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
