package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Every heartbeat in the range gives timeouts of which each is above those it depends on.
func TestTimeoutsFitTogether(t *testing.T) {
	for h := MinHeartbeat; h <= MaxHeartbeat; h += time.Millisecond {
		to, err := NewTimeouts(h, 0)
		if err != nil {
			t.Fatalf("heartbeat %v: %v", h, err)
		}
		for name, rising := range map[string][]time.Duration{
			"election":     {to.RaftCommit, to.Heartbeat, to.RaftElection, to.HandOver, to.RaftExchange},
			"lease":        {to.Heartbeat, to.RaftLease, to.RaftExchange},
			"NATS":         {to.Ping, to.NATSGone, to.NATSLost + time.Nanosecond},
			"reconnect":    {ReconnectWait, ReconnectMost, to.NATSLost},
			"cut off":      {to.RaftElection, to.CutOff},
			"disk":         {to.Heartbeat, to.DiskProbe},
			"dead worker":  {h, DeadBeats * h, RemindBeats * h, StalledBeats * h},
			"lost task":    {h, SlowBeats * h, LostBeats * h, RemindBeats * h},
			"leader":       {h, to.LeaderSilent, to.LeaderLost},
			"elsewhere":    {to.RaftElection, to.LeaderLost},
			"commit":       {CommitInterval, CommitAtMost},
			"forward":      {CommitInterval, ForwardSilence, ClientRead},
			"retry":        {RetryOffice, RetryPassing},
			"blob":         {ReconnectWait, BlobChunkWait, BlobAnswer},
			"copy":         {BlobChunkWait, BlobAsk, BlobCopy},
			"verification": {CommitInterval, VerifyLeader},
			"watch":        {WatchBeat, WatchSilence},
			"client":       {Survey, ClientSilence, ClientRead},
			"attempt":      {to.RaftElection, ClientTry, ClientPatience},
			"start":        {ReconnectWait, NATSStart},
		} {
			for i, d := range rising[1:] {
				if d <= rising[i] {
					t.Errorf("heartbeat %v, %s: %v must be longer than %v", h, name, d, rising[i])
				}
			}
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
	if dead := DeadBeats * to.Heartbeat; dead > time.Second {
		t.Errorf("a stopped worker is noticed after %v", dead)
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
		"election too short":     {100 * time.Millisecond, 100 * time.Millisecond, []string{"heartbeat", "100ms"}},
		"election beyond client": {100 * time.Millisecond, 6 * time.Second, []string{"election", "6s"}},
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

// The heartbeat that is named for a round trip suits it, and with it NATS waits for an
// answer for longer than that takes before it asks again.
func TestHeartbeatForARoundTrip(t *testing.T) {
	for rtt := 10 * time.Millisecond; rtt <= 600*time.Millisecond; rtt += 10 * time.Millisecond {
		to, err := NewTimeouts(HeartbeatFor(rtt), 0)
		if err != nil {
			t.Fatalf("%v: %v", rtt, err)
		}
		if !to.Suits(rtt) || to.Ping <= rtt || to.NATSGone <= MissedPings*rtt {
			t.Errorf("%v: heartbeat %v, election %v, pings every %v, gone after %v", rtt, to.Heartbeat, to.RaftElection, to.Ping,
				to.NATSGone)
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
	if given.RaftElection != 500*time.Millisecond || given.RaftLease != given.RaftElection ||
		given.HandOver <= derived.HandOver {
		t.Errorf("%+v", given)
	}
	if given.LeaderLost != derived.LeaderLost || given.Ping != derived.Ping {
		t.Error("timeouts of workers moved with Raft's")
	}
}
