package worker

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestLeaderFirst: the leader's own NATS server comes first, an external one stays
// where it is, and what the coordinators said is left alone.
func TestLeaderFirst(t *testing.T) {
	c := &protocol.Cluster{
		NATS: []string{"nats://a", "nats://b", "nats://c"}, Leader: "c",
		Coordinators: []protocol.MemberEntry{{ID: "a", NATS: "nats://a"}, {ID: "c", NATS: "nats://c"}},
	}
	if got, want := leaderFirst(c), []string{"nats://c", "nats://b", "nats://a"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if c.NATS[0] != "nats://a" {
		t.Error("the cluster's own list was changed")
	}
	c.NATS = []string{"nats://x", "nats://y"}
	if got := leaderFirst(c); !slices.Equal(got, c.NATS) {
		t.Errorf("%v, want %v", got, c.NATS)
	}
}
