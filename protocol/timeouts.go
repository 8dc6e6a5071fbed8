package protocol

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeouts is wrapped by the errors of NewTimeouts.
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
// progress.
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

	LeaderSilent time.Duration // a worker that hears no leader asks all coordinators who leads
	LeaderLost   time.Duration // the cluster may be elsewhere; and between two moves under one epoch

	DiskProbe     time.Duration // between two looks at a disk, or at a log that failed
	ObserveGauges time.Duration // time between two updates of gauges
}

// NewTimeouts derives the timeouts from a heartbeat, 0 for the default. If election is not 0, it replaces Raft's
// derived timeout.
func NewTimeouts(heartbeat, election time.Duration) (Timeouts, error) {
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeat
	}
	if heartbeat < MinHeartbeat || heartbeat > MaxHeartbeat {
		return Timeouts{}, fmt.Errorf("%w: want a heartbeat from %[3]v to %[4]v, got %[2]v", ErrTimeouts, heartbeat,
			MinHeartbeat, MaxHeartbeat)
	}
	t := DeriveTimeouts(heartbeat)
	if election == 0 {
		return t, nil
	}
	t = t.withElection(election)
	if most := min(t.LeaderLost, ClientTry); election <= heartbeat || election >= most {
		return t, fmt.Errorf("%w: want an election timeout above the heartbeat, %v, and below %v, got %v", ErrTimeouts,
			heartbeat, most, election)
	}
	return t, nil
}

// DeriveTimeouts derives the timeouts from a heartbeat that somebody checked.
func DeriveTimeouts(h time.Duration) Timeouts {
	t := Timeouts{
		Heartbeat:  h,
		RaftCommit: h / 2,

		Ping:     3 * h / 2,
		NATSLost: max(10*h, time.Second),

		LeaderSilent: max(SilentBeats*h, LeastSilence),
		LeaderLost:   max(ElsewhereBeats*h, LeastLost),

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
