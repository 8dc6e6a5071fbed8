package api

import (
	"context"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// The bounds of reading the recorded results of folds for their curves.
const (
	maxFoldPart  = 64 << 20  // bytes of a result that is read
	maxFoldReads = 128 << 20 // bytes that one request reads; the next one reads on
	maxFolds     = 4096      // results whose points are kept, at most 64 each
)

// foldCurves reads the curves of recorded results, each result once and one at a time.
type foldCurves struct {
	mu     sync.Mutex
	points map[digests.Digest][]curve.Point // by a result's digest; empty: it has none
}

// of returns the points of the parts that are read, by digest; some more may be read on
// the way.
func (f *foldCurves) of(ctx context.Context, parts []state.Part, read func(digest string) ([]byte, error)) map[digests.Digest][]curve.Point {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[digests.Digest][]curve.Point)
	bytes := uint64(0)
	for _, part := range parts {
		points, ok := f.points[part.Digest]
		if !ok && part.Bytes <= maxFoldPart && bytes+part.Bytes <= maxFoldReads && ctx.Err() == nil {
			b, err := read(part.Digest.String())
			if err != nil { // it is not at hand
				continue
			}
			bytes += part.Bytes
			points, ok = outcomePoints(b), true
		}
		if ok {
			known[part.Digest] = points
		}
	}
	f.keep(known)
	return known
}

// keep remembers points, instead of those of others where they are too many.
func (f *foldCurves) keep(known map[digests.Digest][]curve.Point) {
	if f.points == nil || len(f.points)+len(known) > maxFolds {
		f.points = make(map[digests.Digest][]curve.Point)
	}
	for d, points := range known {
		if len(f.points) == maxFolds {
			return
		}
		f.points[d] = points
	}
}

// outcomePoints returns the points of an encoded result's curve, where there are any: at
// most as many as a fold may have.
func outcomePoints(b []byte) []curve.Point {
	o, err := pipeline.DecodeOutcome(b)
	if err != nil || o.Curve == nil {
		return nil
	}
	return o.Curve.Coarsened(curve.FoldPoints).Points()
}
