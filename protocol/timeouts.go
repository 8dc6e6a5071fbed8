package protocol

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeouts is wrapped by the errors of Timeouts.Check and NewTimeouts.
var ErrTimeouts = errors.New("the timeouts are not consistent")

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
	// NATSStart bounds the wait for a coordinator's first connection to NATS.
	NATSStart = 10 * time.Second
	// BlobChunkWait is how long one chunk of a blob is waited for before it is asked
	// for again.
	BlobChunkWait = time.Second
	// BlobAnswer is the longest wait for a chunk, after several tries. A worker may answer for
	// as long.
	BlobAnswer = 20 * time.Second
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
	// over if the coordinator answers nothing else either.
	ClientTry      = 5 * time.Second
	ClientPatience = 10 * time.Second
	ClientRead     = 4 * time.Second
	ClientSilence  = 1500 * time.Millisecond
	// Survey bounds the questions to one coordinator about itself.
	Survey = time.Second
	// LeastHandshake is the least time for a handshake of TLS: a lost packet takes a fifth
	// of a second or more.
	LeastHandshake = 5 * time.Second
	// CommitInterval is the shortest interval between two commits of a job, and between two
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

// The timeouts of workers and their tasks, in heartbeats.
const (
	SlowBeats      = 2   // a task that the others of its round wait for is given to a standby
	LostBeats      = 5   // any task is
	DeadBeats      = 5   // a silent worker counts as dead
	SilentBeats    = 5   // a leader that was not heard is asked for
	ElsewhereBeats = 20  // a leader that was not heard may be elsewhere, with all its cluster
	RemindBeats    = 20  // a worker is reminded of a task of a gather round
	HoldBeats      = 50  // a worker that lacks shards is told of them again
	StalledBeats   = 100 // a worker that leaves tasks waiting gets no new ones
)

// Timeouts is every timeout of a cluster, derived from its heartbeat, so that a
// single setting moves them all and none overtakes another. Workers learn the
// heartbeat when they join.
type Timeouts struct {
	Heartbeat time.Duration // between two heartbeats of a worker and of the leader

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
	TaskSlow      time.Duration // a task that a round waits for goes to a standby, at the earliest
	TaskLost      time.Duration // any task does, at the earliest
	TaskReminder  time.Duration // a worker is reminded of a task of a gather round
	WorkerStalled time.Duration // a worker that leaves tasks waiting gets no new ones
	LeaderSilent  time.Duration // a worker that hears no leader asks all coordinators who leads
	LeaderLost    time.Duration // the cluster may be elsewhere; and between two moves under one epoch

	DiskProbe     time.Duration // between two looks at a disk, or at a log that failed
	ObserveGauges time.Duration // time between two updates of gauges
}

// NewTimeouts derives the timeouts from a heartbeat, 0 for the default, and checks
// them. If election is not 0, it replaces Raft's derived timeout.
func NewTimeouts(heartbeat, election time.Duration) (Timeouts, error) {
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeat
	}
	if heartbeat < MinHeartbeat || heartbeat > MaxHeartbeat {
		return Timeouts{}, fmt.Errorf("%w: want a heartbeat from %[3]v to %[4]v, got %[2]v", ErrTimeouts, heartbeat, MinHeartbeat, MaxHeartbeat)
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
		TaskSlow:      SlowBeats * h,
		TaskLost:      LostBeats * h,
		TaskReminder:  RemindBeats * h,
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

// Handshake is the time for a handshake of TLS: two heartbeats, and at least LeastHandshake.
func (t *Timeouts) Handshake() time.Duration { return max(2*t.Heartbeat, LeastHandshake) }

// Suits reports whether the timeouts leave room for a round trip between coordinators: a
// third of Raft's election timeout at most.
func (t *Timeouts) Suits(roundTrip time.Duration) bool { return 3*roundTrip <= t.RaftElection }

// heartbeatStep is what HeartbeatFor rounds up to.
const heartbeatStep = 50 * time.Millisecond

// HeartbeatFor returns the heartbeat that suits a round trip, with half as much to spare;
// 0 if the greatest is too short.
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
		{"raft-commit", t.RaftCommit, nil, "delay until followers of an idle leader learn what is committed: once to twice this time"},
		{"heartbeat", t.Heartbeat, []string{"raft-commit"}, "time between two heartbeats of a worker or of the leader; other timeouts derive from it"},
		{"nats-reconnect", ReconnectWait, nil, "longest pause between the first two attempts to reach NATS; each next pause is a tenth longer"},
		{"nats-ping", t.Ping, nil, "time between two pings of NATS clients and servers; the connection ends after four missed pings"},
		{"nats-gone", t.NATSGone, []string{"nats-ping"}, "time after which a NATS client or server that does not answer counts as disconnected"},
		{"retry-lead", RetryOffice, nil, "pause before a new leader retries a failed step of taking over"},
		{"raft-lease", t.RaftLease, []string{"heartbeat"}, "time after which a leader that cannot reach a quorum steps down"},
		{"raft-election", t.RaftElection, []string{"heartbeat"}, "a follower that hears no leader for once to twice this time starts an election"},
		{"leader-transfer", t.HandOver, []string{"raft-election"}, "longest transfer of the leadership; then Raft is restarted"},
		{"raft-exchange", t.RaftExchange, []string{"leader-transfer", "raft-lease"}, "longest exchange of messages between two coordinators"},
		{"nats-reconnect-most", ReconnectMost, []string{"nats-reconnect"}, "longest pause between any two attempts to reach NATS"},
		{"nats-lost", t.NATSLost, []string{"nats-gone", "nats-reconnect-most"}, "time after which a leader without NATS transfers the leadership"},
		{"cut-off", t.CutOff, []string{"raft-election"}, "time after which a coordinator disconnects its NATS clients if it knows no leader, or if its NATS has lost most other servers"},
		{"disk-probe", t.DiskProbe, []string{"heartbeat"}, "time between two checks of a full disk"},
		{"worker-dead", t.WorkerDead, []string{"heartbeat"}, "time after which a silent worker counts as dead"},
		{"unit-slow", t.TaskSlow, []string{"heartbeat"}, "shortest time after which the last tasks of a round are also sent to a standby worker"},
		{"unit-lost", t.TaskLost, []string{"unit-slow"}, "shortest time after which any task is also sent to a standby worker"},
		{"unit-reminder", t.TaskReminder, []string{"worker-dead", "unit-lost"}, "time after which a worker is reminded of an unfinished tree or fold"},
		{"worker-stalled", t.WorkerStalled, []string{"unit-reminder"}, "time for which a worker that leaves tasks waiting gets no new tasks"},
		{"leader-silent", t.LeaderSilent, []string{"heartbeat"}, "time after which a worker that hears no leader asks all coordinators who leads"},
		{"leader-lost", t.LeaderLost, []string{"leader-silent", "raft-election"}, "time after which a worker without a leader looks for the cluster at other addresses; least time between two moves to the same leader"},
		{"commit", CommitInterval, nil, "shortest interval between two commits of a job"},
		{"commit-at-most", CommitAtMost, []string{"commit"}, "longest interval between two commits, unless a commit takes a quarter of it"},
		{"retry-job", RetryPassing, []string{"retry-lead"}, "pause before a job that stopped for a temporary reason starts again"},
		{"observe-gauges", t.ObserveGauges, nil, "time between two updates of gauges"},
		{"blob-chunk", BlobChunkWait, []string{"nats-reconnect"}, "time after which a missing chunk of a blob is requested again"},
		{"blob-answer", BlobAnswer, []string{"blob-chunk"}, "longest wait for a chunk of a blob, after several requests; a worker may answer for as long"},
		{"blob-ask", BlobAsk, []string{"blob-chunk"}, "time after which a coordinator is asked again to copy a blob; the next wait is twice as long"},
		{"blob-copy", BlobCopy, []string{"blob-ask"}, "time after which a coordinator counts as unable to copy a blob"},
		{"verify-leader", VerifyLeader, []string{"commit"}, "longest check that a quorum still follows the leader"},
		{"watch-line", WatchBeat, nil, "time between two lines of a watch"},
		{"watch-silence", WatchSilence, []string{"watch-line"}, "time without a line after which a client watches at another coordinator"},
		{"forward-silence", ForwardSilence, []string{"commit"}, "time after which a coordinator that forwards a request stops waiting for a silent leader"},
		{"survey", Survey, nil, "longest wait for a coordinator's own view (cluster members --stale)"},
		{"client-silence", ClientSilence, []string{"survey"}, "time after which a client asks another coordinator if a coordinator sends no answer"},
		{"client-read", ClientRead, []string{"forward-silence", "client-silence"}, "longest time for all attempts of a command that only reads"},
		{"client-attempt", ClientTry, []string{"raft-election", "forward-silence"}, "longest attempt of a client's request"},
		{"client-total", ClientPatience, []string{"client-attempt"}, "longest time for all attempts of a request by Go code; commands that change something use --wait instead"},
		{"nats-start", NATSStart, []string{"nats-reconnect"}, "longest wait for a coordinator's first connection to NATS"},
	}
}

// Check returns an error if a rung is not above a rung that it depends on. The error wraps
// ErrTimeouts and names both.
func (t *Timeouts) Check() error {
	seen := make(map[string]time.Duration)
	for _, r := range t.Rungs() {
		if r.Value <= 0 {
			return fmt.Errorf("%w: %s is %v, want more than 0", ErrTimeouts, r.Name, r.Value)
		}
		for _, below := range r.Above {
			least, ok := seen[below]
			if !ok {
				panic(fmt.Sprintf("protocol: timeout %s stands before %s", r.Name, below))
			}
			if r.Value <= least {
				return fmt.Errorf("%w: %s (%v) must be longer than %s (%v)", ErrTimeouts, r.Name, r.Value, below, least)
			}
		}
		seen[r.Name] = r.Value
	}
	return nil
}
