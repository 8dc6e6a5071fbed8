package engine

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// canonical writes -0 as +0, so that dense and row-sparse partials, and absent
// rows, add up to the same bits (design section 8.4).
func canonical(p *algorithms.Partial) {
	num.Canonical64(p.F64)
	num.Canonical32(p.F32)
	num.Canonical32(p.Values)
}
