package ldlf

import (
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// sumRows sets dst's rows to Σ x df over samples, all of the unit's that there are: of each
// feature that they have, its samples in order.
func (f *linear) sumRows(dst *round.Partial, df []float32, samples []sample, input *scaling, s *linearSpace) {
	f.list(samples, input, s)
	rows := 0
	for _, word := range s.touched {
		rows += bits.OnesCount64(word)
	}
	dst.Index = slices.Grow(dst.Index[:0], rows)[:rows]
	dst.Values = slices.Grow(dst.Values[:0], rows*f.outputs)[:rows*f.outputs]
	num.SumOuters(dst.Values, dst.Index, s.touched, s.slot, s.terms, df[:len(samples)*f.outputs], f.outputs)
}

// list makes a list of terms of each feature that samples have: s.slot begins it. The last
// term comes first, so that each is put before those that follow it.
func (f *linear) list(samples []sample, input *scaling, s *linearSpace) {
	n := 0
	for i := range samples {
		n += len(samples[i].columns)
	}
	s.terms = slices.Grow(s.terms[:0], n)[:n]
	terms, slot, touched := s.terms, s.slot, s.touched
	for i := len(samples) - 1; i >= 0; i-- {
		x := s.nonZeros(&samples[i], input)
		columns := samples[i].columns[:len(x)]
		for k := len(x) - 1; k >= 0; k-- {
			c := columns[k]
			n--
			terms[n] = num.OuterTerm{A: x[k], X: uint32(i), Next: slot[c]}
			slot[c] = uint32(n + 1)
			touched[c/64] |= 1 << (c % 64)
		}
	}
}
