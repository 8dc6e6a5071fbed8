package store

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// TestOneAppendAtATime: replication to a follower never has two appends on their way; see
// DESIGN.md.
func TestOneAppendAtATime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	s := c.leader()
	_, err := s.node.Load().transport.AppendEntriesPipeline("b", "127.0.0.1:1")
	if !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("a pipeline: error %v", err)
	}
}
