package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// BenchmarkPropose is one entry acknowledged by three nodes in this process, each with its
// log on disk: what a commit costs.
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

// BenchmarkSnapshot is a snapshot of a state of so many bytes, with the log that it makes
// shorter: what it costs to take one.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []int{1 << 20, 16 << 20, 128 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			c := newCluster(b, 1, func(c *Config) {
				c.SnapshotLogBytes, c.SegmentBytes = DefaultSnapshotLogBytes, DefaultSegmentBytes
			})
			s := c.leader()
			const each = 64 << 10
			for i := range size / each {
				s.ProposeAsync(protocol.EncodeEntry(protocol.EntryMember, &protocol.MemberEntry{ID: memberID(i),
					Version: strings.Repeat("v", each)}))
			}
			for b.Loop() {
				c.propose(memberEntry(0))
				if err := s.Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
