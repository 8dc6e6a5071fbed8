package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// The experiment of the simulation: rows of canaries, of which the last comes with an extension.
const (
	studyName  = "study"
	studySeed  = 77
	studyRows  = 3
	studyFolds = 3
	firstStudy = "study-0" // the token of its first submission
	freeRows   = 1         // of the first submission, without a budget
	maxBudget  = 250 * time.Millisecond
)

// studyJob is the job of some of the cells.
func studyJob(m *dataset.Manifest, cells []round.Cell) *round.Job {
	only := make(map[int][]int)
	for _, at := range cells { // ascending by fold
		only[at.Row] = append(only[at.Row], at.Fold)
	}
	c := &round.Cells{Repeats: 1, Folds: studyFolds}
	for row := range studyRows {
		if len(only[row]) == 0 {
			continue
		}
		params, err := json.Marshal(canaryParams{Rounds: uint64(row + 1), Row: row + 1})
		if err != nil {
			panic(fmt.Sprintf("sim: settings do not marshal: %v", err))
		}
		c.Rows = append(c.Rows, round.CellRow{Algorithm: Canary, Params: params, Only: only[row]})
	}
	return &round.Job{
		Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: studySeed, Dataset: m.Digest(), Cells: c,
		Split: dataset.Split{Seed: studySeed, Folds: studyFolds}, Params: json.RawMessage(`{}`), Measures: pipeline.EveryMeasures,
	}
}

// studyCells lists the cells of the first rows, by fold.
func studyCells(rows int) (list []round.Cell) {
	for fold := range studyFolds {
		for row := range rows {
			list = append(list, round.Cell{Row: row, Fold: fold})
		}
	}
	return list
}

// placesOf lists which cells of the study a job's units are.
func placesOf(j *round.Job) []round.Cell {
	list, rows := j.Cells.All(), rowsOf(j)
	for i := range list {
		list[i].Row = rows[list[i].Row]
	}
	return list
}

// rowsOf lists which rows of the study a job's rows are.
func rowsOf(j *round.Job) (list []int) {
	for i := range j.Cells.Rows {
		var params canaryParams
		if err := json.Unmarshal(j.Cells.Rows[i].Params, &params); err != nil {
			panic(fmt.Sprintf("sim: settings of a cell: %v", err))
		}
		list = append(list, params.Row-1)
	}
	return list
}

// computeStudy runs each cell undisturbed and returns its encoded outcome.
func computeStudy(m *dataset.Manifest, shards []*dataset.Rows) (map[round.Cell][]byte, error) {
	j := studyJob(m, studyCells(studyRows))
	parent, err := open.Open(j, m, nil)
	if err != nil {
		return nil, err
	}
	for i, rows := range shards {
		if _, err := parent.AddShard(i, rows); err != nil {
			return nil, err
		}
	}
	parts := make(map[round.Cell][]byte)
	for unit, at := range placesOf(j) {
		child, err := pipeline.Cell(j, unit)
		if err != nil {
			return nil, err
		}
		if parts[at], err = local.Child(context.Background(), parent, child, local.Options{Kept: engine.NewDerivedMemory(engine.DerivedLimit)}); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// reference returns what a job comes to undisturbed.
func (m *material) reference(j *round.Job) *reference {
	if j.Cells == nil {
		return m.data[j.Seed]
	}
	r, found := &reference{job: j, cells: placesOf(j)}, referenceRound{}
	var encoded [][]byte
	for _, at := range r.cells {
		encoded = append(encoded, m.study[at])
		found.parts = append(found.parts, blobs.Sum(m.study[at]))
	}
	r.rounds = []referenceRound{found}
	r.digest = m.digestOf(j, encoded)
	return r
}

// digestOf returns the digest of a job of cells with these outcomes.
func (m *material) digestOf(j *round.Job, encoded [][]byte) string {
	t, err := pipeline.New(j, m.manifest, nil)
	if err == nil {
		err = t.Fold(&round.Result{Collected: encoded})
	}
	var o *pipeline.Outcome
	if err == nil {
		o, err = t.Outcome()
	}
	if err != nil {
		panic(fmt.Sprintf("sim: the cells of a study: %v", err))
	}
	return o.ModelDigest
}

// wantedCells lists the outcomes of the cells of a job, by unit; empty: it is not run.
func (s *Sim) wantedCells(job uint64) (encoded [][]byte) {
	for u, at := range s.refs[job].cells {
		if s.notRun[unitOf{job, uint32(u)}] {
			encoded = append(encoded, nil)
		} else {
			encoded = append(encoded, s.given.study[at])
		}
	}
	return encoded
}

// studyPlan is what the client of an experiment does: after how long it submits, extends, and cancels; 0: it does not
// cancel. budget bounds the computing of the rows of the first submission but for some; 0: it does not.
type studyPlan struct{ after, extend, cancel, budget time.Duration }

// useStudy submits an experiment, extends it by a row, cancels its jobs in some runs, and submits again what has not
// ended, until all cells have.
func (s *Sim) useStudy(ctx context.Context, p studyPlan) {
	wait.For(ctx, p.after)
	index := s.submitCells(ctx, 0, studyCells(studyRows-1), 0, p.budget)
	if p.cancel > 0 {
		wait.For(ctx, p.cancel)
		index = max(index, s.cancelStudy(ctx, index))
	}
	wait.For(ctx, p.extend)
	for n := 1; ctx.Err() == nil; n++ {
		left, all := s.cellsLeft(index, studyCells(studyRows))
		if all {
			return
		}
		if len(left) > 0 {
			index = max(index, s.submitCells(ctx, n, left, index, 0))
		}
		wait.For(ctx, heartbeat)
	}
}

// bound gives the rows of a job but for the first ones a budget, which they share; 0: none.
func bound(j *round.Job, budget time.Duration) {
	if budget == 0 {
		return
	}
	j.Cells.Budgets = []round.CellBudget{{Of: "canaries", Seconds: budget.Seconds()}}
	for i, at := range rowsOf(j) {
		if at >= freeRows {
			j.Cells.Rows[i].Budget = 1
		}
	}
}

// submitCells submits cells as two jobs of one entry, where there are two, until that is acknowledged, and returns the entry's index.
func (s *Sim) submitCells(ctx context.Context, n int, cells []round.Cell, before uint64, budget time.Duration) uint64 {
	e := protocol.ExperimentEntry{Name: studyName}
	half := (len(cells) + 1) / 2
	for i, some := range [][]round.Cell{cells[:half], cells[half:]} {
		if len(some) > 0 {
			j := studyJob(s.given.manifest, some)
			bound(j, budget)
			e.Jobs = append(e.Jobs, protocol.SubmitEntry{
				Token: fmt.Sprintf("study-%d/%d", n, i), Name: fmt.Sprintf("%s.%d.%d", studyName, n, i), Dataset: dataName, Job: j,
			})
		}
	}
	index, value, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntryExperiment, e))
	if err != nil {
		return before
	}
	for i, j := range value.([]*state.Job) {
		s.promise(ack{index: index, token: e.Jobs[i].Token, job: j.ID})
	}
	return index
}

// cancelStudy cancels the jobs of the experiment.
func (s *Sim) cancelStudy(ctx context.Context, index uint64) (last uint64) {
	for ctx.Err() == nil {
		st := s.stateFrom(index)
		if st == nil {
			wait.For(ctx, heartbeat)
			continue
		}
		for _, j := range st.Jobs() {
			if j.Experiment == studyName && !j.State.Final() {
				last = max(last, s.cancel(ctx, j))
			}
		}
		return last
	}
	return 0
}

// stateFrom returns the state of a coordinator that has seen an entry, or nil.
func (s *Sim) stateFrom(index uint64) *state.State {
	for _, p := range s.coordinators {
		if v := s.view(p); v != nil {
			if st := v.State(); st.Index() >= index {
				return st
			}
		}
	}
	return nil
}

// cellsLeft lists those cells that no job has a result of, nor will have, as a coordinator knows that has seen an entry; all: each of them
// has ended.
func (s *Sim) cellsLeft(index uint64, cells []round.Cell) (left []round.Cell, all bool) {
	st := s.stateFrom(index)
	if st == nil {
		return nil, false
	}
	has, ended := make(map[round.Cell]bool), make(map[round.Cell]bool)
	for _, j := range st.Jobs() {
		if j.Experiment != studyName {
			continue
		}
		places := placesOf(j.Job)
		for _, at := range places {
			has[at] = has[at] || !j.State.Final()
		}
		if j.State == protocol.Done {
			s.endedIn(j, ended)
		}
		for p := range j.Collected {
			if p.WasRun() {
				ended[places[p.Unit]] = true
			}
		}
	}
	all = true
	for _, at := range cells {
		if !ended[at] && !has[at] {
			left = append(left, at)
		}
		all = all && ended[at]
	}
	return left, all
}

// endedIn notes the cells that have ended in a job that is done.
func (s *Sim) endedIn(j *state.Job, ended map[round.Cell]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u, at := range placesOf(j.Job) {
		if !s.notRun[unitOf{j.ID, uint32(u)}] {
			ended[at] = true
		}
	}
}

// unitOf names a unit of a job of cells.
type unitOf struct {
	job  uint64
	unit uint32
}

// recorded notes that a cell has ended, by the entry at index: no other job has it then.
func (s *Sim) recorded(index, job uint64, unit uint32) {
	if s.notRun[unitOf{job, unit}] { // what came first stays
		return
	}
	at := s.refs[job].cells[unit]
	if of, was := s.ended[at]; was && of != job {
		s.failLocked("again", "cell %+v of job %d had ended in job %d", at, job, of)
	}
	s.ended[at] = job
	if _, was := s.records[unitOf{job, unit}]; !was {
		s.records[unitOf{job, unit}] = index
	}
}

// withheld notes that units are not run, which have no result yet. Their rows have a budget.
func (s *Sim) withheld(index uint64, e *protocol.WithholdEntry) {
	j := s.last[e.Job].Job
	for _, u := range e.Units {
		of := unitOf{e.Job, u}
		if _, was := s.records[of]; was {
			continue
		}
		if cell, _ := j.Cells.At(int(u)); j.Cells.Rows[cell.Row].Budget == 0 {
			s.failLocked("budget", "unit %d of job %d is not run, and has no budget", u, e.Job)
		}
		s.records[of], s.notRun[of] = index, true
	}
}

// orderedAgain checks that a leader has no cell computed whose record was in the log when it began to lead.
func (s *Sim) orderedAgain(run *protocol.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range run.Units {
		if at, was := s.records[unitOf{run.Job, u}]; was && at < run.Epoch {
			s.failLocked("again", "the leader since %d has unit %d of job %d computed, which entry %d recorded", run.Epoch, u, run.Job, at)
		}
	}
}

// cells checks a job of cells in a new state: what was recorded stays as it was, and at the end all cells have ended.
func (s *Sim) cells(was, j *state.Job, index uint64) {
	if j.State == protocol.Done {
		n := 0
		for _, c := range j.Cells {
			n += c.Count
		}
		if n != len(s.refs[j.ID].cells) {
			s.failLocked("cells", "%v is done with %d of %d cells", j, n, len(s.refs[j.ID].cells))
		}
		if was != nil && was.State != protocol.Done {
			for u := range s.refs[j.ID].cells {
				s.recorded(index, j.ID, uint32(u))
			}
		}
		return
	}
	if was == nil {
		return
	}
	now := make(map[uint32]digests.Digest)
	for p := range j.Collected {
		now[p.Unit] = p.Digest
		if p.WasRun() == s.notRun[unitOf{j.ID, p.Unit}] {
			s.failLocked("budget", "%v: unit %d is run: %v", j, p.Unit, p.WasRun())
		}
	}
	for p := range was.Collected {
		if d, there := now[p.Unit]; !there || d != p.Digest {
			s.failLocked("cells", "%v had the result %.12s of unit %d and has %.12s", j, p.Digest, p.Unit, now[p.Unit])
		}
	}
}

// stored checks that the blobs of jobs that are done have the outcomes of their cells, on a majority.
func (s *Sim) stored() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, j := range s.last {
		if j.State != protocol.Done || j.Job.Cells == nil {
			continue
		}
		var parts [][]byte
		for _, c := range j.Cells {
			b := s.blob(c.Blob)
			some, _, err := childjob.Cells(b, c.Count)
			if err != nil {
				s.failLocked("cells", "%v: blob %.12s: %v", j, c.Blob, err)
				return
			}
			parts = append(parts, some...)
		}
		for u, want := range s.wantedCells(id) {
			if u >= len(parts) || !bytes.Equal(parts[u], want) {
				s.failLocked("cells", "%v: the stored outcome of unit %d, cell %+v, is not the reference's", j, u, s.refs[id].cells[u])
			}
		}
	}
}

// blob reads a blob from a disk that has it.
func (s *Sim) blob(digest string) []byte {
	for _, p := range s.coordinators {
		if b, err := p.disk.read(digest); err == nil {
			return b
		}
	}
	return nil
}
