package spec

import (
	"cmp"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// enhancement returns the label enhancement of a spec; nil: there is none.
func enhancement(a algorithms.Algorithm, s *protocol.Spec, m *dataset.Manifest) (*round.Enhance, error) {
	if s.Enhance == "" {
		switch {
		case s.Normalise != "":
			return nil, param.Errorf("normalise", "there is no label enhancement; give {enhance=METHOD}, too")
		case s.Binarise != nil:
			return nil, param.Errorf("binarise", "there is no label enhancement; give {enhance=METHOD}, too")
		}
		return nil, nil
	}
	e := &round.Enhance{Method: s.Enhance, Normalise: cmp.Or(s.Normalise, enhance.Softmax)}
	if s.Binarise != nil {
		e.Binarise = *s.Binarise
	}
	return e, pipeline.CheckEnhance(a, e, m)
}
