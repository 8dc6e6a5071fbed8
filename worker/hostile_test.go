package worker

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/worker/batch"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// honest lists messages that a leader of epoch e sends of job id: a Setup, the
// values of its first round, the round, and what else there is.
func honest(t testing.TB, e, id uint64, d *data, j *round.Job) [][]byte {
	t.Helper()
	list, _ := rounds(t, d, j, 1)
	l := &leader{epoch: e}
	run := l.message(id, 0, list[0], allTasks(list[0].Tasks))
	messages := [][]byte{
		(&protocol.Setup{Epoch: e, ID: id, Job: j, Manifest: d.manifest}).Append(nil),
		(&protocol.Hold{Epoch: e, Shards: d.manifest.Shards[:2]}).Append(nil),
		(&protocol.Lead{Epoch: e, Coordinator: "a"}).Append(nil),
		(&protocol.Forget{Epoch: e, Job: id + 1}).Append(nil),
		(&protocol.Fragment{Sender: 1, Message: 1, Total: protocol.MaxMessage, Data: []byte{1, 5, 0}}).Append(nil),
	}
	for _, v := range list[0].Vars {
		messages = append(messages, (&protocol.Value{Epoch: e, Job: id, Ref: protocol.Ref{ID: v.ID, Version: v.Version},
			Data: v.Data}).Append(nil))
	}
	// chunks that nobody has, then the value as a whole
	for _, ref := range []protocol.Ref{{ID: 60, Version: 1}, {ID: 61, Version: 1}} {
		named := protocol.Chunk{Epoch: e, Job: id, Ref: ref, Of: 2, Digest: strings.Repeat("0", 64)}
		messages = append(messages, named.Append(nil), (&protocol.Value{Epoch: e, Job: id, Ref: ref, Data: []byte{1}}).
			Append(nil))
	}
	messages = append(messages, run.Append(nil))
	run.Of, run.Tasks, run.Refs = 3, []uint32{2, 2, 0, 1, 1}, nil
	messages = append(messages, run.Append(nil))
	run.Gather, run.SubJob, run.Payload = true, true, [][]byte{{1}, {2}, {}, nil, bytes.Repeat([]byte{0xff}, 40)}
	return append(messages, run.Append(nil))
}

// mutated changes some bytes of a message, or its length.
func mutated(rng *rand.Rand, m []byte) []byte {
	m = bytes.Clone(m)
	for range 1 + rng.IntN(4) {
		switch at := rng.IntN(len(m)); rng.IntN(6) {
		case 0:
			m[at] ^= 1 << rng.IntN(8)
		case 1:
			m[at] = 0xff
		case 2:
			m = append(m[:at:at], m[min(len(m), at+1+rng.IntN(9)):]...)
		case 3:
			m = append(m, m[at:]...)
		case 4:
			if at+8 <= len(m) {
				binary.LittleEndian.PutUint64(m[at:], rng.Uint64()>>rng.IntN(64))
			}
		default:
			m[at] = byte(rng.Uint32())
		}
		if len(m) == 0 {
			return []byte{protocol.Version}
		}
	}
	return m
}

// lies are messages that are well-formed and yet wrong.
func lies(d *data, j *round.Job) [][]byte {
	setup := func(id uint64, change func(*round.Job, *dataset.Manifest)) []byte {
		job, m := *j, *d.manifest
		change(&job, &m)
		job.Dataset = m.Digest()
		return (&protocol.Setup{Epoch: 5, ID: id, Job: &job, Manifest: &m}).Append(nil)
	}
	messages := [][]byte{
		{}, {protocol.Version}, {9, 9},
		setup(50, func(_ *round.Job, m *dataset.Manifest) { m.Rows = 1 << 62 }),
		setup(51, func(_ *round.Job, m *dataset.Manifest) { m.Shards = m.Shards[:1] }),
		setup(52, func(_ *round.Job, m *dataset.Manifest) { m.Features, m.Labels = -1, -1 }),
		setup(53, func(j *round.Job, _ *dataset.Manifest) { j.Split.TestFraction = 1e300 }),
		setup(54, func(j *round.Job, _ *dataset.Manifest) { j.Split.Folds, j.Split.Fold = 2, math.MaxInt }),
		setup(55, func(j *round.Job, _ *dataset.Manifest) { j.Params = []byte(`{"trees":1000,"depth":20}`) }),
		(&protocol.Hold{Epoch: 5, Shards: []dataset.ShardRef{{Digest: "../../etc/passwd", Bytes: -1},
			{Digest: strings.Repeat("0", 64), Bytes: math.MaxInt64}}}).Append(nil),
		(&protocol.Lead{Epoch: 4, Coordinator: strings.Repeat("x", 1<<20)}).Append(nil),
		make([]byte, 9<<20), // more than NATS carries at once
	}
	for kind := range 256 {
		messages = append(messages, []byte{protocol.Version, byte(kind)}, append([]byte{protocol.Version, byte(kind)},
			bytes.Repeat([]byte{0xff}, 100)...))
	}
	messages = append(messages, setup(41, func(*round.Job, *dataset.Manifest) {}))
	huge := &protocol.Run{Stamp: protocol.Stamp{Epoch: 5, Job: 41, Round: 1 << 40}, Of: protocol.MaxTasks,
		Shape: round.Shape{F64: protocol.MaxMessage / 8}}
	for u := range uint32(protocol.MaxTasks / 2) {
		huge.Tasks = append(huge.Tasks, 2*u)
	}
	messages = append(messages, huge.Append(nil))
	for id := range uint16(3 * protocol.MaxVars) {
		messages = append(messages, (&protocol.Value{Epoch: 5, Job: 40, Ref: protocol.Ref{ID: 1000 + id, Version: 1},
			Data: make([]byte, 1<<10)}).Append(nil))
	}
	return messages
}

// large reports whether a Run asks for partials that are lawful and yet too large
// for a test.
func large(m []byte) bool {
	var run protocol.Run
	return run.Decode(m) == nil && run.Shape.F64+run.Shape.F32 > 1<<20
}

// rest waits until the worker has taken all messages and computes nothing: the next
// Run would supersede it.
func (r *running) rest(t testing.TB, c *cluster) {
	t.Helper()
	if err := c.conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a rest", func() bool {
		return r.quiet(func(j *batch.Job) bool { return j.Live() == 0 })
	})
}

// TestHostileMessages: whatever comes on a worker's subjects, from whoever, with
// whatever epoch, it goes on: afterwards a job has the bits that it always has.
func TestHostileMessages(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, nil)
	c.lead("a", 5)
	rng := rand.New(rand.NewPCG(1, 0))
	send := func(subject string, m []byte) {
		reply := []string{"", c.subjects.Results("nobody", 5)}[rng.IntN(2)]
		if err := c.conn.Send(subject, reply, m); err != nil {
			t.Fatal(err)
		}
	}
	good := honest(t, 5, 40, d, j)
	work, lead := c.subjects.Work(w.id), c.subjects.Lead()
	used := allocs.Of(func() {
		for _, m := range append(good, lies(d, j)...) {
			send(work, m)
			send(lead, m)
		}
		for round := range uint64(1000) { // fresh, and so obeyed where they can be read
			m := mutated(rng, good[rng.IntN(len(good))])
			if kind, err := protocol.KindOf(m); err == nil && len(m) > 26 &&
				(kind == protocol.KindRun || kind == protocol.KindValue) {
				binary.LittleEndian.PutUint64(m[2:], 5)
				binary.LittleEndian.PutUint64(m[10:], 40)
				if kind == protocol.KindRun {
					if large(m) {
						continue
					}
					binary.LittleEndian.PutUint64(m[18:], round+1)
				}
				send(work, m)
				w.rest(t, c)
			}
		}
		for range 1000 {
			m := mutated(rng, good[rng.IntN(len(good))])
			send(work, m)
			send(lead, m)
		}
	})
	t.Logf("%d MiB were allocated", used>>20)
	l := c.lead("b", math.MaxUint64) // above whatever epoch was made up
	e := l.executor(99, j, d, w)     // what a value of job 40 was said to be is kept
	e.check = oracle(t, d, j)
	trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
	if err := engine.Drive(t.Context(), trainer, 0, e, func(uint64, round.Trainer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, trainer, j, d)
	if _, n := w.jobs.counts(); n > batch.MaxBusyJobs {
		t.Errorf("%d jobs are kept", n)
	}
}
