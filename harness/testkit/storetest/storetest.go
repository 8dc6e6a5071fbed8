// Package storetest opens real stores for tests.
package storetest

import (
	"log/slog"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// Open opens the store of a cluster of one.
func Open(t testing.TB, c store.Config) *store.Store {
	t.Helper()
	f, err := store.Claim(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Decide(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(c, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Leading opens the store of a cluster of one, coordinator "a", which leads, and returns the
// epoch. It is closed with the test.
func Leading(t testing.TB) (s *store.Store, epoch uint64) {
	t.Helper()
	s = Open(t, store.Config{
		ID: "a", Dir: t.TempDir(), RaftAddr: "127.0.0.1:0", SegmentBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		Heartbeat: protocol.MinHeartbeat, // its election is over at once: nobody else stands
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	testkit.Until(t, "a leader", s.IsLeader)
	epoch, err := s.Lead(testkit.Context(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	return s, epoch
}
