package folds

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext/prng"
)

// KFold returns the fold of each row, counted from 0, as scikit-learn's
// KFold(k, shuffle=True, random_state=seed) has it, row for row: the numbers 0 to rows - 1 are
// shuffled by the Mersenne Twister (Matsumoto and Nishimura 1998) with the seed of
// init_genrand, from the last place down, and cut into k runs, of which the first rows mod k
// have one number more. The error wraps ErrFolds: fewer than 2 folds, or more folds than rows.
func KFold(rows, k int, seed uint32) ([]uint16, error) {
	if err := enough(rows, k); err != nil {
		return nil, err
	}
	order := shuffled(rows, seed)
	folds, at := make([]uint16, rows), 0
	for fold := range k {
		size := rows / k
		if fold < rows%k {
			size++
		}
		for _, row := range order[at : at+size] {
			folds[row] = uint16(fold)
		}
		at += size
	}
	return folds, nil
}

// shuffled returns 0 to n - 1 in the order of NumPy's RandomState(seed).shuffle.
func shuffled(n int, seed uint32) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	source := prng.NewMT19937()
	source.Seed(uint64(seed))
	for i := n - 1; i > 0; i-- {
		j := bounded(source, uint32(i))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// bounded draws from 0 to most: words cut to as many bits as most has, until one fits.
func bounded(source *prng.MT19937, most uint32) uint32 {
	mask := uint32(1)<<bits.Len32(most) - 1
	for {
		if v := source.Uint32() & mask; v <= most {
			return v
		}
	}
}
