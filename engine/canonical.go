package engine

import (
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// canonical replaces -0 by +0. Dense partials, row-sparse partials and absent rows then
// add up to the same bits (design section 8.4).
func canonical(p *round.Partial) {
	num.Canonical64(p.F64)
	num.Canonical32(p.F32)
	num.Canonical32(p.Values)
}
