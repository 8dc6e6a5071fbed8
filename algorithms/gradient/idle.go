package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/round"
)

// kept has the parameters of a function's last layer, and their moments, while a step is taken in
// which some output units are idle.
type kept struct{ theta, first, second []float32 }

// MoveBut is Move in which the parameters of idle output units, and their moments, stay as they
// are; idle has a value for each unit.
func (o *Optimizer) MoveBut(idle []bool, theta []float32, f Function, sum *round.Partial, share float32, x *scaling.Values, step uint64) (finite bool) {
	from, units := f.OutputsFrom()
	k := &o.kept
	k.theta, k.first = append(k.theta[:0], theta[from:]...), append(k.first[:0], o.First[from:]...)
	if o.Second != nil {
		k.second = append(k.second[:0], o.Second[from:]...)
	}
	finite = o.Move(theta, f, sum, share, x, step)
	putBack(idle, units, theta[from:], k.theta)
	putBack(idle, units, o.First[from:], k.first)
	if o.Second != nil {
		putBack(idle, units, o.Second[from:], k.second)
	}
	return finite
}

// putBack sets the values of idle units to what they were.
func putBack(idle []bool, units int, now, before []float32) {
	if !slices.Contains(idle, true) {
		return
	}
	for i := range now {
		if idle[i%units] {
			now[i] = before[i]
		}
	}
}
