package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// A probe finds a folder that takes nothing, and leaves nothing behind.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	if err := probe(dir); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if err := probe(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that does not exist takes files")
	}
}

// TestWhenToHandOver: a leader without NATS hands over after some time, to a
// coordinator that has been ready for longer than a moment, and not again within
// seconds. A leader with a full disk hands over at once.
func TestWhenToHandOver(t *testing.T) {
	timeouts := protocol.DeriveTimeouts(protocol.DefaultHeartbeat)
	lost := errors.New("this coordinator is not connected to NATS")
	now := time.Now()
	var f handover
	at := func(after time.Duration, why error, disk, leads bool) bool {
		return f.check(why, disk, leads, now.Add(after), &timeouts)
	}
	most := minLeads * timeouts.NATSLost
	for _, step := range []struct {
		after       time.Duration
		why         error
		disk, leads bool
		want        bool
	}{
		{0, nil, false, false, false},
		{time.Second, nil, false, true, false},      // it begins to lead
		{2 * time.Second, lost, false, true, false}, // and loses NATS
		{2*time.Second + timeouts.NATSLost, lost, false, true, false},
		{time.Second + most - 1, lost, false, true, false},
		{time.Second + most, lost, false, true, true},
		{time.Second + most + 1, lost, false, false, false}, // another leads
		{time.Second + most + 2, lost, false, true, false},  // and this one again: it rests
		{time.Second + most + 3, lost, true, true, true},    // but for its disk
		{time.Hour, nil, false, true, false},
		{time.Hour + 1, lost, false, true, false}, // a moment is not enough
		{time.Hour + timeouts.NATSLost/checksPerLoss/2, lost, false, true, false},
		{time.Hour + 1 + timeouts.NATSLost/checksPerLoss/2, lost, false, true, true},
	} {
		if got := at(step.after, step.why, step.disk, step.leads); got != step.want {
			t.Errorf("after %v (%v, leads %v): hands over %v, want %v", step.after, step.why, step.leads, got, step.want)
		}
	}
	f = handover{}
	if f.agreed("b", false) || f.agreed("c", false) || !f.agreed("c", false) || !f.agreed("b", true) {
		t.Error("one that was ready once only is trusted, or one that stays ready is not")
	}
}
