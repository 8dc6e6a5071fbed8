package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// The operations of rounds (Round.Op).
const (
	opSums     uint8 = iota + 1 // scaling: sums of features
	opSquares                   // scaling: squared deviations from the means
	opExtremes                  // scaling: least and greatest values
	opStep                      // gradient of one mini-batch (Eqs. 5, 6, 13)
	opLeaves                    // sums of Eq. 12 over a window of mini-batches
	opValidate                  // K-L of the forest's predictions
	opCompare                   // the same, and its difference from the reference's
)

// The values that rounds carry (Var.ID).
const (
	varTheta          uint16 = iota + 1 // Θ; its version counts its changes
	varQ                                // q; its version counts its changes
	varScaling                          // shifts, then scales (float64); version: the pass, from 1
	varMeans                            // means of features (float64); version: the pass, from 1
	varColumns                          // range [from, to) of columns (float64); version: from
	varReferenceTheta                   // the reference's Θ and q, of the versions that they had
	varReferenceQ
)

var _ round.SumKernel = (*kernel)(nil)

// kernel is the worker's half: see round.SumKernel. It is shared by lanes.
type kernel struct {
	sizes
	phi    []uint32 // trees×splits
	f      featureFunction
	draws  sampler
	scaled bool
	spare  *spare
}

func newKernel(c *Config, seed uint64, m *dataset.Manifest) (*kernel, error) {
	if err := checkSize(c, m); err != nil {
		return nil, err
	}
	z := newSizes(c, m.Features, m.Labels)
	return &kernel{
		sizes: z, phi: drawPhi(z, seed), f: newLinear(c, z, m.Sparse),
		draws:  permutations{num.NewKey(seed, "ldlf/batch"), c.BatchSize},
		scaled: c.Scaling != scalingNone, spare: new(spare),
	}, nil
}

// Run implements round.Kernel.
func (k *kernel) Run(dst *round.Partial, unit round.Unit, d *dataset.Data, v round.Vars, derived round.Derived, working any) error {
	s := working.(*scratch)
	s.unit = unit
	u := &s.unit
	if err := checkWindow(u); err != nil {
		return err
	}
	switch u.Op {
	case opSums:
		sums(dst, u, d)
	case opSquares:
		squares(dst, u, d, num.Float64s(v.Get(varMeans)), s)
	case opExtremes:
		extremes(dst, u, d, num.Float64s(v.Get(varColumns)), s)
	case opStep:
		k.step(dst, u, d, k.values(v, varTheta, varQ, s), s)
	case opLeaves:
		r, _ := derived.(*routing)
		k.leafSums(dst, u, d, k.values(v, varTheta, varQ, s), r, s)
	case opValidate:
		k.validate(dst, u, d, k.values(v, varTheta, varQ, s), s)
	case opCompare:
		k.validate(dst, u, d, k.values(v, varTheta, varQ, s), s)
		k.compare(dst, u, d, k.values(v, varReferenceTheta, varReferenceQ, s), s)
	default:
		return fmt.Errorf("ldlf: operation %d is unknown", u.Op)
	}
	return nil
}

// maxWindow is the greatest number of mini-batches of a unit; see the setting
// leaf_batches.
const maxWindow = 1e6

// checkWindow refuses a unit of more mini-batches than any job has.
func checkWindow(u *round.Unit) error {
	if n := u.Steps[1] - u.Steps[0]; n > maxWindow { // huge as well where they descend
		return fmt.Errorf("ldlf: a unit of the mini-batches %d to %d", u.Steps[0], u.Steps[1])
	}
	return nil
}

// values are the round's values as the kernel reads them.
type values struct {
	weights
	q        []float32 // trees×leaves×labels
	qVersion uint64
}

func (k *kernel) values(v round.Vars, theta, q uint16, s *scratch) *values {
	x := &s.values
	x.theta, x.version = num.Float32s(v.Get(theta)), v.Version(theta)
	x.q, x.qVersion = num.Float32s(v.Get(q)), v.Version(q)
	x.input = scaling{}
	if k.scaled {
		x.input = newScaling(num.Float64s(v.Get(varScaling)))
	}
	return x
}
