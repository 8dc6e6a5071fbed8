package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/protocol"
)

// The verdict names the longest round trip and a heartbeat with which it is gone; up to
// a third of the election timeout there is none.
func TestNetworkVerdict(t *testing.T) {
	for _, test := range []struct {
		heartbeat, coordinator, worker time.Duration
		names, heartbeatFor            string
	}{
		{100 * time.Millisecond, 100 * time.Millisecond, 40 * time.Millisecond, "", ""},
		{100 * time.Millisecond, 200 * time.Millisecond, 0, "coordinator b takes 200 ms", "--heartbeat 300ms"},
		{100 * time.Millisecond, 10 * time.Millisecond, 300 * time.Millisecond, "worker w takes 300 ms", "--heartbeat 450ms"},
		{300 * time.Millisecond, 200 * time.Millisecond, 0, "", ""},
		{100 * time.Millisecond, 900 * time.Millisecond, 0, "coordinator b takes 900 ms", "the largest --heartbeat, 1s"},
		{10 * time.Millisecond, 11 * time.Millisecond, 0, "coordinator b takes 11 ms", "--heartbeat 100ms"},
	} {
		timeouts := protocol.DeriveTimeouts(test.heartbeat)
		list := roundTrips(map[string]rtt.Estimate{"a": {Mean: time.Millisecond}, "b": {Mean: test.coordinator}},
			[]protocol.Worker{{ID: "w", RoundTrip: test.worker.Seconds() * 1000}, {ID: "unknown"}})
		needed, text := heartbeatNeeded(list, &timeouts)
		if (text == "") != (test.names == "") || !strings.Contains(text, test.names) ||
			!strings.Contains(text, test.heartbeatFor) {
			t.Errorf("%+v: %q", test, text)
		}
		if (needed == 0) != (test.names == "") {
			t.Errorf("%+v: needs %v", test, needed)
		}
		if strings.Contains(text, "--heartbeat "+needed.String()) {
			then := protocol.DeriveTimeouts(needed)
			if _, still := heartbeatNeeded(list, &then); still != "" {
				t.Errorf("with the heartbeat that it names: %q", still)
			}
		}
	}
	if needed, text := heartbeatNeeded(nil, new(protocol.Timeouts)); needed != 0 || text != "" {
		t.Errorf("alone: %v %q", needed, text)
	}
}
