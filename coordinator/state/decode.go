package state

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Decode reads a snapshot that Encode wrote. The error wraps ErrSnapshot where the
// bytes are at fault.
func Decode(src io.Reader) (*State, error) {
	r := &reader{r: bufio.NewReaderSize(src, maxStep)}
	r.expect(magic, "the bytes do not begin with the header of a snapshot")
	if v := r.u8(); r.err == nil && v != SnapshotVersion {
		r.fail("the snapshot has version %d, but this process reads version %d", v, SnapshotVersion)
	}
	s := New()
	s.index, s.epoch = r.u64(), r.u64()
	s.leader, s.nonce = r.text(), r.text()
	r.list(maxCount, func() { r.member(s) })
	r.list(MaxDistrusted, func() { r.distrust(s) })
	r.list(maxCount, func() { r.dataset(s) })
	r.list(maxCount, func() { r.job(s) })
	r.list(MaxDeleted, func() { r.deleted(s) })
	r.list(MaxCondemned, func() { r.condemn(s) })
	r.expect(trailer, "the end of the snapshot is missing")
	if _, err := r.r.ReadByte(); r.err == nil && err != io.EOF {
		r.fail("more bytes follow the end of the snapshot")
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// expect reads text that must be there.
func (r *reader) expect(text, complaint string) {
	b := make([]byte, len(text))
	r.raw(b)
	if r.err == nil && string(b) != text {
		r.fail("%s", complaint)
	}
}

func (r *reader) member(s *State) {
	var m protocol.MemberEntry
	r.json(&m)
	if n := len(s.members); n > 0 && s.members[n-1].ID >= m.ID {
		r.fail("members are not sorted by ID: %.80q comes too late", m.ID)
	}
	s.members = append(s.members, m)
}

func (r *reader) distrust(s *State) {
	d := distrust{protocol.Distrusted{Worker: r.text(), Reason: r.text(), Time: int64(r.u64())}, r.u64()}
	if n := len(s.distrusted); n > 0 && s.distrusted[n-1].Worker >= d.Worker || d.index > s.index {
		r.fail("quarantined workers are not sorted by name, or come from a later log entry: %.80q", d.Worker)
	}
	s.distrusted = append(s.distrusted, d)
}

func (r *reader) dataset(s *State) {
	d := &protocol.Dataset{Name: r.text(), Time: int64(r.u64()), Manifest: new(dataset.Manifest)}
	r.json(d.Manifest)
	if r.err != nil {
		return
	}
	if n := len(s.datasets); n > 0 && s.datasets[n-1].Name >= d.Name {
		r.fail("datasets are not sorted by name: %.80q comes too late", d.Name)
	}
	if err := checkManifest(d.Manifest); err != nil {
		r.fail("dataset %.80q: %v", d.Name, err)
	}
	d.Digest = d.Manifest.Digest()
	s.datasets = append(s.datasets, d)
}

func (r *reader) condemn(s *State) {
	d, at := r.text(), r.u64()
	if !isDigest(d) || at > s.index {
		r.fail("the mark of a blob to delete is not valid: %.80q at log index %d", d, at)
	}
	if s.condemned == nil {
		s.condemned = make(map[string]uint64)
	}
	s.condemned[d] = at
}

func (r *reader) deleted(s *State) {
	d := &DeletedJob{ID: r.u64(), Time: int64(r.u64()), Name: r.text(), Token: r.text()}
	if n := len(s.deleted); n > 0 && s.deleted[n-1].ID >= d.ID || s.Job(d.ID) != nil {
		r.fail("deleted jobs are not sorted by number, or still exist: %v", d)
	}
	s.deleted = append(s.deleted, d)
}

func (r *reader) job(s *State) {
	j := &Job{ID: r.u64(), Job: new(round.Job)}
	j.Name, j.Token, j.Dataset = r.text(), r.text(), r.text()
	j.State, j.Error, j.Suspect = protocol.JobState(r.text()), r.text(), r.text()
	r.json(j.Job)
	j.Spec = r.rawJSON()
	j.Submitted, j.Started, j.Ended = int64(r.u64()), int64(r.u64()), int64(r.u64())
	j.Seconds = math.Float64frombits(r.u64())
	j.AuditPPM, j.Pauses, j.Since, j.Ran = uint32(r.count(million)), r.u64(), int64(r.u64()), int64(r.u64())
	j.EndIndex = r.u64()
	j.Round, j.TrainerBytes = r.u64(), r.u64()
	j.TrainerBlob = r.text()
	j.Trainer = r.bytes(protocol.MaxRaftState)
	j.Progress = r.rawJSON()
	j.Curve = r.curve()
	r.list(dataset.MaxFolds, func() { j.FoldCurves = append(j.FoldCurves, r.curve()) })
	j.pending = r.pending()
	r.list(maxCount, func() { r.part(j) })
	j.Outcome = r.rawJSON()
	r.list(MaxModels, func() {
		j.Models = append(j.Models, protocol.ModelRef{Digest: r.text(), Blob: r.text(), Bytes: r.u64()})
	})
	j.ModelDeleted = int64(r.u64())
	j.measured = measuredBy(j.Outcome)
	if j.State == protocol.Done && j.Job.Cells != nil {
		j.notRun = notRunIn(j.Outcome)
	}
	j.Experiment, j.Outline, j.Outlined = r.text(), r.text(), r.u64()
	r.list(MaxModels, func() {
		j.Cells = append(j.Cells, protocol.CellsRef{BlobRef: protocol.BlobRef{Blob: r.text(), Bytes: r.u64()}, Count: r.count(round.MaxCells)})
	})
	if r.u8() != 0 {
		j.Predictions = &protocol.BlobRef{Blob: r.text(), Bytes: r.u64()}
	}
	if r.err != nil {
		return
	}
	if err := s.adopt(j); err != nil {
		r.fail("%v: %v", j, err)
	}
}

// part reads a collected unit of a job, which comes after those that were read.
func (r *reader) part(j *Job) {
	p := Part{Round: r.u64(), Unit: uint32(r.count(protocol.MaxUnits - 1)), Of: uint32(r.count(protocol.MaxUnits)), Bytes: r.u64(), Compute: r.u64()}
	r.raw(p.Digest[:])
	if last, ok := j.collected.last(); ok && comparePart(last, p) >= 0 {
		r.fail("%v: the recorded results are not sorted by task", j)
	}
	if r.err == nil {
		j.collected.push(p)
		if !p.WasRun() {
			j.notRun++
		}
	}
}

// curve reads an encoded learning curve, or nothing.
func (r *reader) curve() []byte {
	b := r.bytes(protocol.MaxCurve)
	if len(b) > 0 {
		if _, err := curve.Decode(b); err != nil {
			r.fail("%v", err)
		}
	}
	return b
}

func (r *reader) pending() *pending {
	if r.u8() == 0 {
		return nil
	}
	p := &pending{round: r.u64(), total: r.u64(), have: r.u64()}
	if p.total > protocol.MaxRaftState || p.have == 0 || p.have >= p.total {
		r.fail("an unfinished training state has %d of %d bytes", p.have, p.total)
		return nil
	}
	p.pieces = [][]byte{r.sized(p.have)}
	return p
}

// adopt puts a job that was read into the state, with its dataset's manifest.
func (s *State) adopt(j *Job) error {
	if n := len(s.jobs); n > 0 && s.jobs[n-1].ID >= j.ID {
		return fmt.Errorf("jobs are not sorted by number, at log index %d", s.index)
	}
	if !j.State.Final() {
		d := s.Dataset(j.Dataset)
		if d == nil || d.Digest != j.Job.Dataset {
			return fmt.Errorf("the job's dataset %.80q is missing", j.Dataset)
		}
		j.Manifest = d.Manifest
	}
	s.jobs = append(s.jobs, j)
	return nil
}
