package dataset

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestShardCount checks the rule of design section 8.2 as it is written there.
func TestShardCount(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		rows  int
		bytes int64
		want  int
	}{
		{1, 10, 1}, {7, 10, 1}, {8, 10, 1}, {15, 10, 1}, {16, 10, 2}, {127, 10, 8}, {128, 10, 16},
		{2500, 10, 16}, {1 << 20, 128 * mib, 16}, {1 << 20, 128*mib + 1, 32}, {1 << 20, 1000 * mib, 128},
		{200, 1 << 40, 16}, {256, 1 << 40, 32}, {MaxRows, 1 << 50, 1 << 27},
	} {
		if got := ShardCount(c.rows, c.bytes); got != c.want {
			t.Errorf("%d rows, %d bytes: %d shards, want %d", c.rows, c.bytes, got, c.want)
		}
	}
}

func TestShardCountProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 1<<24).Draw(t, "rows")
		bytes := rapid.Int64Range(1, 1<<40).Draw(t, "bytes")
		s := ShardCount(rows, bytes)
		if bits.OnesCount(uint(s)) != 1 || s > max(1, rows/8) {
			t.Fatalf("%d shards of %d rows", s, rows)
		}
		if s*2 <= rows/8 && (s < 16 || int64(s)*(8<<20) < bytes) {
			t.Fatalf("%d shards are too few for %d rows, %d bytes", s, rows, bytes)
		}
		if s > 16 && int64(s/2)*(8<<20) >= bytes {
			t.Fatalf("%d shards are too many for %d bytes", s, bytes)
		}
	})
}

func TestSparseStorage(t *testing.T) {
	if SparseStorage(10, 10, 25) || !SparseStorage(10, 10, 24) || !SparseStorage(1, 1, 0) {
		t.Error("sparse storage is for under 25 % of non-zeros")
	}
}

func TestShardOf(t *testing.T) {
	for rows := 1; rows < 200; rows++ {
		for s := 1; s <= max(1, rows/8); s *= 2 {
			for i := range s {
				from, to := ShardSpan(i, s, rows)
				for j := from; j < to; j++ {
					if got := ShardOf(j, s, rows); got != i {
						t.Fatalf("position %d of %d rows in %d shards: shard %d, want %d", j, rows, s, got, i)
					}
				}
			}
		}
	}
}

func TestImportOrder(t *testing.T) {
	for _, n := range []int{1, 2, 9, 1000} {
		at, of := ImportOrder(n)
		seen := make([]bool, n)
		for j := range n {
			row := at(uint64(j))
			if seen[row] || of(row) != uint64(j) {
				t.Fatalf("position %d of %d: row %d, back to %d", j, n, row, of(row))
			}
			seen[row] = true
		}
	}
}
