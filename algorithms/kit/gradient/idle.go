package gradient

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
)

// kept has what must not change in a step: parameters of idle output units, and their moments.
type kept struct {
	units                []int // that are idle
	theta, first, second []float32
}

// MoveBut is Move in which the parameters of idle output units, and their moments, stay as they
// are; idle has a value for each unit.
func (o *Optimizer) MoveBut(idle []bool, theta []float32, f Function, sum *round.Partial, share float32, x *scaling.Values, step uint64) (finite bool) {
	from, units := f.OutputsFrom()
	k := &o.kept
	k.units = k.units[:0]
	for unit, is := range idle {
		if is {
			k.units = append(k.units, unit)
		}
	}
	k.theta, k.first = k.take(k.theta, theta[from:], units), k.take(k.first, o.First[from:], units)
	if o.Second != nil {
		k.second = k.take(k.second, o.Second[from:], units)
	}
	finite = o.Move(theta, f, sum, share, x, step)
	k.putBack(theta[from:], k.theta, units)
	k.putBack(o.First[from:], k.first, units)
	if o.Second != nil {
		k.putBack(o.Second[from:], k.second, units)
	}
	return finite
}

// take returns what v, rows of so many units, has of the idle ones, in the memory of dst.
func (k *kept) take(dst, v []float32, units int) []float32 {
	dst = dst[:0]
	for row := 0; row < len(v); row += units {
		for _, unit := range k.units {
			dst = append(dst, v[row+unit])
		}
	}
	return dst
}

// putBack sets the idle units of v to what take returned.
func (k *kept) putBack(v, before []float32, units int) {
	for row := 0; row < len(v); row += units {
		for i, unit := range k.units {
			v[row+unit] = before[i]
		}
		before = before[len(k.units):]
	}
}
