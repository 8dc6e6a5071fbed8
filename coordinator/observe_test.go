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
		if (text == "") != (test.names == "") || !strings.Contains(text, test.names) || !strings.Contains(text, test.heartbeatFor) {
			t.Errorf("%+v: %q", test, text)
		}
		if (needed == 0) != (test.names == "") {
			t.Errorf("%+v: needs %v", test, needed)
		}
		if strings.Contains(text, "--heartbeat "+needed.String()) {
			then := protocol.DeriveTimeouts(needed)
			if _, still := heartbeatNeeded(list, &then); still != "" || then.Check() != nil {
				t.Errorf("with the heartbeat that it names: %q, %v", still, then.Check())
			}
		}
	}
	if needed, text := heartbeatNeeded(nil, new(protocol.Timeouts)); needed != 0 || text != "" {
		t.Errorf("alone: %v %q", needed, text)
	}
}

// TestNetworkNews: a round trip that is about as long as it may be does not fill the
// log. If it stays too long, that is logged again, and so is the end once it lasts.
func TestNetworkNews(t *testing.T) {
	var w slowness
	now := time.Unix(1000, 0)
	warned, informed := 0, 0
	look := func(slow bool) {
		now = now.Add(time.Second)
		warn, inform := w.update(slow, now)
		if warn {
			warned++
		}
		if inform {
			informed++
		}
	}
	for i := range 200 {
		look(i%2 == 1)
	}
	if warned != 1 || informed != 0 {
		t.Errorf("%d warnings, %d ends while it goes to and fro", warned, informed)
	}
	for range 100 {
		look(false)
	}
	if warned != 1 || informed != 1 {
		t.Errorf("%d warnings, %d ends once it is well", warned, informed)
	}
	for range int(tellAgain/time.Second) + 10 {
		look(true)
	}
	if warned != 3 || informed != 1 {
		t.Errorf("%d warnings, %d ends where it stays slow", warned, informed)
	}
}
