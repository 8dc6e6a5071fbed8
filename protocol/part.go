package protocol

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Part is a node of a round's reduction tree: level 0 is a task, a higher level
// the sum of tasks that one worker computed. Greatest size: MaxMessage.
type Partial struct {
	Stamp
	Worker  string
	Level   uint8
	Index   uint32
	Compute uint64 // nanoseconds that the worker computed
	Partial *round.Partial
}

// Append encodes the message.
func (m *Partial) Append(dst []byte) []byte {
	dst = append(m.appendHead(dst), num.Bytes32(m.Partial.F32)...)
	return m.appendTail(dst)
}

// Parts encodes the message as three parts, one behind the other, into dst's memory and that of F32, which may be as
// large as the parameters of a network and is not copied.
func (m *Partial) Parts(dst []byte) [3][]byte {
	head := m.appendHead(dst)
	all := m.appendTail(head)
	return [3][]byte{all[:len(head):len(head)], num.Bytes32(m.Partial.F32), all[len(head):]}
}

// appendHead encodes what comes before the numbers of F32.
func (m *Partial) appendHead(dst []byte) []byte {
	p := m.Partial
	dst = m.Stamp.append(header(dst, KindPartial))
	dst = appendText(dst, m.Worker)
	dst = append(dst, m.Level)
	dst = le.AppendUint32(dst, m.Index)
	dst = le.AppendUint64(dst, m.Compute)
	dst = le.AppendUint32(dst, uint32(p.Width))
	dst = appendBytes(dst, num.Bytes64(p.F64))
	return le.AppendUint64(dst, uint64(4*len(p.F32)))
}

// appendTail encodes what comes behind them.
func (m *Partial) appendTail(dst []byte) []byte {
	dst = appendBytes(dst, num.BytesU32(m.Partial.Index))
	return appendBytes(dst, num.Bytes32(m.Partial.Values))
}

// Decode reads the message. The numbers are copied into m.Partial, which must
// not be nil and whose memory is reused; check it against the round's shape. Where it is Lent, its float32
// numbers stand in the memory of b, which nobody may read any more.
func (m *Partial) Decode(b []byte) error {
	r := read(b, KindPartial)
	m.Stamp = r.stamp()
	m.Worker = r.again(m.Worker, MaxText)
	m.Level, m.Index, m.Compute = r.u8(), r.u32(), r.u64()
	width := r.u32()
	f64, f32, index, values := r.numbers(8), r.numbers(4), r.numbers(4), r.numbers(4)
	if err := r.end(); err != nil {
		return err
	}
	p := m.Partial
	p.Width = int(width)
	p.F64 = floats64(p.F64, f64)
	p.Index = uints32(p.Index, index)
	if p.Lent {
		// Those at the end first: each moves down, by fewer bytes than its length before it has.
		at := len(b) - len(values)
		p.Values = lent32(b, at, len(values))
		p.F32 = lent32(b, at-8-len(index)-8-len(f32), len(f32))
		return nil
	}
	p.F32 = floats32(p.F32, f32)
	p.Values = floats32(p.Values, values)
	return nil
}

// lent32 returns the numbers in the n bytes of a message from at on, in its own memory: they are
// moved down to where numbers may be, over what was read.
func lent32(msg []byte, at, n int) []float32 {
	if n == 0 {
		return nil
	}
	to := at - int(uintptr(unsafe.Pointer(&msg[at]))%4)
	if to != at {
		copy(msg[to:], msg[at:at+n])
	}
	return num.Float32s(msg[to : to+n])
}

// numbers reads bytes whose length is a multiple of size.
func (r *reader) numbers(size int) []byte {
	b := r.bytes()
	if len(b)%size != 0 {
		r.fail("a list of numbers has %d bytes, want a multiple of %d", len(b), size)
		return nil
	}
	return b
}

// PeekStamp returns the stamp of a Part, Collected, Checkpoint, Progress, Need or
// Fail message.
func PeekStamp(b []byte) (Stamp, error) {
	k, err := KindOf(b)
	if err != nil {
		return Stamp{}, err
	}
	r := read(b, k)
	s := r.stamp()
	return s, r.err
}

// Collected says that a worker computed the bytes of a collected task; the
// leader fetches them by digest from the worker. Greatest size: 64 KiB + 200.
type Result struct {
	Stamp
	Worker  string
	Task    uint32
	Compute uint64 // nanoseconds
	Digest  string // SHA-256 in hex
	Bytes   uint64
}

// Append encodes the message.
func (m *Result) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindResult))
	dst = appendText(dst, m.Worker)
	dst = le.AppendUint32(dst, m.Task)
	dst = le.AppendUint64(dst, m.Compute)
	dst = appendText(dst, m.Digest)
	return le.AppendUint64(dst, m.Bytes)
}

// Decode reads the message.
func (m *Result) Decode(b []byte) error {
	r := read(b, KindResult)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Task, m.Compute = r.u32(), r.u64()
	m.Digest, m.Bytes = r.text(64), r.u64()
	return r.end()
}

// Need says that a worker lacks what a round needs: the job's Setup, or values.
// The leader sends it, and the Run again. Greatest size: 64 KiB + 1 KiB.
type Need struct {
	Stamp
	Worker string
	Setup  bool
	Refs   []Ref
}

// Append encodes the message.
func (m *Need) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindNeed))
	dst = appendText(dst, m.Worker)
	return appendRefs(append(dst, boolByte(m.Setup)), m.Refs)
}

// Decode reads the message.
func (m *Need) Decode(b []byte) error {
	r := read(b, KindNeed)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Setup = r.flag()
	m.Refs = r.refs(m.Refs)
	return r.end()
}

// Fail says that a worker could not compute a task. Greatest size: 128 KiB + 100.
type Fail struct {
	Stamp
	Worker string
	Task   uint32
	// Permanent failures (a kernel's error, a damaged message) would happen
	// anywhere; others are passing, and the task is given to another worker.
	Permanent bool
	// NonFinite: the partial had a NaN or an infinity; another worker's answer
	// tells whether that is the job's fault or the worker's.
	NonFinite bool
	// Unable: this worker never can (its --memory is too small), another might.
	Unable bool
	Reason string
}

// The bits of the byte that says what kind of failure it was.
const (
	failPermanent = 1 << iota
	failNonFinite
	failUnable
	failKinds = 1<<iota - 1
)

func (m *Fail) kinds() byte {
	return boolByte(m.Permanent)*failPermanent | boolByte(m.NonFinite)*failNonFinite | boolByte(m.Unable)*failUnable
}

// Append encodes the message.
func (m *Fail) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindFail))
	dst = appendText(dst, m.Worker)
	dst = le.AppendUint32(dst, m.Task)
	dst = append(dst, m.kinds())
	return appendText(dst, m.Reason[:min(len(m.Reason), MaxText)])
}

// Decode reads the message.
func (m *Fail) Decode(b []byte) error {
	r := read(b, KindFail)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Task = r.u32()
	kinds := r.u8()
	if r.err == nil && kinds > failKinds {
		r.fail("unknown kinds of failure: %#x", kinds)
	}
	m.Permanent, m.NonFinite, m.Unable = kinds&failPermanent != 0, kinds&failNonFinite != 0, kinds&failUnable != 0
	m.Reason = r.text(MaxText)
	return r.end()
}
