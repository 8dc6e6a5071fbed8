package protocol

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Heartbeat is a worker's heartbeat: published at every heartbeat interval, and at
// once when Holds changes or a new leader shows up.
type Heartbeat struct {
	Worker   string `json:"worker"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	Numerics int    `json:"numerics"`
	Slots    int    `json:"slots"`
	Metrics  string `json:"metrics,omitempty"` // HTTP address of its /metrics
	// RoundTrip, in microseconds, is the smoothed round trip to the NATS server that the
	// worker is connected to, Late after how long an answer is late; 0: not measured yet.
	RoundTrip int64 `json:"round_trip_us,omitempty"`
	Late      int64 `json:"late_us,omitempty"`
	// Leaving: it finishes nothing more and goes; give its tasks to others now.
	Leaving bool `json:"leaving,omitempty"`
	Busy    int  `json:"busy,omitempty"` // tasks that it computes now
	// Chunks: it takes values piece by piece, and keeps the results of collected tasks for that.
	Chunks bool `json:"pieces,omitempty"`
	// Bundles: it takes several messages in one.
	Bundles bool `json:"bundles,omitempty"`
	// Problem, where set, is why it takes no tasks just now: its folder cannot be written.
	Problem string `json:"problem,omitempty"`
	// Full heartbeats carry what follows; others leave what was said before in force.
	Full    bool     `json:"full,omitempty"`
	Holds   []string `json:"holds,omitempty"`   // digests of verified shards in its cache
	Host    string   `json:"host,omitempty"`    // name of its machine
	Address string   `json:"address,omitempty"` // from which it is connected to NATS
	Load    float64  `json:"load,omitempty"`    // of its machine: the load average of a minute; 0 where unknown
}

// Append encodes the message.
func (m *Heartbeat) Append(dst []byte) []byte { return appendJSON(dst, KindHeartbeat, m) }

// Decode reads the message.
func (m *Heartbeat) Decode(b []byte) error {
	if len(b) > MaxHeartbeatBytes {
		return fmt.Errorf("%w: the heartbeat message has %d bytes, want at most %d", ErrMessage, len(b), MaxHeartbeatBytes)
	}
	return readJSON(b, KindHeartbeat, m)
}

// Lead says who leads: published by the leader at every heartbeat interval.
// Workers obey the highest epoch that they have seen.
type Lead struct {
	Epoch uint64 `json:"epoch"`
	// Coordinator leads; empty: who led under this epoch does not any more, and workers
	// ask who does.
	Coordinator string `json:"coordinator"`
	// Refused names the workers that this leader does not use, and why: another
	// protocol or numerics.
	Refused map[string]string `json:"refused,omitempty"`
}

// Append encodes the message.
func (m *Lead) Append(dst []byte) []byte { return appendJSON(dst, KindLead, m) }

// Decode reads the message.
func (m *Lead) Decode(b []byte) error { return readJSON(b, KindLead, m) }

// Setup gives a worker a job: what it needs to make the kernel and the data.
type Setup struct {
	Epoch uint64 `json:"epoch"`
	// Start grows whenever the leader of this epoch begins to drive the job again,
	// from its last commit: a worker that has the job from an earlier start forgets
	// it, lest it take the rounds for late ones.
	Start    uint64            `json:"start,omitempty"`
	ID       uint64            `json:"id"`
	Job      *round.Job        `json:"job"`
	Manifest *dataset.Manifest `json:"manifest"`
}

// Append encodes the message.
func (m *Setup) Append(dst []byte) []byte { return appendJSON(dst, KindSetup, m) }

// Decode reads the message.
func (m *Setup) Decode(b []byte) error { return readJSON(b, KindSetup, m) }

// Forget tells a worker to stop the tasks of a job and drop what it keeps of it; with Tasks, to
// do so with these collected tasks of a round alone.
type Forget struct {
	Epoch uint64   `json:"epoch"`
	Job   uint64   `json:"job"`
	Round uint64   `json:"round,omitempty"`
	Tasks []uint32 `json:"units,omitempty"`
}

// Append encodes the message.
func (m *Forget) Append(dst []byte) []byte { return appendJSON(dst, KindForget, m) }

// Decode reads the message.
func (m *Forget) Decode(b []byte) error { return readJSON(b, KindForget, m) }

// Hold tells a worker which shards it should have on disk, as owner or standby.
type Hold struct {
	Epoch  uint64             `json:"epoch"`
	Shards []dataset.ShardRef `json:"shards"`
}

// Append encodes the message.
func (m *Hold) Append(dst []byte) []byte { return appendJSON(dst, KindHold, m) }

// Decode reads the message.
func (m *Hold) Decode(b []byte) error { return readJSON(b, KindHold, m) }

// Probe asks nothing of a worker: the leader sends it so that NATS says at once
// when nobody listens there any more. 10 bytes.
type Probe struct{ Epoch uint64 }

// Append encodes the message.
func (m *Probe) Append(dst []byte) []byte { return le.AppendUint64(header(dst, KindProbe), m.Epoch) }

// Decode reads the message.
func (m *Probe) Decode(b []byte) error {
	r := read(b, KindProbe)
	m.Epoch = r.u64()
	return r.end()
}

// Replicate asks a coordinator to fetch a blob from another and to sync it; the
// reply comes once it is on disk.
type Replicate struct {
	Digest string `json:"digest"`
	Bytes  uint64 `json:"bytes"`
	From   string `json:"from"` // the node whose BlobsOf subject has it
}

// Append encodes the message.
func (m *Replicate) Append(dst []byte) []byte { return appendJSON(dst, KindReplicate, m) }

// Decode reads the message.
func (m *Replicate) Decode(b []byte) error { return readJSON(b, KindReplicate, m) }

// Reply answers a request: an empty Error is success.
type Reply struct {
	Error string `json:"error,omitempty"`
}

// Append encodes the message.
func (m *Reply) Append(dst []byte) []byte { return appendJSON(dst, KindReply, m) }

// Decode reads the message.
func (m *Reply) Decode(b []byte) error { return readJSON(b, KindReply, m) }
