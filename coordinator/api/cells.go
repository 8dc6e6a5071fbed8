package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/protocol"
)

// stretch is the units of a job of cells that a request asks for, from one on and below another.
type stretch struct {
	job         *state.Job
	from, until int
}

// stretch reads which cells a request asks for.
func (s *Server) stretch(r *http.Request) (*stretch, error) {
	j, err := s.findJob(s.cfg.Store.State(), r)
	if err != nil {
		return nil, err
	}
	if j.Job.Cells == nil {
		return nil, fmt.Errorf("%w: %v is not a job of an experiment, so it has no runs", errBad, j)
	}
	of := &stretch{job: j, until: j.Job.Cells.Count()}
	for name, at := range map[string]*int{"from": &of.from, "until": &of.until} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *at, err = strconv.Atoi(text); err != nil || *at < 0 {
			return nil, fmt.Errorf("%w: %s: want the number of a run, got %.80q", errBad, name, text)
		}
	}
	of.until = min(of.until, j.Job.Cells.Count())
	return of, nil
}

// cellTaker makes an answer of cells that have ended.
type cellTaker interface {
	// add takes the encoded outcome of a cell, and how many nanoseconds it was computed.
	add(unit int, part []byte, took uint64) error
	// skip takes a cell that is not run.
	skip(unit int)
	// full reports whether no more cells are taken.
	full() bool
}

// cells answers with the outcomes of cells that have ended, at most a page.
func (s *Server) cells(r *http.Request) (any, error) {
	of, err := s.stretch(r)
	if err != nil {
		return nil, err
	}
	answer := &cellsAnswer{JobCells: protocol.JobCells{Cells: []protocol.CellOutcome{}}, records: r.URL.Query().Get("records") == "true"}
	answer.Next, err = s.readCells(r.Context(), answer, of)
	return &answer.JobCells, err
}

// cellStates answers with how cells have ended, at most a page. Of a done job all of whose cells ended well
// no outcome is read.
func (s *Server) cellStates(r *http.Request) (any, error) {
	of, err := s.stretch(r)
	if err != nil {
		return nil, err
	}
	answer := &statesAnswer{protocol.JobCellStates{States: []protocol.CellState{}}}
	if endedWell(of.job) {
		answer.Next = answer.all(of)
	} else {
		answer.Next, err = s.readCells(r.Context(), answer, of)
	}
	return &answer.JobCellStates, err
}

// endedWell reports whether a job is done, and all of its cells were run and none failed.
func endedWell(j *state.Job) bool {
	var o struct {
		Failed int `json:"runs_failed"`
		NotRun int `json:"runs_not_run"`
	}
	return j.State == protocol.Done && json.Unmarshal(j.Outcome, &o) == nil && o.Failed == 0 && o.NotRun == 0
}

// readCells gives cells that have ended to an answer; next is the unit to ask for next, 0: there are no more.
func (s *Server) readCells(ctx context.Context, answer cellTaker, of *stretch) (next int, err error) {
	switch {
	case of.from >= of.until:
		return 0, nil
	case of.job.State == protocol.Done:
		return s.storedCells(ctx, answer, of)
	}
	return s.recordedCells(ctx, answer, of)
}

// storedCells reads the blob that has the outcome of the first cell, of a job that is done.
func (s *Server) storedCells(ctx context.Context, answer cellTaker, of *stretch) (next int, err error) {
	first := 0
	for _, ref := range of.job.Cells {
		next = first + ref.Count
		if of.from >= next {
			first = next
			continue
		}
		b, err := s.cfg.Blobs.Get(ctx, ref.Blob)
		if err != nil {
			return 0, err
		}
		parts, took, err := childjob.Cells(b, ref.Count)
		if err != nil {
			return 0, fmt.Errorf("%v: blob %s: %w", of.job, ref.Blob, err)
		}
		if took == nil {
			took = make([]uint64, len(parts))
		}
		for unit := of.from; unit < min(next, of.until); unit++ {
			if err := give(answer, unit, parts[unit-first], took[unit-first]); err != nil {
				return 0, err
			}
		}
		if next < of.until {
			return next, nil
		}
		return 0, nil
	}
	return 0, nil
}

// give gives a cell to an answer; no outcome: it was not run.
func give(answer cellTaker, unit int, part []byte, took uint64) error {
	if len(part) == 0 {
		answer.skip(unit)
		return nil
	}
	return answer.add(unit, part, took)
}

// recordedCells reads what is recorded of a job that is not done. While it has not ended, a
// result that is not at hand is left out: it may be there later.
func (s *Server) recordedCells(ctx context.Context, answer cellTaker, of *stretch) (next int, err error) {
	j, bytes := of.job, uint64(0)
	get := s.cfg.Blobs.Folder.Get
	if j.State.Final() {
		get = func(digest string) ([]byte, error) { return s.cfg.Blobs.Get(ctx, digest) }
	}
	for part := range j.PartsFrom(j.Round+1, uint32(of.from)) {
		unit := int(part.Unit)
		if unit >= of.until {
			break
		}
		if answer.full() || bytes > maxFoldReads || ctx.Err() != nil {
			next = unit
			break
		}
		if !part.WasRun() {
			answer.skip(unit)
			continue
		}
		bytes += part.Bytes
		b, err := get(part.Digest.String())
		switch {
		case err != nil && j.State.Final():
			return 0, fmt.Errorf("the result of run %d of %v cannot be read: %w", unit, j, err)
		case err != nil:
			continue
		}
		if err := answer.add(unit, b, part.Compute); err != nil {
			return 0, err
		}
	}
	return next, ctx.Err()
}

// cellsAnswer is an answer with outcomes.
type cellsAnswer struct {
	protocol.JobCells
	records bool // curves and predictions are asked for
}

func (a *cellsAnswer) add(unit int, part []byte, took uint64) error {
	o, err := childjob.Decode(part)
	if err != nil {
		return err
	}
	c := protocol.CellOutcome{Unit: unit, Outcome: json.RawMessage(o.Head), Seconds: float64(took) / 1e9}
	if a.records {
		c.Curve, c.Predictions = o.Curve, o.Predictions
	}
	a.Cells = append(a.Cells, c)
	return nil
}

func (a *cellsAnswer) skip(int) {}

func (a *cellsAnswer) full() bool { return len(a.Cells) == protocol.CellsPage }

// statesAnswer is an answer without outcomes.
type statesAnswer struct{ protocol.JobCellStates }

func (a *statesAnswer) add(unit int, part []byte, _ uint64) error {
	o, err := childjob.Decode(part)
	if err != nil {
		return err
	}
	var of struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(o.Head, &of); err != nil {
		return fmt.Errorf("the result of run %d cannot be read: %w", unit, err)
	}
	a.States = append(a.States, protocol.CellState{Unit: unit, Failed: of.Error != ""})
	return nil
}

func (a *statesAnswer) skip(unit int) {
	a.States = append(a.States, protocol.CellState{Unit: unit, NotRun: true})
}

func (a *statesAnswer) full() bool { return len(a.States) == protocol.CellsPage }

// all takes all cells, which have ended well, as far as there is room.
func (a *statesAnswer) all(of *stretch) (next int) {
	for unit := of.from; unit < of.until; unit++ {
		if a.full() {
			return unit
		}
		a.States = append(a.States, protocol.CellState{Unit: unit})
	}
	return 0
}
