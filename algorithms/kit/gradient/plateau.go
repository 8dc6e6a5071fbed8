package gradient

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
)

// PlateauRule says when training stops by its own loss. What it looks at is the mean over the
// mini-batches of an interval of what the optimiser minimises: their loss, and the penalty of
// weight decay.
type PlateauRule struct {
	// PlateauPatience is after how many intervals in a row, none of which fell by
	// PlateauFall below the least before, training stops; 0: it does not stop by its loss.
	PlateauPatience uint64
	PlateauFall     float64
}

// Plateau is the training loss of the present interval and of those before.
type Plateau struct {
	Rows  float64 // of the interval's mini-batches
	Sum   float64 // of their losses
	Best  float64 // the least mean of an interval; +Inf: none yet
	Stale uint64  // intervals in a row without a fall
}

func newPlateau() Plateau { return Plateau{Best: math.Inf(1)} }

// add takes the losses of a mini-batch.
func (p *Plateau) add(rows, sum float64) {
	p.Rows += rows
	p.Sum += sum
}

// close ends an interval; one without rows counts for nothing.
func (p *Plateau) close(r *PlateauRule) {
	if p.Rows == 0 {
		return
	}
	loss := p.Sum / p.Rows
	p.Rows, p.Sum = 0, 0
	if p.Stale++; loss <= p.Best-r.PlateauFall {
		p.Stale = 0
	}
	p.Best = min(p.Best, loss)
}

// over reports whether the patience is at its end.
func (p *Plateau) over(r *PlateauRule) bool {
	return r.PlateauPatience > 0 && p.Stale >= r.PlateauPatience
}

func (p *Plateau) state(l *fields.List) {
	l.Float64(&p.Rows, &p.Sum, &p.Best)
	l.Uint64(&p.Stale)
}
