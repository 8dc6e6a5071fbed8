package engine

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// canonical replaces -0 by +0. Dense partials, row-sparse partials and absent rows then
// add up to the same bits (design section 8.4).
func canonical(p *algorithms.Partial) {
	num.Canonical64(p.F64)
	num.Canonical32(p.F32)
	num.Canonical32(p.Values)
}
