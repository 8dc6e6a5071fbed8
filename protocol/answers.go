package protocol

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Heartbeat is a worker's heartbeat: published at every heartbeat interval, and at
// once when Holds changes or a new leader shows up.
type Heartbeat struct {
	Worker   string `json:"worker" bound:"name"`
	Version  string `json:"version" bound:"..64"`
	Protocol int    `json:"protocol" bound:"0..1048576"`
	Numerics int    `json:"numerics" bound:"0..1048576"`
	Slots    int    `json:"slots" bound:"0..4096"`
	Metrics  string `json:"metrics,omitempty" bound:"..256"` // HTTP address of its /metrics
	// RoundTrip, in microseconds, is the smoothed round trip to the NATS server that the
	// worker is connected to, Late after how long an answer is late; 0: not measured yet.
	RoundTrip int64 `json:"round_trip_us,omitempty" bound:"0..3600000000"`
	Late      int64 `json:"late_us,omitempty" bound:"0..3600000000"`
	// Leaving is true if it finishes nothing more and leaves; give its tasks to others now.
	Leaving bool `json:"leaving,omitempty" bound:"any"`
	Busy    int  `json:"busy,omitempty" bound:"0..65536"` // tasks that it computes now
	// Problem, if set, is why it takes no tasks just now: its folder cannot be written.
	Problem string `json:"problem,omitempty" bound:"..65536"`
	// Full heartbeats carry what follows; others leave what was said before in force.
	Full    bool     `json:"full,omitempty" bound:"any"`
	Holds   []string `json:"holds,omitempty" bound:"..65536 digest"` // digests of verified shards in its cache
	Host    string   `json:"host,omitempty" bound:"..256"`           // name of its machine
	Address string   `json:"address,omitempty" bound:"..256"`        // from which it is connected to NATS
	Process string   `json:"process,omitempty" bound:"..64"`         // drawn when its process started
	// of its machine: the load average of a minute; 0: unknown
	Load float64 `json:"load,omitempty" bound:"0..1000000"`
}

// Append encodes the message.
func (m *Heartbeat) Append(dst []byte) []byte { return appendJSON(dst, KindHeartbeat, m) }

// Decode reads the message.
func (m *Heartbeat) Decode(b []byte) error {
	if len(b) > MaxHeartbeatBytes {
		return fmt.Errorf("%w: the heartbeat message has %d bytes, want at most %d", ErrMessage, len(b), MaxHeartbeatBytes)
	}
	return bounded(m, readJSON(b, KindHeartbeat, m))
}

// Partial is a node of a round's reduction tree: level 0 is a task, a higher level
// the sum of tasks that one worker computed. Greatest size: MaxMessage.
type Partial struct {
	Stamp
	Worker  string         `bound:"..64"`
	Level   uint8          `bound:"0..32"`
	Index   uint32         `bound:"0..1048576"`
	Compute uint64         `bound:"0..2592000000000000"` // nanoseconds that the worker computed
	Partial *round.Partial `bound:"any"`
}

// Append encodes the message.
func (m *Partial) Append(dst []byte) []byte {
	b, _ := m.append(dst, false)
	return b
}

// Parts encodes the message as five parts, one behind the other, into the memory of dst, of F32 and of I32, which may
// be as large as the parameters of a network and are not copied.
func (m *Partial) Parts(dst []byte) [5][]byte {
	b, at := m.append(dst, true)
	return [5][]byte{b[:at[0]:at[0]], num.Bytes32(m.Partial.F32), b[at[0]:at[1]:at[1]], num.BytesI32(m.Partial.I32),
		b[at[1]:]}
}

// append encodes the message, without the numbers of F32 and I32 if apart is true. They begin at b[at].
func (m *Partial) append(dst []byte, apart bool) (b []byte, at [2]int) {
	p := m.Partial
	width := uint32(p.Width)
	f64, index, values := num.Bytes64(p.F64), num.BytesU32(p.Index), num.Bytes32(p.Values)
	c := m.code(coder{b: dst}, &width)
	c.bytes(&f64)
	for i, list := range [...][]byte{num.Bytes32(p.F32), num.BytesI32(p.I32)} {
		size := uint64(len(list))
		numbers(&c, &size)
		if at[i] = len(c.b); !apart {
			c.b = append(c.b, list...)
		}
	}
	c.bytes(&index)
	c.bytes(&values)
	return c.b, at
}

// Decode reads the message. It copies the numbers into the memory of m.Partial, which must not
// be nil; check them against the round's shape. If m.Partial is Lent, its float32 and int32 numbers stay
// in the memory of b, which nobody may read from then on.
func (m *Partial) Decode(b []byte) error {
	var width uint32
	c := m.code(coder{b: b, reads: true}, &width)
	var f64, f32, i32, index, values []byte
	for _, list := range []*[]byte{&f64, &f32, &i32, &index, &values} {
		size := 4
		if list == &f64 {
			size = 8
		}
		if c.bytes(list); len(*list)%size != 0 {
			c.fail("a list of numbers has %d bytes, want a multiple of %d", len(*list), size)
		}
	}
	if err := bounded(m, c.end()); err != nil {
		return err
	}
	p := m.Partial
	p.Width = int(width)
	p.F64 = copied(p.F64, f64)
	p.Index = copied(p.Index, index)
	if p.Lent {
		// The last ones first: each list moves down by fewer bytes than its length before it has.
		at := len(b) - len(values)
		p.Values = num.Float32s(lent32(b, at, len(values)))
		at -= 8 + len(index) + 8 + len(i32)
		p.I32 = num.Int32s(lent32(b, at, len(i32)))
		p.F32 = num.Float32s(lent32(b, at-8-len(f32), len(f32)))
		return nil
	}
	p.I32 = copied(p.I32, i32)
	p.F32 = copied(p.F32, f32)
	p.Values = copied(p.Values, values)
	return nil
}

// code codes what comes before the lists of numbers.
func (m *Partial) code(c coder, width *uint32) coder {
	c.begin(KindPartial)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	numbers(&c, &m.Level)
	numbers(&c, &m.Index)
	numbers(&c, &m.Compute)
	numbers(&c, width)
	return c
}

// copied returns the numbers in b, in the memory of dst if they fit. It copies bytes: most
// numbers of a message are not aligned.
func copied[T float64 | float32 | int32 | uint32](dst []T, b []byte) []T {
	n := len(b) / int(unsafe.Sizeof(*new(T)))
	if cap(dst) < n {
		dst = make([]T, n)
	}
	dst = dst[:n]
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(b)), b)
	return dst
}

// lent32 returns the n bytes of a message from at on, numbers of four bytes, in the memory of the message.
// It moves them down to an aligned place, over what was read.
func lent32(msg []byte, at, n int) []byte {
	if n == 0 {
		return nil
	}
	to := at - int(uintptr(unsafe.Pointer(&msg[at]))%4)
	if to != at {
		copy(msg[to:], msg[at:at+n])
	}
	return msg[to : to+n]
}

// PeekStamp returns the stamp of a Partial, Result, Checkpoint, Progress, Need or Fail, and the
// name of the worker that it says it is from. The name is part of b.
func PeekStamp(b []byte) (s Stamp, worker []byte, err error) {
	k, err := KindOf(b)
	if err != nil {
		return s, nil, err
	}
	c := coder{b: b, reads: true}
	c.begin(k)
	numbers(&c, &s.Epoch, &s.Job, &s.Round)
	var n uint32
	count(&c, &n, MaxText)
	worker = c.take(uint64(n))
	if c.err != nil {
		return Stamp{}, nil, c.err
	}
	return s, worker, nil
}

// Result says that a worker computed the bytes of a task of a gather round. The
// leader fetches them by digest from the worker. Greatest size: 64 KiB + 200.
type Result struct {
	Stamp
	Worker  string `bound:"..64"`
	Task    uint32 `bound:"0..1048576"`
	Compute uint64 `bound:"0..2592000000000000"` // nanoseconds
	Digest  string `bound:"digest"`              // SHA-256 in hex
	Bytes   uint64 `bound:"0..68719476736"`
}

// Append encodes the message.
func (m *Result) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *Result) Decode(b []byte) error { return decode(m, b) }

func (m *Result) code(c coder) coder {
	c.begin(KindResult)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	numbers(&c, &m.Task)
	numbers(&c, &m.Compute)
	c.text(&m.Digest, 64)
	numbers(&c, &m.Bytes)
	return c
}

// Need says that a worker lacks what a round needs: the job's Setup, or values.
// The leader sends it, and the Run again. Greatest size: 64 KiB + 1 KiB.
type Need struct {
	Stamp
	Worker string `bound:"..64"`
	Setup  bool   `bound:"any"`
	Refs   []Ref  `bound:"..64 any"`
}

// Append encodes the message.
func (m *Need) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *Need) Decode(b []byte) error { return decode(m, b) }

func (m *Need) code(c coder) coder {
	c.begin(KindNeed)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	c.flag(&m.Setup)
	codeRefs(&c, &m.Refs)
	return c
}

// Fail says that a worker could not compute a task. Greatest size: 128 KiB + 100.
type Fail struct {
	Stamp
	Worker string `bound:"..64"`
	Task   uint32 `bound:"0..1048576"`
	// Permanent failures (a kernel's error, a damaged message) would happen
	// anywhere; others are passing, and the task is given to another worker.
	Permanent bool `bound:"any"`
	// NonFinite is true if the partial had a NaN or an infinity; another worker's answer
	// tells whether that is the job's fault or the worker's.
	NonFinite bool `bound:"any"`
	// Unable is true if this worker never can (its --memory is too small), but another might.
	Unable bool   `bound:"any"`
	Reason string `bound:"..65536"`
}

// Append encodes the message.
func (m *Fail) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *Fail) Decode(b []byte) error { return decode(m, b) }

func (m *Fail) code(c coder) coder {
	c.begin(KindFail)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	numbers(&c, &m.Task)
	all := []*bool{&m.Permanent, &m.NonFinite, &m.Unable}
	var kinds uint8 // a bit for each
	for i, is := range all {
		if *is {
			kinds |= 1 << i
		}
	}
	numbers(&c, &kinds)
	if !c.reads {
		reason := m.Reason[:min(len(m.Reason), MaxText)]
		c.text(&reason, MaxText)
		return c
	}
	if kinds >= 1<<len(all) {
		c.fail("unknown kinds of failure: %#x", kinds)
	}
	for i, is := range all {
		*is = kinds>>i&1 == 1
	}
	c.text(&m.Reason, MaxText)
	return c
}

// Checkpoint hands back the trainer state of a sub-job that a worker runs, now
// and then, so that another worker can go on from there. Greatest size:
// MaxMessage.
type Checkpoint struct {
	Stamp
	Worker string `bound:"..64"`
	Task   uint32 `bound:"0..1048576"`
	Resume
}

// Append encodes the message.
func (m *Checkpoint) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message. State and Curve share the memory of b.
func (m *Checkpoint) Decode(b []byte) error { return decode(m, b) }

func (m *Checkpoint) code(c coder) coder {
	c.begin(KindCheckpoint)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	numbers(&c, &m.Task)
	return m.Resume.code(c)
}

// Resume is the state from which a sub-job goes on: the payload of its task in a Run, empty at
// its beginning.
type Resume struct {
	Rounds uint64 `bound:"0..9007199254740992"` // folded into State
	State  []byte `bound:"any"`                 // of the sub-job's trainer
	Curve  []byte `bound:"any"`                 // encoded, of the rounds so far; empty: none
}

// Append encodes the payload.
func (p *Resume) Append(dst []byte) []byte { return p.code(coder{b: dst}).b }

// Decode reads the payload. State and Curve share the memory of b.
func (p *Resume) Decode(b []byte) error { return decode(p, b) }

func (p *Resume) code(c coder) coder {
	numbers(&c, &p.Rounds)
	c.bytes(&p.State)
	c.bytes(&p.Curve)
	return c
}

// Work counts what a job has done.
type Work struct {
	Rounds  uint64 `bound:"0..9007199254740992"`
	Steps   uint64 `bound:"0..9007199254740992"`
	Samples uint64 `bound:"0..9007199254740992"`
}

// Progress says how far a sub-job is that a worker runs: for people and metrics
// only. It is sent at most twice a second, and once the job has ended. Greatest size:
// 64 KiB + 200.
type Progress struct {
	Stamp
	Worker string  `bound:"..64"`
	Task   uint32  `bound:"0..1048576"`
	Done   Work    // since the sub-job's beginning, on any worker
	Steps  uint64  `bound:"0..9007199254740992"` // that it takes; 0: unknown
	Most   uint64  `bound:"0..9007199254740992"` // that it takes at most, if it may end before; 0: it takes Steps
	Loss   float64 `bound:"finite"`              // the last known loss, as K-L; negative: none yet
	// Counted is the part of Done that the worker told an earlier leader.
	Counted Work
}

// Append encodes the message.
func (m *Progress) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *Progress) Decode(b []byte) error { return decode(m, b) }

func (m *Progress) code(c coder) coder {
	c.begin(KindProgress)
	numbers(&c, &m.Epoch, &m.Job, &m.Round)
	c.text(&m.Worker, MaxText)
	numbers(&c, &m.Task)
	numbers(&c, &m.Done.Rounds, &m.Done.Steps, &m.Done.Samples, &m.Steps, &m.Most)
	loss := math.Float64bits(m.Loss)
	if numbers(&c, &loss); c.reads {
		m.Loss = math.Float64frombits(loss)
	}
	numbers(&c, &m.Counted.Rounds, &m.Counted.Steps, &m.Counted.Samples)
	return c
}

// Progress returns the message as what a Trainer says.
func (m *Progress) Progress() round.Progress {
	p := round.Progress{Step: m.Done.Steps, Steps: m.Steps, MostSteps: m.Most, Samples: m.Done.Samples, Loss: m.Loss}
	if p.Steps > 0 {
		p.Step = min(p.Step, p.Steps)
	}
	return p
}

// Or returns the greater of both, count by count.
func (w Work) Or(v Work) Work {
	return Work{max(w.Rounds, v.Rounds), max(w.Steps, v.Steps), max(w.Samples, v.Samples)}
}

// Beyond returns what w has more than v, count by count.
func (w Work) Beyond(v Work) Work {
	return Work{w.Rounds - min(w.Rounds, v.Rounds), w.Steps - min(w.Steps, v.Steps), w.Samples - min(w.Samples, v.Samples)}
}

// BlobData answers a BlobGet. Greatest size: BlobChunk + 32 bytes.
type BlobData struct {
	Found      bool   `bound:"any"`
	Unreadable bool   `bound:"any"`            // never with Found: it is there, and cannot be read just now
	Total      uint64 `bound:"0..68719476736"` // size of the whole blob
	Data       []byte `bound:"any"`
}

// Append encodes the message.
func (m *BlobData) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message. Data shares the memory of b.
func (m *BlobData) Decode(b []byte) error { return decode(m, b) }

func (m *BlobData) code(c coder) coder {
	const found, unreadable = 1, 2
	var state uint8
	switch {
	case m.Unreadable:
		state = unreadable
	case m.Found:
		state = found
	}
	c.begin(KindBlobData)
	if numbers(&c, &state); c.reads {
		m.Found, m.Unreadable = state == found, state == unreadable
	}
	if state > unreadable {
		c.fail("the first byte of a blob's chunk is %d, want 0, 1 or %d", state, unreadable)
	}
	numbers(&c, &m.Total)
	c.bytes(&m.Data)
	return c
}

// Reply answers a request: an empty Error is success.
type Reply struct {
	Error string `json:"error,omitempty" bound:"..1048576"`
}

// Append encodes the message.
func (m *Reply) Append(dst []byte) []byte { return appendJSON(dst, KindReply, m) }

// Decode reads the message.
func (m *Reply) Decode(b []byte) error { return bounded(m, readJSON(b, KindReply, m)) }
