package algorithms

import "errors"

// ErrNoRows says that a split leaves nothing to train on.
var ErrNoRows = errors.New("there are no training samples")

// BatchUnits returns U, the number of units of a round on a mini-batch of b rows
// of a dataset with s shards: min(s, the largest power of two at most b/32, 1 at
// least) (design section 8.3).
func BatchUnits(b, s int) int {
	u := 1
	for u*2 <= b/32 {
		u *= 2
	}
	return min(u, s)
}

// BatchShare returns b_u, the rows that unit u of n draws of a batch of b rows.
func BatchShare(u, n, b int) int { return (u+1)*b/n - u*b/n }
