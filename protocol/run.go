package protocol

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Stamp fences and addresses a message: which leader, which job, which round.
type Stamp struct {
	Epoch uint64 // the log index of the leader's Lead entry
	Job   uint64
	Round uint64
}

func (s Stamp) append(dst []byte) []byte {
	dst = le.AppendUint64(dst, s.Epoch)
	dst = le.AppendUint64(dst, s.Job)
	return le.AppendUint64(dst, s.Round)
}

func (r *reader) stamp() Stamp { return Stamp{r.u64(), r.u64(), r.u64()} }

// Ref names one version of a value.
type Ref struct {
	ID      uint16
	Version uint64
}

// Run asks a worker to compute tasks of a round and to answer on the subject of
// the message's reply. Greatest size: 160 bytes, 10 for each value, 4 for each
// task, and the payloads.
type Run struct {
	Stamp
	Kind    string // word for the tasks, for metrics: algorithms.ValidKind
	Op      uint8
	Of      uint32 // tasks in the round
	Scope   round.Scope
	How     round.Combine
	Roles   dataset.Roles
	Steps   [2]uint64
	Keep    uint64
	Shape   round.Shape
	Refs    []Ref
	Tasks   []uint32
	Payload [][]byte // of a gather round: one for each of Tasks, may be empty
	// SubJob is set where the tasks are whole jobs: the worker makes them from the
	// job and the task's number.
	SubJob bool
}

// Append encodes the message.
func (m *Run) Append(dst []byte) []byte {
	dst = appendText(m.Stamp.append(header(dst, KindRun)), m.Kind)
	dst = append(dst, m.Op, byte(m.Scope), byte(m.How), byte(m.Roles), boolByte(m.SubJob))
	dst = le.AppendUint32(dst, m.Of)
	for _, v := range []uint64{m.Steps[0], m.Steps[1], m.Keep} {
		dst = le.AppendUint64(dst, v)
	}
	for _, v := range []int{m.Shape.F64, m.Shape.F32, m.Shape.Rows, m.Shape.Width} {
		dst = le.AppendUint32(dst, uint32(v))
	}
	dst = appendRefs(dst, m.Refs)
	dst = le.AppendUint32(dst, uint32(len(m.Tasks)))
	for i, u := range m.Tasks {
		dst = le.AppendUint32(dst, u)
		if m.How == round.Gather {
			dst = appendBytes(dst, m.payload(i))
		}
	}
	return dst
}

func (m *Run) payload(i int) []byte {
	if m.Payload == nil {
		return nil
	}
	return m.Payload[i]
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Decode reads the message, reusing m's memory; payloads alias b.
func (m *Run) Decode(b []byte) error {
	r := read(b, KindRun)
	m.Stamp = r.stamp()
	m.Kind = r.again(m.Kind, round.MaxKind)
	m.Op, m.Scope, m.How = r.u8(), round.Scope(r.u8()), round.Combine(r.u8())
	m.Roles, m.SubJob = dataset.Roles(r.u8()), r.flag()
	m.Of = uint32(r.count(MaxTasks))
	m.Steps[0], m.Steps[1], m.Keep = r.u64(), r.u64(), r.u64()
	m.Shape = round.Shape{F64: r.count(MaxMessage / 8), F32: r.size(), Rows: r.size(), Width: r.size()}
	m.Refs, m.Tasks, m.Payload = r.refs(m.Refs), m.Tasks[:0], m.Payload[:0]
	for n := r.count(MaxTasks); n > 0 && r.err == nil; n-- {
		m.task(&r)
	}
	if !round.ValidKind(m.Kind) {
		r.fail("unknown kind of tasks: %q", m.Kind)
	}
	if m.Scope > round.None || m.How > round.Gather || m.Of == 0 {
		r.fail("the kind of data (%d), the kind of result (%d) or the number of tasks (%d) is not valid", m.Scope, m.How, m.Of)
	}
	if 8*m.Shape.F64+4*m.Shape.F32 > MaxMessage {
		r.fail("partial results of %d float64 and %d float32 values are too large for a message", m.Shape.F64, m.Shape.F32)
	}
	return r.end()
}

func (m *Run) task(r *reader) {
	u := r.u32()
	if r.err == nil && u >= m.Of {
		r.fail("there is no task %d, counted from 0: the round has %d tasks", u, m.Of)
	}
	m.Tasks = append(m.Tasks, u)
	if m.How == round.Gather {
		m.Payload = append(m.Payload, r.bytes())
	}
}

// size reads a length of a partial: at most MaxMessage/4 elements.
func (r *reader) size() int { return r.count(MaxMessage / 4) }

// Task returns the i-th of the message's tasks as its kernel sees it.
func (m *Run) Task(i int) round.Task {
	u := round.Task{
		ID: int(m.Tasks[i]), Of: int(m.Of), Op: m.Op, Scope: m.Scope, Roles: m.Roles,
		Steps: m.Steps, DerivedVersion: m.Keep,
	}
	if m.How == round.Gather && len(m.Payload[i]) > 0 {
		u.Payload = m.Payload[i]
	}
	return u
}

// Value gives a worker one version of a value. Greatest size: MaxMessage.
type Value struct {
	Epoch uint64
	Job   uint64
	Ref
	Data []byte
}

// Append encodes the message.
func (m *Value) Append(dst []byte) []byte { return append(m.AppendHead(dst), m.Data...) }

// AppendHead encodes all of the message but Data, which ends it.
func (m *Value) AppendHead(dst []byte) []byte {
	dst = header(dst, KindValue)
	dst = le.AppendUint64(dst, m.Epoch)
	dst = le.AppendUint64(dst, m.Job)
	dst = le.AppendUint16(dst, m.ID)
	dst = le.AppendUint64(dst, m.Version)
	return le.AppendUint64(dst, uint64(len(m.Data)))
}

// Decode reads the message; Data aliases b.
func (m *Value) Decode(b []byte) error {
	r := read(b, KindValue)
	m.Epoch, m.Job = r.u64(), r.u64()
	m.ID, m.Version = r.u16(), r.u64()
	m.Data = r.bytes()
	return r.end()
}
