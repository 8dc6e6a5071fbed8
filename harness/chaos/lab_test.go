package chaos

import (
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
)

// Jobs are short enough for the round trip, and no shorter than they have to be.
func TestSizesOnNetwork(t *testing.T) {
	for rtt, want := range map[time.Duration][2]int{
		0: {8000, 250}, time.Millisecond: {8000, 250}, 50 * time.Millisecond: {1200, 100}, 300 * time.Millisecond: {200, 50},
		10 * time.Second: {50, 50},
	} {
		if z := fullSizes.on(rtt); z.steps != want[0] || z.shortSteps != want[1] || z.rows != fullSizes.rows {
			t.Errorf("%v: %+v, want steps %v", rtt, z, want)
		}
	}
}

func TestMostStall(t *testing.T) {
	for _, x := range []struct {
		c    Config
		want time.Duration
	}{
		{Config{Stall: 2 * time.Second}, 2200 * time.Millisecond},
		{Config{Stall: 2 * time.Second, Network: &netlab.Settings{RTT: 50 * time.Millisecond}}, 3200 * time.Millisecond},
		{Config{Stall: time.Second, Heartbeat: 500 * time.Millisecond}, 9200 * time.Millisecond},
		{Config{Stall: time.Second, Heartbeat: 50 * time.Millisecond}, 1200 * time.Millisecond},
	} {
		if got := x.c.mostStall(0.2); got != x.want {
			t.Errorf("%+v: %v, want %v", x.c, got, x.want)
		}
	}
}

// On loopback, addresses stay as they are.
func TestNoLab(t *testing.T) {
	var l *lab
	if from := l.observer().LocalAddr; from != nil {
		t.Errorf("it observes from %v", from)
	}
}
