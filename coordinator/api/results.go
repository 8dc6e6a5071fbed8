package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// resultHandlers answer requests about what jobs have computed so far: learning curves,
// and the runs of experiments, which are called runs in messages.
type resultHandlers struct {
	store *store.Store
	blobs *replica.Blobs
	folds foldCurves
}

// curve answers with the committed part of the learning curve of a job. While a job of
// folds runs, a fold has a curve if its result is recorded, here and read. The curves of
// the other folds are empty.
func (h *resultHandlers) curve(r *http.Request) (any, error) {
	j, err := findJob(h.store.State(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	c := &protocol.JobCurve{ID: j.ID, Name: j.Name, State: j.State}
	if c.Points, err = decodePoints(j.Curve); err != nil {
		return nil, fmt.Errorf("%v: %w", j, err)
	}
	for fold, b := range j.FoldCurves {
		points, err := decodePoints(b)
		if err != nil {
			return nil, fmt.Errorf("%v, fold %d: %w", j, fold, err)
		}
		c.Folds = append(c.Folds, points)
	}
	if j.State.Final() || j.Job.Folds == 0 {
		return c, nil
	}
	c.Folds = make([][]curve.Point, j.Job.Folds)
	for i := range c.Folds {
		c.Folds[i] = []curve.Point{}
	}
	parts := j.Recorded(j.Round + 1)
	known := h.folds.of(r.Context(), parts, h.blobs.Folder.Get)
	for _, part := range parts {
		if points := known[part.Digest]; int(part.Task) < len(c.Folds) && len(points) > 0 {
			c.Folds[part.Task] = points
		}
	}
	return c, nil
}

// decodePoints decodes the points of a curve. No bytes are a curve without points.
func decodePoints(b []byte) ([]curve.Point, error) {
	if len(b) == 0 {
		return []curve.Point{}, nil
	}
	c, err := curve.Decode(b)
	if err != nil {
		return nil, err
	}
	return c.Points(), nil
}

// The bounds of reading the recorded results of folds for their curves.
const (
	maxFoldPart  = 64 << 20  // bytes of a result that is read
	maxFoldReads = 128 << 20 // bytes that one request reads; the next request reads on
	maxFolds     = 4096      // results in the cache, with at most curve.FoldPoints points each
)

// foldCurves reads the curves of recorded results, each result once, and caches their
// points. A result has the model of its fold too, so it may be large.
type foldCurves struct {
	mu     sync.Mutex                       // held while results are read, so that each is read once
	points map[digests.Digest][]curve.Point // by the digest of a result; empty if it has no curve
}

// of returns, by digest, the points of the parts that are cached or can be read now.
func (f *foldCurves) of(ctx context.Context, parts []state.RecordedResult,
	read func(digest string) ([]byte, error)) map[digests.Digest][]curve.Point {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[digests.Digest][]curve.Point)
	bytes := uint64(0)
	for _, part := range parts {
		points, ok := f.points[part.Digest]
		if !ok && part.Bytes <= maxFoldPart && bytes+part.Bytes <= maxFoldReads && ctx.Err() == nil {
			b, err := read(part.Digest.String())
			if err != nil { // the result is not here
				continue
			}
			bytes += part.Bytes
			if o, err := pipeline.DecodeOutcome(b); err == nil && o.Curve != nil {
				points = o.Curve.Coarsened(curve.FoldPoints).Points()
			}
			ok = true
		}
		if ok {
			known[part.Digest] = points
		}
	}
	// Cache the points. If there are too many, the points of other jobs are dropped.
	if f.points == nil || len(f.points)+len(known) > maxFolds {
		f.points = make(map[digests.Digest][]curve.Point)
	}
	for d, points := range known {
		if len(f.points) == maxFolds {
			break
		}
		f.points[d] = points
	}
	return known
}

// runRange is the runs of a job that a request asks for: from <= run < until.
type runRange struct {
	job         *state.Job
	from, until int
	records     bool // true if the answer also has learning curves and predictions
}

// runRange reads which runs a request asks for.
func (h *resultHandlers) runRange(r *http.Request) (*runRange, error) {
	j, err := findJob(h.store.State(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	if j.Job.Cells == nil {
		return nil, fmt.Errorf("%w: %v is not a job of an experiment, so it has no runs", errBad, j)
	}
	q := protocol.RunQuery{Until: j.Job.Cells.Count()}
	if err := protocol.ReadQuery(r.URL.Query(), "a list of runs", q.Params()); err != nil {
		return nil, bad{err}
	}
	return &runRange{job: j, from: q.From, until: min(q.Until, j.Job.Cells.Count()), records: q.Records}, nil
}

// runPage collects the runs of an answer in order.
type runPage interface {
	// brief reports whether the page has no need of the outcome of a run that ended well.
	brief() bool
	// add takes the encoded outcome of a run, and how many nanoseconds it was computed. If the page is brief, no bytes are
	// the outcome of a run that ended well.
	add(run int, outcome []byte, took uint64) error
	// skip notes a run that is not run.
	skip(run int)
	// full reports whether the page has room for no other run.
	full() bool
}

// runs answers with the outcomes of runs that have ended, at most a page.
func (h *resultHandlers) runs(r *http.Request) (any, error) {
	asked, err := h.runRange(r)
	if err != nil {
		return nil, err
	}
	page := &outcomePage{JobCells: protocol.JobCells{Cells: []protocol.CellOutcome{}}, records: asked.records}
	if page.records {
		if err := readJob(r.Context(), asked.job); err != nil {
			return nil, err
		}
	}
	page.Next, err = h.fill(r.Context(), page, asked)
	return &page.JobCells, err
}

// runStates answers with how runs have ended, at most a page. If all runs of a job ended
// well, its outcome says so, and no outcome of a run is read.
func (h *resultHandlers) runStates(r *http.Request) (any, error) {
	asked, err := h.runRange(r)
	if err != nil {
		return nil, err
	}
	return h.statesOf(r.Context(), asked)
}

// doneRuns reads the outcome of a job of runs. ok is false if the job is not done.
func doneRuns(j *state.Job) (o pipeline.CellsWithout, ok bool) {
	ok = j.State == protocol.Done && json.Unmarshal(j.Outcome, &o) == nil
	return o, ok
}

// statesOf returns how runs have ended, at most a page.
func (h *resultHandlers) statesOf(ctx context.Context, asked *runRange) (_ *protocol.JobCellStates, err error) {
	page := &statePage{protocol.JobCellStates{States: []protocol.CellState{}}}
	if o, ok := doneRuns(asked.job); !ok || o.CellsFailed+o.CellsNotRun > 0 {
		page.Next, err = h.fill(ctx, page, asked)
		return &page.JobCellStates, err
	}
	for run := asked.from; run < asked.until; run++ {
		if page.full() {
			page.Next = run
			break
		}
		page.States = append(page.States, protocol.CellState{Task: run})
	}
	return &page.JobCellStates, nil
}

// newStates calls take for each ended run of a job that known does not have, for about a page of them. take must mark
// the run in known. more is true if others may follow. No outcome is read, because the log says how runs ended, unless
// the outcome of a done job lists too few of its runs.
func (h *resultHandlers) newStates(ctx context.Context, j *state.Job, known []bool,
	take func(protocol.CellState)) (more bool, err error) {
	if j.State == protocol.Done {
		first := slices.Index(known, false)
		if first < 0 {
			return false, nil
		}
		if o, ok := doneRuns(j); ok && len(o.Failed) == o.CellsFailed && len(o.NotRun) == o.CellsNotRun {
			for run := first; run < len(known); run++ {
				if run == first+protocol.CellStatesPage {
					return true, nil
				}
				_, failed := slices.BinarySearch(o.Failed, run)
				_, leftOut := slices.BinarySearch(o.NotRun, run)
				if !known[run] {
					take(protocol.CellState{Task: run, Failed: failed, NotRun: leftOut})
				}
			}
			return false, nil
		}
		page, err := h.statesOf(ctx, &runRange{job: j, from: first, until: len(known)})
		if err != nil {
			return false, err
		}
		for _, c := range page.States {
			if !known[c.Task] {
				take(c)
			}
		}
		return page.Next > 0, nil
	}
	taken := 0
	for part := range j.RecordedFrom(j.Round+1, 0) {
		run := int(part.Task)
		if run >= len(known) || known[run] {
			continue
		}
		if taken == protocol.CellStatesPage {
			return true, nil
		}
		taken++
		take(protocol.CellState{Task: run, Failed: part.Failed, NotRun: !part.WasRun()})
	}
	return false, nil
}

// fill adds runs that have ended to a page. next is the run to ask for next; 0: there is
// none.
func (h *resultHandlers) fill(ctx context.Context, page runPage, asked *runRange) (next int, err error) {
	switch {
	case asked.from >= asked.until:
		return 0, nil
	case asked.job.State == protocol.Done:
		return h.fillStored(ctx, page, asked)
	}
	return h.fillRecorded(ctx, page, asked)
}

// fillStored reads the blobs of a done job that have the outcomes. A page of outcomes ends with the blob of the first
// one, so that one request reads one blob.
func (h *resultHandlers) fillStored(ctx context.Context, page runPage, asked *runRange) (next int, err error) {
	first, bytes := 0, uint64(0)
	for _, ref := range asked.job.Cells {
		from := max(first, asked.from)
		until := first + ref.Count
		if from >= min(until, asked.until) {
			first = until
			continue
		}
		if bytes > 0 && (!page.brief() || page.full() || bytes+ref.Bytes > maxFoldReads) {
			return from, nil
		}
		bytes += max(1, ref.Bytes)
		b, err := h.blobs.Get(ctx, ref.Blob)
		if err != nil {
			return 0, err
		}
		outcomes, took, err := childjob.Cells(b, ref.Count)
		if err != nil {
			return 0, fmt.Errorf("%v: blob %s: %w", asked.job, ref.Blob, err)
		}
		if took == nil {
			took = make([]uint64, len(outcomes))
		}
		for run := from; run < min(until, asked.until); run++ {
			outcome := outcomes[run-first]
			if len(outcome) == 0 {
				page.skip(run)
			} else if err := page.add(run, outcome, took[run-first]); err != nil {
				return 0, err
			}
		}
		first = until
	}
	return 0, nil
}

// getter returns how recorded results of a job are read: of a job that has not ended only here.
func (h *resultHandlers) getter(ctx context.Context, j *state.Job) func(digest string) ([]byte, error) {
	if !j.State.Final() {
		return h.blobs.Folder.Get
	}
	return func(digest string) ([]byte, error) { return h.blobs.Get(ctx, digest) }
}

// fillRecorded reads the recorded results of a job that is not done. While the job has
// not ended, it leaves out a result that is not here: it may be here later.
func (h *resultHandlers) fillRecorded(ctx context.Context, page runPage, asked *runRange) (next int, err error) {
	j, bytes := asked.job, uint64(0)
	var outcome []byte // the last outcome that was read; many failed runs have the same
	var digest digests.Digest
	get := h.getter(ctx, j)
	for part := range j.RecordedFrom(j.Round+1, uint32(asked.from)) {
		run := int(part.Task)
		if run >= asked.until {
			break
		}
		if page.full() || bytes > maxFoldReads || ctx.Err() != nil {
			next = run
			break
		}
		if !part.WasRun() {
			page.skip(run)
			continue
		}
		if page.brief() && !part.Failed {
			if err := page.add(run, nil, part.Compute); err != nil {
				return 0, err
			}
			continue
		}
		if part.Digest != digest {
			bytes += part.Bytes
			b, err := get(part.Digest.String())
			switch {
			case err != nil && j.State.Final():
				return 0, fmt.Errorf("the result of run %d of %v cannot be read: %w", run, j, err)
			case err != nil:
				continue
			}
			outcome, digest = b, part.Digest
		}
		if err := page.add(run, outcome, part.Compute); err != nil {
			return 0, err
		}
	}
	return next, ctx.Err()
}

// outcomePage is a page of outcomes. It leaves out the runs that were not run: they have
// no outcome.
type outcomePage struct {
	protocol.JobCells
	records bool // true if curves and predictions are asked for
}

func (p *outcomePage) add(run int, outcome []byte, took uint64) error {
	o, err := childjob.Decode(outcome)
	if err != nil {
		return err
	}
	c := protocol.CellOutcome{Task: run, Outcome: json.RawMessage(o.Head), Seconds: float64(took) / 1e9}
	if p.records {
		c.Curve, c.Predictions = o.Curve, o.Predictions
	}
	p.Cells = append(p.Cells, c)
	return nil
}

func (p *outcomePage) brief() bool { return false }

func (p *outcomePage) skip(int) {}

func (p *outcomePage) full() bool { return len(p.Cells) == protocol.CellsPage }

// statePage is a page of states, without outcomes.
type statePage struct{ protocol.JobCellStates }

func (p *statePage) add(run int, outcome []byte, _ uint64) error {
	why := ""
	if len(outcome) > 0 {
		o, err := childjob.Decode(outcome)
		if err != nil {
			return err
		}
		if why, err = pipeline.ErrorOf(o); err != nil {
			return fmt.Errorf("the result of run %d cannot be read: %w", run, err)
		}
	}
	p.States = append(p.States, protocol.CellState{Task: run, Failed: why != "", Error: why})
	return nil
}

func (p *statePage) brief() bool { return true }

func (p *statePage) skip(run int) {
	p.States = append(p.States, protocol.CellState{Task: run, NotRun: true})
}

func (p *statePage) full() bool { return len(p.States) >= protocol.CellStatesPage }

// modelHandlers answer requests about models.
type modelHandlers struct {
	responder
	jobView
	blobs *replica.Blobs
}

// digestPrefix is how many characters of its digest the name of a run's model has at
// least.
const digestPrefix = 12

// modelsOf lists the models of finished jobs. A model is named JOB, or JOB/FOLD if the
// job made one for each fold. The model of a run is named JOB/DIGEST, with the beginning
// of the digest.
func modelsOf(st *state.State) []protocol.ModelInfo {
	list := []protocol.ModelInfo{}
	for _, j := range st.Jobs() {
		for i, ref := range j.Models {
			name := j.Name
			switch {
			case j.Job.Folds > 0:
				name = fmt.Sprintf("%s/%d", j.Name, i)
			case j.Job.Cells != nil:
				name = fmt.Sprintf("%s/%.*s", j.Name, digestPrefix, ref.Digest)
			}
			list = append(list, protocol.ModelInfo{
				Name: name, Job: j.ID, Algorithm: j.Job.Algorithm,
				Dataset: j.Dataset, ModelRef: ref, Time: j.Ended, Ownership: j.Ownership, Suspect: j.Suspect,
			})
		}
	}
	return list
}

// list lists models in the order of their jobs, or, with newest=N, the last N of them.
func (h *modelHandlers) list(r *http.Request) (any, error) {
	var q protocol.ModelQuery
	if err := readList(r, "a list of models", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	all := modelsOf(h.store.State())
	answer, err := partOf(r, all, &q.ListQuery, "submitted", func(m *protocol.ModelInfo) protocol.Element {
		return protocol.Element{Name: m.Name, Chosen: q.Has(m.Name, m.Owner, m.Time) &&
			(q.Algorithm == "" || q.Algorithm == m.Algorithm) && (q.Dataset == "" || q.Dataset == m.Dataset),
			Keys: map[string]any{"submitted": float64(m.Job), "time": float64(m.Time), "name": m.Name,
				"algorithm": m.Algorithm, "dataset": m.Dataset}}
	})
	if list, ok := answer.list.([]protocol.ModelInfo); ok && q.Newest > 0 {
		answer.list = list[max(0, len(list)-q.Newest):]
	}
	return answer, err
}

// get answers with a model: by its name, its digest, or JOB/DIGEST. The digest is the
// whole one. For a job that is not done its first 12 or more characters suffice.
func (h *modelHandlers) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	var refused *protocol.ModelInfo // has this name or digest, and the caller may not read it
	for _, m := range modelsOf(h.store.State()) {
		job, _, _ := strings.Cut(m.Name, "/")
		if name != m.Name && name != m.Digest && name != job+"/"+m.Digest {
			continue
		}
		if !access.Reads(r.Context(), m.Ownership) { // another job may have an equal model
			refused = &m
			continue
		}
		blob, err := h.blobs.Open(r.Context(), m.Blob)
		if err != nil {
			h.answer(w, nil, err)
			return
		}
		defer blob.Close()
		content(w, r, m.Blob, io.NewSectionReader(blob, 0, blob.Size()))
		return
	}
	if m := refused; m != nil {
		job, _, _ := strings.Cut(m.Name, "/")
		h.answer(w, nil, access.Read(r.Context(), "job", job, m.Ownership))
		return
	}
	model, err := h.recorded(r.Context(), name)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	sum := sha256.Sum256(model)
	content(w, r, hex.EncodeToString(sum[:]), bytes.NewReader(model))
}

// recorded finds the model JOB/DIGEST of a run of a job that is not done. It reads the
// recorded results of the runs one after the other. A result that cannot be read may have
// the model: the error says so if no other has it.
func (h *modelHandlers) recorded(ctx context.Context, name string) ([]byte, error) {
	st := h.store.State()
	job, digest, ok := strings.Cut(name, "/")
	j := st.JobByName(job)
	if !ok || len(digest) < digestPrefix || j == nil || j.Job.Cells == nil || !j.Job.Cells.Models {
		return nil, noModel(st, name)
	}
	if err := readJob(ctx, j); err != nil {
		return nil, err
	}
	none := noModel(st, name)
	for part := range j.RecordedFrom(j.Round+1, 0) {
		if !part.WasRun() {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b, err := h.blobs.Get(ctx, part.Digest.String())
		if err != nil {
			none = fmt.Errorf("run %d of %v may have the model, but its result cannot be read: %w", part.Task, j, err)
			continue
		}
		model, err := modelIn(b, digest)
		if model != nil {
			return model, nil
		}
		if err != nil {
			none = fmt.Errorf("run %d of %v may have the model, but its result cannot be read: %w", part.Task, j, err)
		}
	}
	return nil, none
}

// modelIn returns the model of a run's outcome if its digest begins so, and nil if not.
func modelIn(outcome []byte, digest string) ([]byte, error) {
	o, err := childjob.Decode(outcome)
	if err != nil {
		return nil, err
	}
	var head struct {
		ModelDigest string `json:"model_digest"`
	}
	if err := json.Unmarshal(o.Head, &head); err != nil {
		return nil, err
	}
	if len(o.Model) == 0 || !strings.HasPrefix(head.ModelDigest, digest) {
		return nil, nil
	}
	return o.Model, nil
}

// noModel says why there is no model of that name.
func noModel(st *state.State, name string) error {
	job, _, _ := strings.Cut(name, "/")
	if j := st.JobByName(job); j != nil && j.ModelDeleted != 0 {
		return fmt.Errorf("%w: the model of %v was deleted", state.ErrNotFound, j)
	} else if d := st.DeletedByName(job); j == nil && d != nil {
		return wasDeleted(d)
	}
	return fmt.Errorf("%w: there is no model %q", state.ErrNotFound, name)
}

// delete deletes the models of a job, and keeps the job.
func (h *modelHandlers) delete(r *http.Request) (any, error) {
	key := r.PathValue("job")
	if job, fold, ok := strings.Cut(key, "/"); ok {
		return nil, fmt.Errorf("%w: the models of all folds are deleted together: name %s, because %s/%.20s alone cannot "+
			"be deleted", errBad, job, job, fold)
	}
	return h.changeJob(r, key, protocol.EntryModelDelete, func(j *state.Job) any { return h.entry(j.ID) })
}
