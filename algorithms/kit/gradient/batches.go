package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Sampler draws mini-batches.
type Sampler interface {
	// Draw appends to dst the positions, among the n training rows of unit u, of
	// the unit's share of mini-batch step, in the order of drawing.
	Draw(dst []uint32, u *round.Task, n int, step uint64) []uint32
}

// Batches draw by counter-based permutations (design section 8.3): a unit
// walks through its n rows in the order of permutation (pass, unit), b_u rows a
// step, and takes the permutation of its next pass when it has seen them all.
type Batches struct {
	Key  num.Key
	Size int // rows of a mini-batch, over all units
}

// Draw implements Sampler.
func (p Batches) Draw(dst []uint32, u *round.Task, n int, step uint64) []uint32 {
	share := algorithms.BatchShare(u.ID, u.Of, p.Size)
	if n == 0 || share == 0 {
		return dst
	}
	at := step * uint64(share)
	pass, offset := at/uint64(n), at%uint64(n)
	dst = slices.Grow(dst, share)
	for share > 0 {
		perm := num.NewPermutation(p.Key, pass, uint32(u.ID), uint64(n))
		k := min(share, n-int(offset))
		dst = perm.Append(dst, offset, k)
		share -= k
		pass, offset = pass+1, 0
	}
	return dst
}

// count adds to counts, of the training rows of unit u, how often each is drawn in the
// unit's share of mini-batches steps. It takes whole passes over the rows at once, and of one
// that is cut the rows that are fewer: those drawn or those left out.
func (p Batches) count(counts []uint32, u *round.Task, steps [2]uint64) {
	n, share := uint64(len(counts)), uint64(algorithms.BatchShare(u.ID, u.Of, p.Size))
	if n == 0 || share == 0 {
		return
	}
	end := steps[1] * share
	for at := steps[0] * share; at < end; {
		pass, from := at/n, at%n
		to := min(n, from+end-at)
		at += to - from
		if to-from == n {
			addAll(counts, 1)
			continue
		}
		perm := num.NewPermutation(p.Key, pass, uint32(u.ID), n)
		if to-from <= n/2 {
			addAt(counts, &perm, from, to, 1)
			continue
		}
		addAll(counts, 1)
		addAt(counts, &perm, 0, from, ^uint32(0)) // less 1
		addAt(counts, &perm, to, n, ^uint32(0))
	}
}

func addAll(counts []uint32, x uint32) {
	for i := range counts {
		counts[i] += x
	}
}

// addAt adds x to the counts of the numbers at the positions [from, to).
func addAt(counts []uint32, perm *num.Permutation, from, to uint64, x uint32) {
	for i := from; i < to; i++ {
		counts[perm.At(i)] += x
	}
}

// Window is the rows that a unit draws in some consecutive mini-batches.
type Window struct {
	Rows    []uint32  // the distinct positions drawn, ascending
	Weights []float32 // how often each was
	counts  []uint32
}

// Count sets w to the draws of the unit's mini-batches u.Steps from its n training rows. It
// uses w's memory again.
func (w *Window) Count(draws Sampler, u *round.Task, n int) {
	w.counts = slices.Grow(w.counts[:0], n)[:n]
	clear(w.counts)
	if p, ok := draws.(Batches); ok {
		p.count(w.counts, u, u.Steps)
	} else {
		for step := u.Steps[0]; step < u.Steps[1]; step++ {
			w.Rows = draws.Draw(w.Rows[:0], u, n, step)
			for _, row := range w.Rows {
				w.counts[row]++
			}
		}
	}
	w.Rows, w.Weights = w.Rows[:0], w.Weights[:0]
	for row, count := range w.counts {
		if count > 0 {
			w.Rows = append(w.Rows, uint32(row))
			w.Weights = append(w.Weights, float32(count))
		}
	}
}
