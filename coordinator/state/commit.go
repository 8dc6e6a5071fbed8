package state

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
)

// commit takes a piece of a trainer state and, with the last one, makes the state
// the committed one.
func (s *State) commit(e *protocol.CommitEntry) (any, error) {
	j, err := s.running(e.Epoch, e.Job)
	if err != nil {
		return nil, err
	}
	if e.Round <= j.Round {
		return nil, staleRound(j, e.Round)
	}
	next := *j
	if next.Progress, err = compact(e.Progress); err != nil {
		return nil, err
	}
	next.Curve = extended(j.Curve, e.Curve)
	if e.Blob != "" {
		return s.commitBlob(&next, e)
	}
	p, err := j.pending.add(j, e)
	if err != nil {
		return nil, err
	}
	if p.have < p.total {
		if len(e.Curve) > 0 {
			return nil, invalid("%v: the learning curve must come with the last chunk of a training state", j)
		}
		next.Progress, next.pending = j.Progress, p
		return s.put(&next), nil
	}
	next.Trainer = p.join()
	next.TrainerBlob, next.TrainerBytes = "", p.total
	return s.advance(&next, e.Round), nil
}

// extended returns a curve with the rest that an entry brings; one that does not continue it
// changes nothing: a curve is for people, and no job fails by it.
func extended(line, rest []byte) []byte {
	next, err := curve.Extend(line, bytes.Clone(rest))
	if err != nil {
		return line
	}
	return next
}

func (s *State) commitBlob(next *Job, e *protocol.CommitEntry) (any, error) {
	if !isDigest(e.Blob) || e.Offset != 0 || len(e.Data) > 0 {
		return nil, invalid("a training state in a blob needs a valid digest and no bytes of its own, got blob %q and %d bytes at offset %d", e.Blob, len(e.Data), e.Offset)
	}
	next.Trainer, next.TrainerBlob, next.TrainerBytes = nil, e.Blob, e.Total
	s.keep(e.Blob)
	return s.advance(next, e.Round), nil
}

// advance makes round the committed one: what was collected for rounds that are
// folded now is dropped.
func (s *State) advance(next *Job, round uint64) *Job {
	if before := s.Job(next.ID).TrainerBlob; before != "" && before != next.TrainerBlob {
		s.replaced = s.replaced.with(before)
	}
	next.Round, next.pending = round, nil
	next.collected = next.collected.after(round)
	next.notRun = next.collected.notRun()
	return s.put(next)
}

// add returns the pieces with e's behind them. A piece at offset 0 begins anew.
func (p *pending) add(j *Job, e *protocol.CommitEntry) (*pending, error) {
	if len(e.Data) == 0 {
		return nil, invalid("%v: the entry has an empty chunk of a training state of %d bytes", j, e.Total)
	}
	next := &pending{round: e.Round, total: e.Total}
	if e.Offset > 0 {
		if p == nil || p.round != e.Round || p.total != e.Total || p.have != e.Offset {
			return nil, fmt.Errorf("%v: %w of round %d: a chunk at byte %d of %d does not follow the chunk before it", j, ErrGap, e.Round, e.Offset, e.Total)
		}
		next.have, next.pieces = p.have, p.pieces
	}
	next.have += uint64(len(e.Data))
	next.pieces = append(slices.Clone(next.pieces), bytes.Clone(e.Data))
	return next, nil
}

// join returns the bytes so far, which may be shared.
func (p *pending) join() []byte {
	if len(p.pieces) == 1 {
		return p.pieces[0]
	}
	return bytes.Join(p.pieces, nil)
}
