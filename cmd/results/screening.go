package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// clearly is the K-L of a model that is clearly better, as a fraction of the other K-L.
const clearly = 0.99

// ScreeningText says how a screening ended: which small model has a lower K-L than the algorithm, and by how much.
func ScreeningText(algorithm string, s *pipeline.Screening) errtext.Text {
	best := slices.MinFunc(s.Others, func(a, b pipeline.ScreenedModel) int { return cmp.Compare(a.KL, b.KL) })
	on := errtext.Sprintf("screening on %s validation samples: %s has a K-L of %s", units.Count(uint64(s.Samples)),
		algorithm, cli.Measure(s.KL))
	if best.KL < clearly*s.KL {
		return errtext.Sprintf("%s, %s (a small model, trained on %s samples) %s, which is %.0f %% lower; the mean baseline "+
			"has %s. Try {algorithm=%s}, or {algorithm=best}", on, best.Algorithm, units.Count(uint64(best.Samples)),
			cli.Measure(best.KL), 100*(1-best.KL/s.KL), cli.Measure(s.MeanBaseline), best.Algorithm)
	}
	var others []string
	for _, o := range s.Others {
		others = append(others, fmt.Sprintf("%s %s", o.Algorithm, cli.Measure(o.KL)))
	}
	return errtext.Sprintf("%s; small models of other algorithms are not clearly better (%s), and the mean baseline has "+
		"%s", on, strings.Join(others, ", "), cli.Measure(s.MeanBaseline))
}
