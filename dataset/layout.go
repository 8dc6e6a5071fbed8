package dataset

import "github.com/coppice-ldl/coppice/internal/num"

// The rule by which a dataset is cut into shards (design section 8.2). Changing
// any of these numbers changes every model.
const (
	shardBytes    = 8 << 20 // a shard is at most about this large
	minShards     = 16      // where the rows allow
	minShardRows  = 8       // on average
	sparseDivisor = 4       // sparse storage below 1/4 of non-zero entries
)

// ShardCount returns the number of shards of a dataset of so many rows and
// content bytes: the smallest power of two that keeps a shard at 8 MiB or less,
// at least 16, but at most rows/8, and never less than one.
func ShardCount(rows int, bytes int64) int {
	limit := 1
	for limit*2 <= rows/minShardRows {
		limit *= 2
	}
	s := minShards
	for s < limit && int64(s)*shardBytes < bytes {
		s *= 2
	}
	return min(s, limit)
}

// SparseStorage reports whether a dataset is stored sparse: if and only if under
// a quarter of its rows×features entries are not zero.
func SparseStorage(rows, features int, nonZeros int64) bool {
	return nonZeros*sparseDivisor < int64(rows)*int64(features)
}

// contentBytes is the size that ShardCount goes by: row numbers, labels and
// features as stored; names do not count.
func contentBytes(rows, features, labels int, nonZeros int64, sparse bool) int64 {
	n := int64(rows)
	b := 4*n + 4*n*int64(labels)
	if sparse {
		return b + 4*n + 8*nonZeros
	}
	return b + 4*n*int64(features)
}

// importOrder is the permutation that scatters rows over shards: position j of
// the import order holds row at(j), and row r is at position of(r). Its key is
// the same for every dataset.
func importOrder(rows int) (at, of func(uint64) uint64) {
	p := num.NewPermutation(num.NewKey(0, "dataset/import"), 0, 0, uint64(rows))
	return p.At, p.Inverse
}

// shardOf returns the shard, of s, whose ShardSpan contains position j of rows.
func shardOf(j, s, rows int) int { return ((j+1)*s - 1) / rows }
