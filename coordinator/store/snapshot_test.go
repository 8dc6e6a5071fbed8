package store

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// bulkEntry is an entry of about 4 KiB.
func bulkEntry(i int) []byte {
	return protocol.EncodeEntry(protocol.EntryMember,
		&protocol.MemberEntry{ID: memberID(i), Version: strings.Repeat("v", 4<<10)})
}

// Snapshots come with the bytes of log, and bring back both a node that restarts
// and one whose next entry nobody has any more.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	const n = 300 // beyond the trailing logs
	c := newCluster(t, 3, func(c *Config) { c.SnapshotLogBytes, c.SegmentBytes = 256<<10, 256<<10 })
	c.propose(bulkEntry(0))
	late := c.followers(c.leader())[0].config.ID
	c.kill(late)
	var last uint64
	for i := 1; i < n; i++ {
		last = c.propose(bulkEntry(i))
	}
	c.wait(last)
	for id, s := range c.nodes {
		testkit.Until(t, "snapshot", func() bool { return s.Stats().Snapshots > 0 })
		if logged := s.Stats().LogBytes; logged > n*4<<10-128<<10 {
			t.Errorf("node %s counts %d bytes since its last snapshot", id, logged)
		}
		first, err := s.node.Load().log.FirstIndex()
		if err != nil || first < 2 {
			t.Errorf("node %s keeps its log from %d: %v", id, first, err)
		}
	}
	s := c.start(late, nil)
	if _, err := s.Wait(testkit.Context(t), last); err != nil {
		t.Fatal(err)
	}
	checkMembers(t, s.State(), n)
	for id := range c.nodes {
		c.kill(id)
	}
	c.startAll()
	c.wait(last)
	for _, s := range c.nodes {
		checkMembers(t, s.State(), n)
	}
}
