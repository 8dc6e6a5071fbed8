package protocol

import (
	"math"

	"github.com/coppice-ldl/coppice/engine/round"
)

// MaxCount bounds the counts of a Progress: float64 holds them all.
const MaxCount = 1 << 53

// Work counts what a job has done.
type Work struct{ Rounds, Steps, Samples uint64 }

// Progress says how far a sub-job is that a worker runs: for people and metrics
// only. It is sent at most twice a second, and once the job has ended. Greatest size:
// 64 KiB + 200.
type Progress struct {
	Stamp
	Worker string
	Task   uint32
	Done   Work    // since the child's beginning, wherever it was computed
	Steps  uint64  // that it takes; 0 where unknown
	Most   uint64  // that it takes at most, where it may end before; 0: it takes Steps
	Loss   float64 // the last known loss, as K-L; negative: none yet
	// Counted is the part of Done that the worker told an earlier leader.
	Counted Work
}

// Append encodes the message.
func (m *Progress) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindProgress))
	dst = appendText(dst, m.Worker)
	dst = le.AppendUint32(dst, m.Task)
	dst = m.Done.append(dst)
	dst = le.AppendUint64(dst, m.Steps)
	dst = le.AppendUint64(dst, m.Most)
	dst = le.AppendUint64(dst, math.Float64bits(m.Loss))
	return m.Counted.append(dst)
}

// Decode reads the message.
func (m *Progress) Decode(b []byte) error {
	r := read(b, KindProgress)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Task = r.u32()
	m.Done = r.work()
	m.Steps, m.Most = r.quantity(), r.quantity()
	m.Loss = math.Float64frombits(r.u64())
	m.Counted = r.work()
	if m.Loss-m.Loss != 0 {
		r.fail("the progress has a loss of %v, which is not possible", m.Loss)
	}
	return r.end()
}

// Progress returns the message as what a Trainer says.
func (m *Progress) Progress() round.Progress {
	p := round.Progress{Step: m.Done.Steps, Steps: m.Steps, MostSteps: m.Most, Samples: m.Done.Samples, Loss: m.Loss}
	if p.Steps > 0 {
		p.Step = min(p.Step, p.Steps)
	}
	return p
}

func (w Work) append(dst []byte) []byte {
	for _, n := range []uint64{w.Rounds, w.Steps, w.Samples} {
		dst = le.AppendUint64(dst, n)
	}
	return dst
}

func (r *reader) work() Work { return Work{r.quantity(), r.quantity(), r.quantity()} }

// quantity reads a u64 that is at most MaxCount.
func (r *reader) quantity() uint64 {
	n := r.u64()
	if n > MaxCount {
		r.fail("want a count of at most %[2]d, got %[1]d", n, uint64(MaxCount))
		return 0
	}
	return n
}

// Or returns the greater of both, count by count.
func (w Work) Or(v Work) Work {
	return Work{max(w.Rounds, v.Rounds), max(w.Steps, v.Steps), max(w.Samples, v.Samples)}
}

// Beyond returns what w has more than v, count by count.
func (w Work) Beyond(v Work) Work {
	return Work{w.Rounds - min(w.Rounds, v.Rounds), w.Steps - min(w.Steps, v.Steps), w.Samples - min(w.Samples, v.Samples)}
}
