package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations (Round.Op) that are not of gradient.Kernel.
const (
	opLeaves uint8 = iota + 1 // the sums of Eq. 12 over a window of mini-batches
	opShrink                  // the losses for each weight of the mean distribution
)

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the worker's half: see round.ReduceKernel. It is shared by lanes.
type kernel struct {
	sizes
	descent gradient.Kernel
	phi     []uint32 // trees×splits
	turns   turns
	spare   *spare
}

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *kernel {
	z := newSizes(c, m.Features, m.Labels)
	return &kernel{
		sizes: z, phi: drawPhi(z, seed, c.OwnUnits), turns: newTurns(c, seed), spare: new(spare),
		descent: gradient.Kernel{
			Function: newFunction(c, z, m.Sparse, seed), Outputs: z.outputs,
			Draws: gradient.Batches{Key: num.NewKey(seed, "ldlf/batch"), Size: c.BatchSize},
		},
	}
}

// Run implements round.Kernel.
func (k *kernel) Run(dst *round.Partial, unit round.Task, d *dataset.Data, v round.Vars, derived round.Derived, working any) error {
	s := working.(*scratch)
	s.unit = unit
	u := &s.unit
	if err := checkWindow(u); err != nil {
		return err
	}
	if k.descent.Run(dst, u, d, v, &s.loss, &s.Scratch) {
		return nil
	}
	s.Values.Read(v)
	switch u.Op {
	case opLeaves:
		r, _ := derived.(*routing)
		k.leafSums(dst, u, d, &s.Values, r, s)
	case opShrink:
		k.shrunkLosses(dst, u, d, v, s)
	default:
		return fmt.Errorf("ldlf: the task has the unknown operation %d", u.Op)
	}
	return nil
}

// maxWindow is the greatest number of mini-batches of a unit; see the setting
// leaf_batches.
const maxWindow = 1e6

// checkWindow refuses a unit of more mini-batches than any job has.
func checkWindow(u *round.Task) error {
	if n := u.Steps[1] - u.Steps[0]; n > maxWindow { // huge as well where they descend
		return fmt.Errorf("ldlf: the task has the invalid mini-batches %d to %d", u.Steps[0], u.Steps[1])
	}
	return nil
}

// qOf returns q (trees×leaves×labels) of a round's values, and its version.
func qOf(v *gradient.Values) (q []float32, version uint64) { return v.Own[0].Data, v.Own[0].Version }
