package coordinator_test

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestConditions: the leader says how each coordinator is, also how full its disk is, and that one has ended.
func TestConditions(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	leader := c.leader(ctx)
	var all []protocol.Coordinator
	until := func(what string, done func(m *protocol.Coordinator) bool) {
		t.Helper()
		testkit.Until(t, what, func() bool {
			info, err := c.client.Cluster(ctx)
			if err != nil || len(info.Members) != 3 {
				return false
			}
			all = info.Members
			return !slices.ContainsFunc(all, func(m protocol.Coordinator) bool { return !done(&m) })
		})
	}
	until("all to answer", func(m *protocol.Coordinator) bool { return m.Alive && m.LastSeen >= 0 })
	for _, m := range all {
		if m.Host == "" || m.DiskSize == 0 || m.DiskFree > m.DiskSize || m.Problem != "" || m.Contact < 0 {
			t.Errorf("%+v", m)
		}
	}
	gone := all[0].ID
	if gone == leader {
		gone = all[1].ID
	}
	c.stop(gone)
	until("the end of "+gone, func(m *protocol.Coordinator) bool { return m.Alive == (m.ID != gone) })
	for _, m := range all {
		if (m.Problem == "") != (m.ID != gone) || m.Host == "" {
			t.Errorf("%+v", m)
		}
	}
}
