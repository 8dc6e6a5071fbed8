package speed

// Work is the least that the work of a row needs in any program.
type Work struct {
	// F32 and F64 are arithmetic operations; a multiplication that is added to a sum is
	// two.
	F32 float64 `json:"float32_operations"`
	F64 float64 `json:"float64_operations"`
	// Bytes are read or written, and Set is the size of what they are part of: in a cache
	// that holds it they are nearer.
	Bytes float64 `json:"bytes"`
	Set   float64 `json:"working_set"`
	// Products are the operations of matrix products alone, where rates are to be given by
	// these; 0: by all.
	Products float64 `json:"product_operations,omitempty"`
}

// Rate returns operations a second.
func (w Work) Rate(seconds float64) float64 {
	if w.Products > 0 {
		return w.Products / seconds
	}
	return (w.F32 + w.F64) / seconds
}

// Floor returns the seconds below which a core with this roof cannot do the work: those of its
// operations at the measured peak, or those of its bytes at the measured bandwidth,
// whichever is more. 0: the work is not known.
func (w Work) Floor(r *Roof) float64 {
	computed, moved := 0.0, 0.0
	if r.F32 > 0 && r.F64 > 0 {
		computed = w.F32/r.F32 + w.F64/r.F64
	}
	if b := r.Bandwidth(w.Set); b > 0 {
		moved = w.Bytes / b
	}
	return max(computed, moved)
}

// add returns the work of both, one after the other.
func (w Work) add(v Work) Work {
	return Work{F32: w.F32 + v.F32, F64: w.F64 + v.F64, Bytes: w.Bytes + v.Bytes, Set: max(w.Set, v.Set), Products: w.Products + v.Products}
}

// times returns the work done so often.
func (w Work) times(n float64) Work {
	return Work{F32: n * w.F32, F64: n * w.F64, Bytes: n * w.Bytes, Set: w.Set, Products: n * w.Products}
}
