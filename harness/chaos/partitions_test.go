package chaos

import (
	"net"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/testkit"
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
	}{{0, 1, 5}, {100, 1, 6}, {400, 1, 6}, {500, 1, 7}, {600, 1, 8}, {3000, 2, 0}, {6000, 2, 1}, {6300, 2, 2}, {6400, 2, 1}} {
		s.see(sighting{began.Add(time.Duration(now.ms) * time.Millisecond), &protocol.JobInfo{ID: now.job, Rounds: now.rounds}})
	}
	if s.longest != 400*time.Millisecond {
		t.Errorf("%v", s.longest)
	}
	if s.until(began.Add(7 * time.Second)); s.longest != 700*time.Millisecond {
		t.Errorf("at the end: %v", s.longest)
	}
}

// The kernel knows which socket is at the other end of a connection, and this process is
// no child of its own.
func TestDialler(t *testing.T) {
	if reason := system.NoDiallers(); reason != "" {
		t.Skip(reason)
	}
	l := testkit.Listen(t)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if name := system.Dialler(c); name != "" {
		t.Errorf("this process is %q", name)
	}
}

func TestAbove(t *testing.T) {
	if got := above("127.0.0.1:7100", routePort); got != "127.0.0.1:7103" {
		t.Error(got)
	}
}
