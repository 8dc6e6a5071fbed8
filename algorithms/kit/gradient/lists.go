package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// sumRows sets dst's rows to Σ x df over samples, all of the unit's that there are: of each
// feature that they have, its samples in order. Where they may be computed later, it leaves
// them so, with a copy of df.
func (f *Linear) sumRows(dst *round.Partial, df []float32, samples []Sample, input *scaling.Values, s *linearSpace) {
	o := &s.outers
	if s.later {
		if before, ok := dst.Before.(*num.Outers); ok {
			o = before
		} else {
			o = new(num.Outers)
		}
	}
	o.Terms = f.list(o.Terms, samples, input, s)
	rows := num.CountBits(s.touched)
	dst.Index = slices.Grow(dst.Index[:0], rows)[:rows]
	o.First = slices.Grow(o.First[:0], rows)[:rows]
	num.ListRows(dst.Index, o.First, s.touched, s.slot)
	o.Width = f.Outputs
	df = df[:len(samples)*f.Outputs]
	if s.later {
		o.X = append(o.X[:0], df...)
		dst.Later = o
		return
	}
	o.X = df
	dst.Values = slices.Grow(dst.Values[:0], rows*f.Outputs)[:rows*f.Outputs]
	o.Compute(dst.Values, 0)
}

// list makes a list of terms of each feature that samples have, in the place of terms: s.slot
// begins it. The last term comes first, so that each is put before those that follow it.
func (f *Linear) list(terms []num.OuterTerm, samples []Sample, input *scaling.Values, s *linearSpace) []num.OuterTerm {
	n := 0
	for i := range samples {
		n += len(samples[i].Columns)
	}
	terms = slices.Grow(terms[:0], n)[:n]
	slot, touched := s.slot, s.touched
	for i := len(samples) - 1; i >= 0; i-- {
		x := s.nonZeros(&samples[i], input)
		columns := samples[i].Columns[:len(x)]
		for k := len(x) - 1; k >= 0; k-- {
			c := columns[k]
			n--
			terms[n] = num.OuterTerm{A: x[k], X: uint32(i), Next: slot[c]}
			slot[c] = uint32(n + 1)
			touched[c/64] |= 1 << (c % 64)
		}
	}
	return terms
}
