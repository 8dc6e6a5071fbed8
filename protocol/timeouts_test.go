package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Every heartbeat in the range gives a ladder of which each rung is above those
// it depends on.
func TestTimeoutsFitTogether(t *testing.T) {
	for h := MinHeartbeat; h <= MaxHeartbeat; h += time.Millisecond {
		if _, err := NewTimeouts(h, 0); err != nil {
			t.Fatalf("heartbeat %v: %v", h, err)
		}
	}
}

// The promises of the defaults, each with where it comes from.
func TestDefaultTimeouts(t *testing.T) {
	to, err := NewTimeouts(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if to.Heartbeat != DefaultHeartbeat {
		t.Errorf("the default heartbeat is %v", to.Heartbeat)
	}
	if to.Ping > 250*time.Millisecond {
		t.Errorf("pings at %v; the design has 250 ms at most", to.Ping)
	}
	if ReconnectWait > 100*time.Millisecond {
		t.Errorf("reconnect after %v; the design has 100 ms at most", ReconnectWait)
	}
	if worst := 3 * to.RaftElection; worst >= time.Second {
		t.Errorf("a leader is replaced in %v at worst; under a second was promised", worst)
	}
	if to.WorkerDead > time.Second {
		t.Errorf("a stopped worker is noticed after %v", to.WorkerDead)
	}
	if to.NATSLost != time.Second {
		t.Errorf("a leader without NATS hands over after %v, not a second", to.NATSLost)
	}
}

func TestTimeoutsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		heartbeat, election time.Duration
		names               []string
	}{
		"short heartbeat":        {time.Millisecond, 0, []string{"1ms", "10ms", "1s"}},
		"long heartbeat":         {time.Minute, 0, []string{"1m0s"}},
		"negative":               {-time.Second, 0, []string{"-1s"}},
		"election too short":     {100 * time.Millisecond, 100 * time.Millisecond, []string{"raft-lease", "heartbeat", "100ms"}},
		"election beyond client": {100 * time.Millisecond, 6 * time.Second, []string{"raft-election", "6s"}},
	} {
		_, err := NewTimeouts(test.heartbeat, test.election)
		if !errors.Is(err, ErrTimeouts) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range test.names {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", name, err, part)
			}
		}
	}
}

// Check finds any rung that was lowered to one that it depends on.
func TestCheckFindsEachBadRung(t *testing.T) {
	to, err := NewTimeouts(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, lower := range map[string]func(*Timeouts){
		"worker-dead":     func(t *Timeouts) { t.WorkerDead = t.Heartbeat },
		"unit-lost":       func(t *Timeouts) { t.TaskLost = t.TaskSlow },
		"nats-lost":       func(t *Timeouts) { t.NATSLost = t.NATSGone },
		"raft-lease":      func(t *Timeouts) { t.RaftLease = t.Heartbeat },
		"leader-transfer": func(t *Timeouts) { t.HandOver = t.RaftElection },
		"leader-silent":   func(t *Timeouts) { t.LeaderSilent = t.Heartbeat },
		"leader-lost":     func(t *Timeouts) { t.LeaderLost = t.LeaderSilent },
		"cut-off":         func(t *Timeouts) { t.CutOff = t.RaftElection },
		"disk-probe":      func(t *Timeouts) { t.DiskProbe = 0 },
	} {
		bad := to
		lower(&bad)
		if err := bad.Check(); !errors.Is(err, ErrTimeouts) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The heartbeat that is named for a round trip suits it, and with it NATS waits for an
// answer for longer than that takes before it asks again.
func TestHeartbeatForARoundTrip(t *testing.T) {
	for rtt := 10 * time.Millisecond; rtt <= 600*time.Millisecond; rtt += 10 * time.Millisecond {
		to, err := NewTimeouts(HeartbeatFor(rtt), 0)
		if err != nil {
			t.Fatalf("%v: %v", rtt, err)
		}
		if !to.Suits(rtt) || to.Ping <= rtt || to.NATSGone <= MissedPings*rtt {
			t.Errorf("%v: heartbeat %v, election %v, pings every %v, gone after %v", rtt, to.Heartbeat, to.RaftElection, to.Ping, to.NATSGone)
		}
	}
	if h := HeartbeatFor(10 * time.Second); h != 0 {
		t.Errorf("a heartbeat of %v for a round trip of 10s", h)
	}
}

// An election timeout that is given moves what depends on it, and nothing else.
func TestElectionOverrides(t *testing.T) {
	derived, _ := NewTimeouts(0, 0)
	given, err := NewTimeouts(0, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if given.RaftElection != 500*time.Millisecond || given.RaftLease != given.RaftElection || given.HandOver <= derived.HandOver {
		t.Errorf("%+v", given)
	}
	if given.WorkerDead != derived.WorkerDead || given.Ping != derived.Ping {
		t.Error("timeouts of workers moved with Raft's")
	}
}
