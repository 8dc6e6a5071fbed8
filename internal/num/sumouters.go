package num

import "math/bits"

// OuterTerm is one term of a row of a sum of outer products: A times row X of a matrix. Next
// is one more than the number of the term that is added after it; 0: it is the last one.
type OuterTerm struct {
	A       float32
	X, Next uint32
}

// SumOuters sets dst to rows of a sum of outer products, and index to their numbers: those
// whose bits are set in touched, ascending. head has, for each number, one more than that of
// its first term. dst[n,j] is fma(A, x[X,j], ...) of its terms in order, begun at 0, with +0
// in the place of -0. x has rows of width values; dst and index have room for all rows. It
// clears touched, and head of all rows, and returns the number of rows.
func SumOuters(dst []float32, index []uint32, touched []uint64, head []uint32, terms []OuterTerm, x []float32, width int) int {
	if width <= 0 || len(x)%width != 0 || len(dst) != len(index)*width || len(head) > 64*len(touched) || 64*len(touched) > len(head)+63 {
		panic("num: a sum of rows of other shapes")
	}
	if rows := countBits(touched); rows > len(index) || len(head)%64 > 0 && touched[len(touched)-1]>>(len(head)%64) != 0 {
		panicIndex()
	}
	n, ok := sumOuters(dst, index, touched, head, terms, x, width)
	if !ok {
		n = sumOutersGo(dst, index, touched, head, terms, x, width)
	}
	return n
}

func countBits(words []uint64) (n int) {
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

func sumOutersGo(dst []float32, index []uint32, touched []uint64, head []uint32, terms []OuterTerm, x []float32, width int) (n int) {
	for i, word := range touched {
		touched[i] = 0
		for ; word != 0; word &= word - 1 {
			row := i*64 + bits.TrailingZeros64(word)
			index[n] = uint32(row)
			sum := dst[n*width : (n+1)*width]
			clear(sum)
			at := head[row]
			head[row] = 0
			for more := true; more; more = at > 0 {
				term := &terms[at-1]
				from := int(term.X) * width
				mulAddRow(sum, term.A, x[from:from+width])
				at = term.Next
			}
			Canonical32(sum)
			n++
		}
	}
	return n
}
