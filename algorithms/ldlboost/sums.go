package ldlboost

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The words of a sample, and the words of a bin, are whole vectors: see Config.stride.
const vectorWords = 4

// addBinsGo adds samples to the bins of some dense columns. A sample has stride words, and its bin of a column is
// codes[dense·row + at[i]]. The first bin of column i is at first[i]·stride of the block.
func addBinsGo(block, words []int64, stride int, codes []uint8, dense int, rows, at, first []uint32) {
	for _, row := range rows {
		own := words[int(row)*stride:][:stride]
		code := codes[int(row)*dense:][:dense]
		for i, a := range at {
			addWords(block[(int(first[i])+int(code[a]))*stride:], own)
		}
	}
}

// addListsGo adds samples to the bins that their lists name. The lists of a row are start[row] to start[row+1] of list.
// Bin b is at to[b]·stride of the block, if to[b] is not negative.
func addListsGo(block, words []int64, stride int, list, start []uint32, to []int32, rows []uint32) {
	for _, row := range rows {
		own := words[int(row)*stride:][:stride]
		for _, bin := range list[start[row]:start[row+1]] {
			if at := to[bin]; at >= 0 {
				addWords(block[int(at)*stride:], own)
			}
		}
	}
}

// addWords adds the words of a row to those that dst begins with.
func addWords(dst, words []int64) {
	dst = dst[:len(words)]
	for len(words) >= vectorWords && len(dst) >= vectorWords {
		d, s := (*[vectorWords]int64)(dst), (*[vectorWords]int64)(words)
		d[0] += s[0]
		d[1] += s[1]
		d[2] += s[2]
		d[3] += s[3]
		dst, words = dst[vectorWords:], words[vectorWords:]
	}
}

// unpackGo adds the two numbers of each word to sums.
func unpackGo(sums []float64, words []int64) {
	for i, w := range words[:(len(sums)+1)/2] {
		low := int32(w)
		sums[2*i] += float64(low)
		if 2*i+1 < len(sums) {
			sums[2*i+1] += float64((w - int64(low)) >> 32)
		}
	}
}

// unpackNarrowGo adds the words of bins to their sums, width for each bin, and clears them.
func unpackNarrowGo(sums []int32, words []int64, width, stride int) {
	for ; len(sums) > 0; sums, words = sums[width:], words[stride:] {
		own := words[:stride]
		if int32(own[0]) == 0 { // it has no row
			continue
		}
		for i := range sums[:width] {
			low := int32(own[i/2])
			if i%2 == 0 {
				sums[i] += low
			} else {
				sums[i] += int32((own[i/2] - int64(low)) >> 32)
			}
		}
		clear(own)
	}
}

// widenGo sets dst to the first of some numbers.
func widenGo(dst []float64, numbers []int32) {
	for i, x := range numbers[:len(dst)] {
		dst[i] = float64(x)
	}
}

// subtractGo sets dst to the differences of a and b.
func subtractGo(dst, a, b []int32) {
	b = b[:len(a)]
	for i, x := range a {
		dst[i] = x - b[i]
	}
}

// columnsOf are the arguments of addBinsAVX2 that do not change from tile to tile.
type columnsOf struct {
	codes     *uint8
	dense     uint64
	rows      *uint32
	n         uint64 // rows
	at, first *uint32
	columns   uint64
	stride    uint64 // bytes
}

// listsOf are such arguments of addListsAVX2.
type listsOf struct {
	list, start *uint32
	to          *int32
	rows        *uint32
	n           uint64
	stride      uint64 // bytes
}

// units are the numbers of a search as scanAVX2 reads them: see search.
type units struct{ gradient, hessian, least, l2 float64 }

// addBinsAVX2 is addBinsGo of vectors vectors of all words, at most six.
//
//go:noescape
func addBinsAVX2(block, words *int64, vectors int, c *columnsOf)

//go:noescape
func addListsAVX2(block, words *int64, vectors int, l *listsOf)

//go:noescape
func unpackAVX2(sums *float64, words *int64, quads int)

// unpackNarrowAVX2 is unpackNarrowGo of whole vectors: it adds 0 to the sums that follow. Width and stride are bytes.
//
//go:noescape
func unpackNarrowAVX2(sums *int32, words *int64, bins, vectors, width, stride int)

//go:noescape
func widenAVX2(dst *float64, numbers *int32, quads int)

//go:noescape
func subtractAVX2(dst, a, b *int32, vectors int)

//go:noescape
func scanAVX2(left, own, node *float64, labels int, u *units) (score, rest float64)

// scanNarrowAVX2 is scanAVX2 of int32 sums of a bin.
//
//go:noescape
func scanNarrowAVX2(left *float64, own *int32, node *float64, labels int, u *units) (score, rest float64)

// scanBoundAVX2 is scanAVX2 with hessian bound, without the division by second derivatives.
//
//go:noescape
func scanBoundAVX2(left, own, node *float64, labels int, gradient float64) (score, rest float64)

// scanBoundNarrowAVX2 is scanBoundAVX2 of int32 sums of a bin.
//
//go:noescape
func scanBoundNarrowAVX2(left *float64, own *int32, node *float64, labels int, gradient float64) (score, rest float64)

// mostVectors is how many vectors of a sample are in registers at a time.
const mostVectors = 6

func addBins(block, words []int64, stride int, codes []uint8, dense int, rows, at, first []uint32) {
	if !num.Accelerated || len(rows) == 0 || len(at) == 0 {
		addBinsGo(block, words, stride, codes, dense, rows, at, first)
		return
	}
	c := columnsOf{codes: unsafe.SliceData(codes), dense: uint64(dense), rows: unsafe.SliceData(rows),
		n: uint64(len(rows)), at: unsafe.SliceData(at), first: unsafe.SliceData(first), columns: uint64(len(at)),
		stride: uint64(8 * stride)}
	for from := 0; from < stride; from += mostVectors * vectorWords {
		addBinsAVX2(&block[from], &words[from], min(mostVectors, (stride-from)/vectorWords), &c)
	}
}

func addLists(block, words []int64, stride int, list, start []uint32, to []int32, rows []uint32) {
	if !num.Accelerated || len(rows) == 0 || len(list) == 0 || len(block) == 0 {
		addListsGo(block, words, stride, list, start, to, rows)
		return
	}
	l := listsOf{list: unsafe.SliceData(list), start: unsafe.SliceData(start), to: unsafe.SliceData(to),
		rows: unsafe.SliceData(rows), n: uint64(len(rows)), stride: uint64(8 * stride)}
	for from := 0; from < stride; from += mostVectors * vectorWords {
		addListsAVX2(&block[from], &words[from], min(mostVectors, (stride-from)/vectorWords), &l)
	}
}

// unpack is unpackGo. There are words for whole vectors.
func unpack(sums []float64, words []int64) {
	if quads := len(sums) / 4; num.Accelerated && quads > 0 {
		unpackAVX2(&sums[0], &words[0], quads)
		sums, words = sums[4*quads:], words[2*quads:]
	}
	unpackGo(sums, words)
}

// unpackNarrow is unpackNarrowGo. Words that are no number of a bin are 0.
func unpackNarrow(sums []int32, words []int64, width, stride int) {
	vectors := stride / vectorWords
	if bins := (len(sums) - 2*stride + width) / width; num.Accelerated && bins > 0 && len(sums) >= 2*stride {
		unpackNarrowAVX2(&sums[0], &words[0], bins, vectors, 4*width, 8*stride)
		sums, words = sums[bins*width:], words[bins*stride:]
	}
	unpackNarrowGo(sums, words, width, stride)
}

// widen is widenGo.
func widen(dst []float64, numbers []int32) {
	if quads := len(dst) / 4; num.Accelerated && quads > 0 {
		widenAVX2(&dst[0], &numbers[0], quads)
		dst, numbers = dst[4*quads:], numbers[4*quads:]
	}
	widenGo(dst, numbers)
}

// subtract is subtractGo.
func subtract(dst, a, b []int32) {
	if vectors := len(a) / 8; num.Accelerated && vectors > 0 {
		subtractAVX2(&dst[0], &a[0], &b[0], vectors)
		dst, a, b = dst[8*vectors:], a[8*vectors:], b[8*vectors:]
	}
	subtractGo(dst, a, b)
}
