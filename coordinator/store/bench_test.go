package store

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// BenchmarkPropose is one entry acknowledged by three nodes in this process, each
// with its log on disk: what a commit costs.
func BenchmarkPropose(b *testing.B) {
	for _, size := range []int{256, 512 << 10} {
		b.Run(fmt.Sprintf("nodes=3/bytes=%d", size), func(b *testing.B) {
			c := newCluster(b, 3, func(c *Config) { c.SegmentBytes = DefaultSegmentBytes })
			s := c.leader()
			// A commit for a job that is not there: Raft's part only.
			commit := protocol.CommitEntry{Epoch: 1, Round: 1, Total: uint64(size), Data: make([]byte, size)}
			entry := commit.Append(nil)
			b.SetBytes(int64(len(entry)))
			for b.Loop() {
				if index, _, err := s.ProposeAsync(entry).Result(); index == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
