package state

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/coppice-ldl/coppice/protocol"
)

// SnapshotVersion is the version of the snapshot format, its byte after the magic.
const SnapshotVersion = 7

// magic begins a snapshot and trailer ends it.
const (
	magic   = "coppice-state\x00"
	trailer = "end\n"
)

// Encode writes a snapshot of the state: a function of the state alone. The format
// stands in DESIGN.md.
func (s *State) Encode(dst io.Writer) error {
	w := &writer{w: bufio.NewWriterSize(dst, maxStep)}
	w.raw([]byte(magic))
	w.u8(SnapshotVersion)
	w.u64(s.index, s.epoch)
	w.text(s.leader)
	w.text(s.nonce)
	w.members(s.members)
	w.distrusted(s.distrusted)
	w.datasets(s.datasets)
	w.u64(uint64(len(s.jobs)))
	for _, j := range s.jobs {
		w.job(j)
	}
	w.deleted(s.deleted)
	w.condemned(s.condemned)
	w.raw([]byte(trailer))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("writing a snapshot: %w", w.err)
	}
	return nil
}

func (w *writer) members(members []protocol.MemberEntry) {
	w.u64(uint64(len(members)))
	for i := range members {
		w.json(&members[i])
	}
}

func (w *writer) distrusted(list []distrust) {
	w.u64(uint64(len(list)))
	for _, d := range list {
		w.text(d.Worker)
		w.text(d.Reason)
		w.u64(uint64(d.Time), d.index)
	}
}

func (w *writer) datasets(datasets []*protocol.Dataset) {
	w.u64(uint64(len(datasets)))
	for _, d := range datasets {
		w.text(d.Name)
		w.u64(uint64(d.Time))
		w.json(d.Manifest)
	}
}

func (w *writer) condemned(marks map[string]uint64) {
	w.u64(uint64(len(marks)))
	for _, d := range sortedKeys(marks) {
		w.text(d)
		w.u64(marks[d])
	}
}

func (w *writer) deleted(jobs []*DeletedJob) {
	w.u64(uint64(len(jobs)))
	for _, d := range jobs {
		w.u64(d.ID, uint64(d.Time))
		w.text(d.Name)
		w.text(d.Token)
	}
}

func (w *writer) job(j *Job) {
	w.u64(j.ID)
	for _, t := range []string{j.Name, j.Token, j.Dataset, string(j.State), j.Error, j.Suspect} {
		w.text(t)
	}
	w.json(j.Job)
	w.bytes(j.Spec)
	w.u64(uint64(j.Submitted), uint64(j.Started), uint64(j.Ended), math.Float64bits(j.Seconds))
	w.u64(uint64(j.AuditPPM), j.Pauses, uint64(j.Since), uint64(j.Ran), j.EndIndex)
	w.u64(j.Round, j.TrainerBytes)
	w.text(j.TrainerBlob)
	w.bytes(j.Trainer)
	w.bytes(j.Progress)
	w.bytes(j.Curve)
	w.u64(uint64(len(j.FoldCurves)))
	for _, c := range j.FoldCurves {
		w.bytes(c)
	}
	w.pending(j.pending)
	w.u64(uint64(j.collected.len()))
	for p := range j.collected.all {
		w.u64(p.Round, uint64(p.Unit), uint64(p.Of), p.Bytes, p.Compute)
		w.raw(p.Digest[:])
	}
	w.bytes(j.Outcome)
	w.u64(uint64(len(j.Models)))
	for _, m := range j.Models {
		w.text(m.Digest)
		w.text(m.Blob)
		w.u64(m.Bytes)
	}
	w.u64(uint64(j.ModelDeleted))
	w.text(j.Experiment)
	w.text(j.Outline)
	w.u64(j.Outlined)
	w.u64(uint64(len(j.Cells)))
	for _, c := range j.Cells {
		w.text(c.Blob)
		w.u64(c.Bytes, uint64(c.Count))
	}
	if j.Predictions == nil {
		w.u8(0)
		return
	}
	w.u8(1)
	w.text(j.Predictions.Blob)
	w.u64(j.Predictions.Bytes)
}

func (w *writer) pending(p *pending) {
	if p == nil {
		w.u8(0)
		return
	}
	w.u8(1)
	w.u64(p.round, p.total, p.have)
	for _, piece := range p.pieces {
		w.raw(piece)
	}
}
