package protocol

import (
	"crypto/sha256"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Stamp fences and addresses a message: which leader, which job, which round.
type Stamp struct {
	Epoch uint64 `bound:"any"` // the log index of the leader's Lead entry
	Job   uint64 `bound:"any"`
	Round uint64 `bound:"any"`
}

// Ref names one version of a value.
type Ref struct {
	ID      uint16 `bound:"any"`
	Version uint64 `bound:"any"`
}

// codeRefs codes the versions of values that a message names. It reads them into the memory of refs.
func codeRefs(c *coder, refs *[]Ref) {
	n := uint8(len(*refs))
	if len(*refs) > MaxVars && !c.reads {
		panic(fmt.Sprintf("protocol: want at most %[2]d values in a round, got %[1]d", len(*refs), MaxVars))
	}
	numbers(c, &n)
	if c.reads {
		*refs = (*refs)[:0]
	}
	if n > MaxVars {
		c.fail("want at most %[2]d values in a round, got %[1]d", n, MaxVars)
	}
	for i := 0; i < int(n) && c.err == nil; i++ {
		if c.reads {
			*refs = append(*refs, Ref{})
		}
		numbers(c, &(*refs)[i].ID)
		numbers(c, &(*refs)[i].Version)
	}
}

// Setup gives a worker a job: what it needs to make the kernel and the data.
type Setup struct {
	Epoch uint64 `json:"epoch" bound:"any"`
	// Start grows whenever the leader of this epoch begins to drive the job again, from its
	// last commit. A worker forgets what it has of an earlier start: it would take the rounds
	// for late ones.
	Start    uint64            `json:"start,omitempty" bound:"any"`
	ID       uint64            `json:"id" bound:"any"`
	Job      *round.Job        `json:"job" bound:"checked"`
	Manifest *dataset.Manifest `json:"manifest" bound:"checked"`
}

// Append encodes the message.
func (m *Setup) Append(dst []byte) []byte { return appendJSON(dst, KindSetup, m) }

// Decode reads the message.
func (m *Setup) Decode(b []byte) error { return bounded(m, readJSON(b, KindSetup, m)) }

// Value gives a worker one version of a value. Greatest size: MaxMessage.
type Value struct {
	Epoch uint64 `bound:"any"`
	Job   uint64 `bound:"any"`
	Ref
	Data []byte `bound:"any"`
}

// Append encodes the message.
func (m *Value) Append(dst []byte) []byte { return append(m.AppendHead(dst), m.Data...) }

// AppendHead encodes all of the message but Data, which ends it.
func (m *Value) AppendHead(dst []byte) []byte {
	size := uint64(len(m.Data))
	return m.code(coder{b: dst}, &size).b
}

// Decode reads the message. Data shares the memory of b.
func (m *Value) Decode(b []byte) error {
	var size uint64
	c := m.code(coder{b: b, reads: true}, &size)
	m.Data = c.take(size)
	return bounded(m, c.end())
}

func (m *Value) code(c coder, size *uint64) coder {
	c.begin(KindValue)
	numbers(&c, &m.Epoch, &m.Job)
	numbers(&c, &m.ID)
	numbers(&c, &m.Version, size)
	return c
}

// Chunk gives a worker one of several chunks of a value. It may also only name a chunk that the
// worker made and may still have: the result of a task of a gather round. Greatest size: MaxMessage.
type Chunk struct {
	Epoch uint64 `bound:"any"`
	Job   uint64 `bound:"any"`
	Ref
	Index uint32 `bound:"0..1048576"` // of the chunk
	Of    uint32 `bound:"0..1048576"` // chunks of the value, at most MaxTasks
	// Digest is the SHA-256 of the bytes, in hex.
	Digest string `bound:"digest"`
	// Here is true if Data has the bytes; if not, Data is empty.
	Here bool   `bound:"any"`
	Data []byte `bound:"any"`
}

// Append encodes the message.
func (m *Chunk) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message. Data shares the memory of b.
func (m *Chunk) Decode(b []byte) error {
	c := m.code(coder{b: b, reads: true})
	if c.err == nil && (m.Index >= m.Of || !m.Here && len(m.Data) > 0) {
		c.fail("a chunk of a value is not valid: chunk %d of %d, %d bytes, included in the message: %v", m.Index, m.Of,
			len(m.Data), m.Here)
	}
	return bounded(m, c.end())
}

func (m *Chunk) code(c coder) coder {
	c.begin(KindChunk)
	numbers(&c, &m.Epoch, &m.Job)
	numbers(&c, &m.ID)
	numbers(&c, &m.Version)
	numbers(&c, &m.Index)
	count(&c, &m.Of, MaxTasks)
	c.text(&m.Digest, 2*sha256.Size)
	c.flag(&m.Here)
	c.bytes(&m.Data)
	return c
}

// Run asks a worker to compute tasks of a round and to answer on the subject of
// the message's reply. Greatest size: 160 bytes, 10 for each value, 4 for each
// task, and the payloads.
type Run struct {
	Stamp
	Kind    string        `bound:"..64"` // word for the tasks, for metrics: algorithms.ValidKind
	Op      uint8         `bound:"any"`
	Of      uint32        `bound:"1..1048576"` // tasks in the round
	Scope   round.Scope   `bound:"any"`
	Gather  bool          `bound:"any"` // true for a gather round
	Roles   dataset.Roles `bound:"any"`
	Steps   [2]uint64     `bound:"0..9007199254740992"`
	Keep    uint64        `bound:"any"`
	Shape   round.Shape   `bound:"0..268435456"`
	Refs    []Ref         `bound:"..64 any"`
	Tasks   []uint32      `bound:"..1048576 0..1048576"`
	Payload [][]byte      `bound:"any"` // of a gather round: one for each of Tasks, may be empty
	// SubJob is true if the tasks are whole jobs: the worker makes them from the job and the
	// task's number.
	SubJob bool `bound:"any"`
}

// Append encodes the message.
func (m *Run) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message into the memory of m. Payloads share the memory of b.
func (m *Run) Decode(b []byte) error {
	c := m.code(coder{b: b, reads: true})
	if !round.ValidKind(m.Kind) {
		c.fail("unknown kind of tasks: %q", m.Kind)
	}
	if m.Scope > round.None || m.Of == 0 {
		c.fail("the kind of data (%d) or the number of tasks (%d) is not valid", m.Scope, m.Of)
	}
	if s := &m.Shape; 8*s.F64+4*s.F32+4*s.I32 > MaxMessage {
		c.fail("partial results of %d float64, %d float32 and %d int32 values are too large for a message", s.F64, s.F32,
			s.I32)
	}
	return bounded(m, c.end())
}

func (m *Run) code(c coder) coder {
	c.begin(KindRun)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Kind, round.MaxKind)
	numbers(&c, &m.Op)
	numbers(&c, &m.Scope)
	c.flag(&m.Gather)
	numbers(&c, &m.Roles)
	c.flag(&m.SubJob)
	count(&c, &m.Of, MaxTasks)
	numbers(&c, &m.Steps[0], &m.Steps[1], &m.Keep)
	count(&c, &m.Shape.F64, MaxMessage/8)
	count(&c, &m.Shape.F32, MaxMessage/4)
	count(&c, &m.Shape.I32, MaxMessage/4)
	count(&c, &m.Shape.Rows, MaxMessage/4)
	count(&c, &m.Shape.Width, MaxMessage/4)
	codeRefs(&c, &m.Refs)

	n := len(m.Tasks)
	count(&c, &n, MaxTasks)
	if c.reads {
		m.Tasks, m.Payload = m.Tasks[:0], m.Payload[:0]
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reads {
			m.Tasks = append(m.Tasks, 0)
		}
		if numbers(&c, &m.Tasks[i]); c.reads && m.Tasks[i] >= m.Of {
			c.fail("there is no task %d, counted from 0: the round has %d tasks", m.Tasks[i], m.Of)
		}
		if !m.Gather {
			continue
		}
		var payload []byte
		if !c.reads && m.Payload != nil {
			payload = m.Payload[i]
		}
		if c.bytes(&payload); c.reads {
			m.Payload = append(m.Payload, payload)
		}
	}
	return c
}

// Task returns the i-th of the message's tasks as its kernel sees it.
func (m *Run) Task(i int) round.Task {
	u := round.Task{
		ID: int(m.Tasks[i]), Of: int(m.Of), Op: m.Op, Scope: m.Scope, Roles: m.Roles,
		Steps: m.Steps, DerivedVersion: m.Keep,
	}
	if m.Gather && len(m.Payload[i]) > 0 {
		u.Payload = m.Payload[i]
	}
	return u
}

// Bundle is messages for one worker that come as one, to be taken in order: what takes them
// is woken once. Greatest size: MaxMessage.
type Bundle struct {
	Messages [][]byte `bound:"any"` // one at least; none is a Bundle
}

// bundleHead is the size of what comes before the first message: version, kind and count.
const bundleHead = 2 + 4

// BeginBundle begins a bundle without messages in the memory of dst.
func BeginBundle(dst []byte) []byte {
	return append(dst[:0], Version, byte(KindBundle), 0, 0, 0, 0)
}

// AddToBundle adds a message to a bundle.
func AddToBundle(bundle []byte, m interface{ Append([]byte) []byte }) []byte {
	at := len(bundle)
	bundle = m.Append(le.AppendUint64(bundle, 0))
	le.PutUint64(bundle[at:], uint64(len(bundle)-at-8))
	le.PutUint32(bundle[2:], le.Uint32(bundle[2:])+1)
	return bundle
}

// OnlyInBundle returns the message of a bundle that has one.
func OnlyInBundle(bundle []byte) []byte { return bundle[bundleHead+8:] }

// Decode reads the message into the memory of the list. The messages share the memory of b.
func (m *Bundle) Decode(b []byte) error {
	c := coder{b: b, reads: true}
	c.begin(KindBundle)
	m.Messages = m.Messages[:0]
	var n uint32
	if numbers(&c, &n); n == 0 {
		c.fail("the bundle has no messages")
	}
	for ; n > 0 && c.err == nil; n-- {
		var one []byte
		c.bytes(&one)
		if k, err := KindOf(one); c.err == nil && (err != nil || k == KindBundle) {
			c.fail("the bundle is damaged: %d of its bytes are not a message", len(one))
		}
		m.Messages = append(m.Messages, one)
	}
	return bounded(m, c.end())
}

// Forget tells a worker to stop the tasks of a job and drop what it keeps of the job. With
// Tasks, it concerns only these tasks of a gather round.
type Forget struct {
	Epoch uint64   `json:"epoch" bound:"any"`
	Job   uint64   `json:"job" bound:"any"`
	Round uint64   `json:"round,omitempty" bound:"any"`
	Tasks []uint32 `json:"units,omitempty" bound:"..1048576 0..1048576"`
}

// Append encodes the message.
func (m *Forget) Append(dst []byte) []byte { return appendJSON(dst, KindForget, m) }

// Decode reads the message.
func (m *Forget) Decode(b []byte) error { return bounded(m, readJSON(b, KindForget, m)) }

// Hold tells a worker which shards it should have on disk, as owner or standby.
type Hold struct {
	Epoch  uint64             `json:"epoch" bound:"any"`
	Shards []dataset.ShardRef `json:"shards" bound:"..262144 checked"`
}

// Append encodes the message.
func (m *Hold) Append(dst []byte) []byte { return appendJSON(dst, KindHold, m) }

// Decode reads the message.
func (m *Hold) Decode(b []byte) error { return bounded(m, readJSON(b, KindHold, m)) }

// Probe asks nothing of a worker: the leader sends it so that NATS says at once
// when nobody listens there any more. 10 bytes.
type Probe struct {
	Epoch uint64 `bound:"any"`
}

// Append encodes the message.
func (m *Probe) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *Probe) Decode(b []byte) error { return decode(m, b) }

func (m *Probe) code(c coder) coder {
	c.begin(KindProbe)
	numbers(&c, &m.Epoch)
	return c
}

// Lead says who leads: published by the leader at every heartbeat interval.
// Workers obey the highest epoch that they have seen.
type Lead struct {
	Epoch uint64 `json:"epoch" bound:"any"`
	// Coordinator leads. If it is empty, the leader of this epoch leads no longer, and workers
	// ask who leads.
	Coordinator string `json:"coordinator" bound:"name"`
	// Refused names the workers that this leader does not use, and why: another
	// protocol or numerics.
	Refused map[string]string `json:"refused,omitempty" bound:"..4096"`
	// Twins has the ids that two workers have, with the addresses of both.
	Twins map[string]string `json:"twins,omitempty" bound:"..4096"`
	// Revoked has the serial numbers of the certificates that the cluster has revoked. If it is empty, they
	// are as in an earlier announcement.
	Revoked []string `json:"revoked,omitempty" bound:"..10000 ..64"`
}

// Append encodes the message.
func (m *Lead) Append(dst []byte) []byte { return appendJSON(dst, KindLead, m) }

// Decode reads the message.
func (m *Lead) Decode(b []byte) error { return bounded(m, readJSON(b, KindLead, m)) }

// BlobGet asks for bytes [Offset, Offset+Length) of a blob, Length at most
// BlobChunk. A node that lacks the blob answers with Found false, or, on the subject that
// all coordinators share, not at all.
type BlobGet struct {
	Digest string `bound:"digest"` // SHA-256 in hex
	Offset uint64 `bound:"0..68719476736"`
	Length uint32 `bound:"0..262144"`
}

// Append encodes the message.
func (m *BlobGet) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *BlobGet) Decode(b []byte) error { return decode(m, b) }

func (m *BlobGet) code(c coder) coder {
	c.begin(KindBlobGet)
	c.text(&m.Digest, 64)
	numbers(&c, &m.Offset)
	count(&c, &m.Length, BlobChunk)
	return c
}

// Replicate asks a coordinator to fetch a blob from another and to sync it; the
// reply comes once it is on disk.
type Replicate struct {
	Digest string `json:"digest" bound:"digest"`
	Bytes  uint64 `json:"bytes" bound:"0..68719476736"`
	From   string `json:"from" bound:"name"` // the coordinator that has it, on its CoordinatorBlobs subject
}

// Append encodes the message.
func (m *Replicate) Append(dst []byte) []byte { return appendJSON(dst, KindReplicate, m) }

// Decode reads the message.
func (m *Replicate) Decode(b []byte) error { return bounded(m, readJSON(b, KindReplicate, m)) }
