package num

import "math/bits"

// OuterTerm is one term of a row of a sum of outer products: A times row X of a matrix. Next
// is one more than the number of the term that is added after it; 0: it is the last one.
type OuterTerm struct {
	A       float32
	X, Next uint32
}

// Outers are rows of a sum of outer products. First has one more than the number of each
// row's first term; X has rows of Width values.
type Outers struct {
	First []uint32
	Terms []OuterTerm
	X     []float32
	Width int
}

// ListRows sets index to the numbers whose bits are set in touched, ascending, and first to
// their heads. It clears touched, and head of these, and returns how many there are.
func ListRows(index, first []uint32, touched []uint64, head []uint32) (n int) {
	for i, word := range touched {
		touched[i] = 0
		for ; word != 0; word &= word - 1 {
			row := uint32(i*64 + bits.TrailingZeros64(word))
			index[n], first[n] = row, head[row]
			head[row] = 0
			n++
		}
	}
	return n
}

// CountBits returns how many bits of words are set.
func CountBits(words []uint64) (n int) {
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Compute sets dst to whole rows, the first of which is from: dst[i,j] is fma(A, X[X,j], ...)
// of its terms in order, begun at 0, with +0 in the place of -0.
func (o *Outers) Compute(dst []float32, from int) {
	if o.Width <= 0 || len(dst)%o.Width != 0 || len(o.X)%o.Width != 0 {
		panic("num: rows of another width")
	}
	first := o.First[from : from+len(dst)/o.Width]
	if len(first) > 0 && !sumOuters(dst, first, o.Terms, o.X, o.Width) && !narrowOuters(dst, first, o.Terms, o.X, o.Width) {
		o.computeGo(dst, first)
	}
}

func (o *Outers) computeGo(dst []float32, first []uint32) {
	for i, at := range first {
		sum := dst[i*o.Width : (i+1)*o.Width]
		clear(sum)
		for more := true; more; more = at > 0 {
			term := &o.Terms[at-1]
			from := int(term.X) * o.Width
			mulAddRow(sum, term.A, o.X[from:from+o.Width])
			at = term.Next
		}
		Canonical32(sum)
	}
}
