package state

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// points is an encoded curve that ends at a step with a training loss.
func points(step uint64, loss float64) []byte {
	r := curve.NewRecorder(curve.JobPoints, nil)
	r.Observe(round.Progress{Step: step - 1, Loss: 2 * loss}, int64(step-1)*100)
	r.Observe(round.Progress{Step: step, Loss: loss}, int64(step)*100)
	r.End()
	return restOf(r)
}

// restOf returns the new points of a curve, encoded.
func restOf(r *curve.Recorder) []byte {
	rest, mark := r.Uncommitted()
	r.Committed(mark)
	return rest.Append(nil)
}

// TestACurveGoesWithItsState: a commit extends the curve once its last piece is there, the
// curve is in a snapshot, and the job's end keeps it.
func TestACurveGoesWithItsState(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	r := curve.NewRecorder(curve.JobPoints, nil)
	observe := func(step uint64) []byte {
		r.Observe(round.Progress{Step: step, Loss: 1 / float64(step)}, int64(step))
		return restOf(r)
	}
	check := func() {
		t.Helper()
		if got := m.s.Job(j.ID).Curve; !bytes.Equal(got, r.Curve().Append(nil)) {
			t.Errorf("the curve is %x, want %x", got, r.Curve().Append(nil))
		}
	}
	for step := uint64(1); step <= 1500; step++ {
		e := &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: step, Total: 2, Data: []byte{1}}
		m.do(protocol.EntryCommit, e)
		e.Offset, e.Curve = 1, observe(step)
		m.do(protocol.EntryCommit, e)
	}
	check()
	early := &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1501, Total: 2, Data: []byte{1}, Curve: observe(1501)}
	if err := m.refused(protocol.EntryCommit, early); !errors.Is(err, ErrInvalid) {
		t.Errorf("a curve with the first piece: %v", err)
	}
	bad := &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1502, Total: 1, Data: []byte{1}, Curve: []byte{9}}
	before := m.s.Job(j.ID).Curve
	m.do(protocol.EntryCommit, bad)
	if got := m.s.Job(j.ID); got.Round != 1502 || !bytes.Equal(got.Curve, before) {
		t.Errorf("bytes that are no curve make it %x at round %d", got.Curve, got.Round)
	}
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID})
	check()
	m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID})
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running})
	bad.Curve, bad.Round = early.Curve, 2001
	m.do(protocol.EntryCommit, bad)
	check()
	r.End()
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: j.ID, Curve: restOf(r)})
	check()
	if got := decode(t, encode(t, m.s)).Job(j.ID).Curve; !bytes.Equal(got, r.Curve().Append(nil)) {
		t.Error("the curve is another in a snapshot")
	}
}

// TestABadCurveEndsNoJob: the job is done with the committed curve, and a bad curve of a
// fold is empty, also in a snapshot.
func TestABadCurveEndsNoJob(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch, line := m.s.Epoch(), points(3, 0.5)
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Total: 1, Data: []byte{1},
		Curve: line})
	long := append(bytes.Clone(line), make([]byte, protocol.MaxCurve)...)
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: j.ID, Curve: long,
		FoldCurves: [][]byte{{9}, line, nil}})
	for what, s := range map[string]*State{"the state": m.s, "its snapshot": decode(t, encode(t, m.s))} {
		got := s.Job(j.ID)
		if got.State != protocol.Done || !bytes.Equal(got.Curve, line) {
			t.Errorf("%s: the job is %s with the curve %x, want %x", what, got.State, got.Curve, line)
		}
		if c := got.FoldCurves; len(c) != 3 || len(c[0]) != 0 || !bytes.Equal(c[1], line) || len(c[2]) != 0 {
			t.Errorf("%s: the folds' curves are %x", what, c)
		}
	}
}

// TestRunningTime: the seconds of a job count the time in which it ran, however it ended,
// and never decrease.
func TestRunningTime(t *testing.T) {
	for _, end := range []protocol.JobState{protocol.Done, protocol.Cancelled, protocol.Failed} {
		m := newMachine(t)
		m.start()
		epoch, j := m.s.Epoch(), m.submit("t2", "two", 2)
		run := func(second, millis int64) {
			m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: second,
				Millis: millis})
		}
		ran := func(want float64) {
			t.Helper()
			if info := m.s.Job(j.ID).Info(); info.Ran != want || info.State.Final() && info.State != protocol.Done &&
				info.Seconds != want {
				t.Errorf("%s: ran %v seconds, %v in all; want %v", info.State, info.Ran, info.Seconds, want)
			}
		}
		run(10, 900)
		m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID, Time: 12, Millis: 100})
		ran(1.2)
		m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID, Time: 90})
		run(100, 0)
		if since := m.s.Job(j.ID).Info().Since; since != 100 {
			t.Errorf("running since %v", since)
		}
		switch end {
		case protocol.Done:
			m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: j.ID, Seconds: 1.25, Time: 100, Millis: 300})
			if got := m.s.Job(j.ID).Info().Seconds; got != 1.25 {
				t.Errorf("a done job took %v seconds, by its driver 1.25", got)
			}
		case protocol.Cancelled:
			m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID, Time: 100, Millis: 300})
		case protocol.Failed:
			m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: end, Time: 100, Millis: 300})
		}
		ran(1.5)
	}
}
