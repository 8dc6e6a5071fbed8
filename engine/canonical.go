package engine

import (
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// canonical replaces -0 by +0. Dense partials, row-sparse partials and absent rows then
// add up to the same bits (design section 8.4). It reports whether all float32 numbers are finite.
func canonical(p *round.Partial) (finite bool) {
	num.Canonical64(p.F64)
	finite = num.Canonical32(p.F32)
	return num.Canonical32(p.Values) && finite
}
