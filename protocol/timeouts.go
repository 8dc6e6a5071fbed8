package protocol

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeouts is wrapped by the errors of Timeouts.Check and NewTimeouts.
var ErrTimeouts = errors.New("the timeouts do not fit together")

// The heartbeat's default and range. Below the least a busy machine's scheduler
// passes for a dead peer; above the greatest a change of leader takes longer than
// clients wait.
const (
	DefaultHeartbeat = 100 * time.Millisecond
	MinHeartbeat     = 10 * time.Millisecond
	MaxHeartbeat     = time.Second
)

// The waits that are the same for every heartbeat: they bound what disks, people
// and processes that start need, and none is on the way from a fault to committed
// progress. They are rungs of the ladder all the same.
const (
	// ReconnectWait is the greatest pause between the first two tries to reach NATS again;
	// it grows by a tenth each time, to ReconnectMost.
	ReconnectWait = 100 * time.Millisecond
	ReconnectMost = 500 * time.Millisecond
	// MissedPings is how many pings may go unanswered: TCP sends a packet that was lost again
	// a fifth of a second and a round trip later, which two pings of the default do not wait for.
	MissedPings = 4
	// NATSStart bounds a coordinator's first connection to NATS.
	NATSStart = 10 * time.Second
	// BlobPieceWait is how long one piece of a blob is waited for before it is asked
	// for again.
	BlobPieceWait = time.Second
	// BlobAsk is how long a coordinator's first answer about a blob is waited for;
	// each further try waits twice as long, BlobCopy in all.
	BlobAsk  = 2 * time.Second
	BlobCopy = 30 * time.Second
	// BlobRate, in bytes a second, is what a link should carry at least of a blob.
	BlobRate = 16 << 10
	// VerifyLeader bounds the question to a majority whether this coordinator leads.
	VerifyLeader = 2 * time.Second
	// ForwardSilence is how long a leader may say nothing to a coordinator that forwarded
	// a request to it, before the client is told to ask another.
	ForwardSilence = 2 * time.Second
	// WatchBeat is how often a watch says something; WatchSilence is how long a
	// client waits for that before it watches elsewhere.
	WatchBeat    = time.Second
	WatchSilence = 3 * time.Second
	// ClientTry bounds one try of a client's request, ClientPatience all of them, and
	// ClientRead all of them for a command that only reads. After ClientSilence a try is
	// over where the coordinator answers nothing else either.
	ClientTry      = 5 * time.Second
	ClientPatience = 10 * time.Second
	ClientRead     = 4 * time.Second
	ClientSilence  = 1500 * time.Millisecond
	// Survey bounds the questions to one coordinator about itself.
	Survey = time.Second
	// CommitInterval is the least interval between two commits of a job, and between two
	// moments at which its short parts are recorded; CommitAtMost the greatest between
	// commits, unless one takes a quarter of it.
	CommitInterval = 200 * time.Millisecond
	CommitAtMost   = 2 * time.Second
	// RetryPassing is when a job that stopped for a passing reason starts again,
	// RetryOffice when what a leadership needs is tried again.
	RetryPassing = time.Second
	RetryOffice  = 100 * time.Millisecond
	// LeastSilence is the silence of its leader after which a worker asks who leads, and
	// LeastLost that after which it takes the cluster to be elsewhere, however short the
	// heartbeat.
	LeastSilence = 500 * time.Millisecond
	LeastLost    = time.Second
)

// The timeouts of workers and their units, in heartbeats.
const (
	SlowBeats      = 2   // a unit that the others of its round wait for is given to a standby
	LostBeats      = 5   // any unit is
	DeadBeats      = 5   // a worker that was not heard is dead
	SilentBeats    = 5   // a leader that was not heard is asked for
	ElsewhereBeats = 20  // a leader that was not heard may be elsewhere, with all its cluster
	RemindBeats    = 20  // a worker is reminded of a unit of a collected round
	HoldBeats      = 50  // a worker that lacks shards is told of them again
	StalledBeats   = 100 // a worker that lets units wait gets none
)

// Timeouts is every timeout of a cluster, derived from its heartbeat, so that a
// single setting moves them all and none overtakes another. Workers learn the
// heartbeat when they join.
type Timeouts struct {
	Heartbeat time.Duration // between two beats of a worker and of the leader

	RaftCommit   time.Duration // until followers hear what is committed
	RaftElection time.Duration // a follower hears no leader for once to twice this, then stands
	RaftLease    time.Duration // a leader hears no majority for this, then steps down
	RaftExchange time.Duration // one exchange with a peer, one wait for Raft's main loop
	HandOver     time.Duration // a leadership handed over; then Raft is started anew here

	Ping     time.Duration // between NATS clients and servers
	NATSGone time.Duration // a NATS peer is taken for gone at the latest
	NATSLost time.Duration // a leader without NATS transfers the leadership
	CutOff   time.Duration // a coordinator that is cut off from the majority sends NATS clients away

	WorkerDead    time.Duration // a worker that has not beaten is dead
	UnitSlow      time.Duration // a unit that a round waits for goes to a standby, at the earliest
	UnitLost      time.Duration // any unit does, at the earliest
	UnitReminder  time.Duration // a worker is reminded of a unit of a collected round
	WorkerStalled time.Duration // a worker that lets units wait gets none
	LeaderSilent  time.Duration // a worker that hears no leader asks all coordinators who leads
	LeaderLost    time.Duration // the cluster may be elsewhere; and between two moves under one epoch

	DiskProbe     time.Duration // between two looks at a disk, or at a log that failed
	ObserveGauges time.Duration // between two readings of gauges
}

// NewTimeouts derives the timeouts from a heartbeat, 0 for the default, and checks
// them; election, where not 0, is used for Raft's instead of the derived one.
func NewTimeouts(heartbeat, election time.Duration) (Timeouts, error) {
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeat
	}
	if heartbeat < MinHeartbeat || heartbeat > MaxHeartbeat {
		return Timeouts{}, fmt.Errorf("%w: a heartbeat of %v; it is %v to %v", ErrTimeouts, heartbeat, MinHeartbeat, MaxHeartbeat)
	}
	t := DeriveTimeouts(heartbeat)
	if election != 0 {
		t = t.withElection(election)
	}
	return t, t.Check()
}

// DeriveTimeouts derives the timeouts from a heartbeat that somebody checked.
func DeriveTimeouts(h time.Duration) Timeouts {
	t := Timeouts{
		Heartbeat:  h,
		RaftCommit: h / 2,

		Ping:     3 * h / 2,
		NATSLost: max(10*h, time.Second),

		WorkerDead:    DeadBeats * h,
		UnitSlow:      SlowBeats * h,
		UnitLost:      LostBeats * h,
		UnitReminder:  RemindBeats * h,
		WorkerStalled: StalledBeats * h,
		LeaderSilent:  max(SilentBeats*h, LeastSilence),
		LeaderLost:    max(ElsewhereBeats*h, LeastLost),

		DiskProbe:     5 * h,
		ObserveGauges: max(10*h, time.Second),
	}
	t.NATSGone = (MissedPings + 2) * t.Ping // it may have answered just before one
	return t.withElection(3 * h)
}

// withElection sets Raft's election timeout and what depends on it.
func (t Timeouts) withElection(d time.Duration) Timeouts {
	t.RaftElection = d
	t.RaftLease = d // a shorter one only costs office on a busy machine
	t.HandOver = 2 * d
	t.CutOff = max(10*t.Heartbeat, 3*d, time.Second)
	t.RaftExchange = max(20*t.Heartbeat, 4*d, time.Second)
	return t
}

// Suits reports whether the timeouts leave room for a round trip between coordinators: a
// third of Raft's election timeout at most.
func (t *Timeouts) Suits(roundTrip time.Duration) bool { return 3*roundTrip <= t.RaftElection }

// heartbeatStep is what HeartbeatFor rounds up to.
const heartbeatStep = 50 * time.Millisecond

// HeartbeatFor returns the heartbeat that suits a round trip, with half as much to spare;
// 0 where the greatest is too short.
func HeartbeatFor(roundTrip time.Duration) time.Duration {
	h := max(DefaultHeartbeat, (roundTrip*3/2+heartbeatStep-1)/heartbeatStep*heartbeatStep)
	if h > MaxHeartbeat {
		return 0
	}
	return h
}

// BlobWithin bounds the copy of a blob of so many bytes by a coordinator: BlobCopy, and
// what a link of BlobRate needs.
func BlobWithin(bytes uint64) time.Duration {
	return BlobCopy + time.Duration(min(bytes, 1<<40)/BlobRate)*time.Second
}

// Rung is one timeout of the ladder.
type Rung struct {
	Name  string
	Value time.Duration
	Above []string // the rungs that it must be greater than
	What  string
}

// Rungs lists the timeouts from the bottom up: each after those it depends on.
func (t *Timeouts) Rungs() []Rung {
	return []Rung{
		{"raft-commit", t.RaftCommit, nil, "until followers of a quiet leader hear what is committed: once to twice this"},
		{"heartbeat", t.Heartbeat, []string{"raft-commit"}, "between two heartbeats of a worker, and of the leader; every other derives from it"},
		{"nats-reconnect", ReconnectWait, nil, "the longest pause between the first two tries to reach NATS; it grows by a tenth each time"},
		{"nats-ping", t.Ping, nil, "between NATS clients and servers; four may be missed where nothing else comes"},
		{"nats-gone", t.NATSGone, []string{"nats-ping"}, "a NATS peer that does not answer is taken for gone"},
		{"retry-lead", RetryOffice, nil, "a new leader tries again what it needs to lead"},
		{"raft-lease", t.RaftLease, []string{"heartbeat"}, "a leader that hears no majority steps down"},
		{"raft-election", t.RaftElection, []string{"heartbeat"}, "a follower that hears no leader stands for election, after once to twice this"},
		{"leader-transfer", t.HandOver, []string{"raft-election"}, "a transfer of the leadership; if it hangs, Raft is restarted"},
		{"raft-exchange", t.RaftExchange, []string{"leader-transfer", "raft-lease"}, "one exchange between coordinators"},
		{"nats-reconnect-most", ReconnectMost, []string{"nats-reconnect"}, "the longest pause between any two"},
		{"nats-lost", t.NATSLost, []string{"nats-gone", "nats-reconnect-most"}, "a leader without NATS transfers the leadership"},
		{"cut-off", t.CutOff, []string{"raft-election"}, "a coordinator that knows no leader, or whose NATS has lost most others', sends its NATS clients away"},
		{"disk-probe", t.DiskProbe, []string{"heartbeat"}, "between two looks at a disk that was full"},
		{"worker-dead", t.WorkerDead, []string{"heartbeat"}, "a worker that was not heard is dead"},
		{"unit-slow", t.UnitSlow, []string{"heartbeat"}, "a unit that its round waits for goes to a standby, at the earliest"},
		{"unit-lost", t.UnitLost, []string{"unit-slow"}, "any unit goes to a standby, at the earliest"},
		{"unit-reminder", t.UnitReminder, []string{"worker-dead", "unit-lost"}, "a worker is reminded of a tree or a fold"},
		{"worker-stalled", t.WorkerStalled, []string{"unit-reminder"}, "a worker that lets units wait gets none"},
		{"leader-silent", t.LeaderSilent, []string{"heartbeat"}, "a worker that hears no leader asks all coordinators who leads"},
		{"leader-lost", t.LeaderLost, []string{"leader-silent", "raft-election"}, "it takes the cluster to be elsewhere; least time between two moves to a leader of one epoch"},
		{"commit", CommitInterval, nil, "least interval between two commits of a job"},
		{"commit-at-most", CommitAtMost, []string{"commit"}, "greatest, unless a commit takes a quarter of it"},
		{"retry-job", RetryPassing, []string{"retry-lead"}, "a job that stopped for a temporary reason starts again"},
		{"observe-gauges", t.ObserveGauges, nil, "between two readings of gauges"},
		{"blob-chunk", BlobPieceWait, []string{"nats-reconnect"}, "a chunk of a blob is asked for again"},
		{"blob-ask", BlobAsk, []string{"blob-chunk"}, "a coordinator is asked again for a copy, then twice as late"},
		{"blob-copy", BlobCopy, []string{"blob-ask"}, "a coordinator has not copied a blob"},
		{"verify-leader", VerifyLeader, []string{"commit"}, "a majority is asked who leads"},
		{"watch-line", WatchBeat, nil, "between two lines of a watch"},
		{"watch-silence", WatchSilence, []string{"watch-line"}, "a client watches elsewhere"},
		{"forward-silence", ForwardSilence, []string{"commit"}, "a leader that answers nothing is not waited for by a coordinator that forwards to it"},
		{"survey", Survey, nil, "a coordinator is asked for itself (cluster members --stale)"},
		{"client-silence", ClientSilence, []string{"survey"}, "a client asks another coordinator where one answers nothing at all"},
		{"client-read", ClientRead, []string{"forward-silence", "client-silence"}, "all attempts of a command that only reads"},
		{"client-attempt", ClientTry, []string{"raft-election", "forward-silence"}, "one attempt of a client's request"},
		{"client-total", ClientPatience, []string{"client-attempt"}, "all attempts of a request by Go code; commands that change something have --wait in its place"},
		{"nats-start", NATSStart, []string{"nats-reconnect"}, "a coordinator's first connection to NATS"},
	}
}

// Check returns an error that wraps ErrTimeouts and names the two where a rung is
// not above one that it depends on.
func (t *Timeouts) Check() error {
	seen := make(map[string]time.Duration)
	for _, r := range t.Rungs() {
		if r.Value <= 0 {
			return fmt.Errorf("%w: %s is %v", ErrTimeouts, r.Name, r.Value)
		}
		for _, below := range r.Above {
			least, ok := seen[below]
			if !ok {
				panic(fmt.Sprintf("protocol: timeout %s stands before %s", r.Name, below))
			}
			if r.Value <= least {
				return fmt.Errorf("%w: %s is %v and must be above %s, which is %v", ErrTimeouts, r.Name, r.Value, below, least)
			}
		}
		seen[r.Name] = r.Value
	}
	return nil
}
