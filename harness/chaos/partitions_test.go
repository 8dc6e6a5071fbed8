package chaos

import (
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// The longest time without progress is of one job; the time between two does not count.
func TestStall(t *testing.T) {
	began := time.Now()
	var s stall
	for _, now := range []struct {
		ms     int
		job    uint64
		rounds uint64
	}{{0, 1, 5}, {100, 1, 6}, {400, 1, 6}, {500, 1, 7}, {600, 1, 8}, {3000, 2, 0}, {6000, 2, 1}, {6300, 2, 2},
		{6400, 2, 1}} {
		s.see(sighting{began.Add(time.Duration(now.ms) * time.Millisecond),
			&protocol.JobInfo{ID: now.job, Rounds: now.rounds}})
	}
	if s.longest != 400*time.Millisecond {
		t.Errorf("%v", s.longest)
	}
	if s.until(began.Add(7 * time.Second)); s.longest != 700*time.Millisecond {
		t.Errorf("at the end: %v", s.longest)
	}
}
