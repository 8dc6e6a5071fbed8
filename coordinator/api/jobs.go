package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// findJob finds a job by name or id. A name comes first, but no name is a number: see
// protocol.CheckName.
func findJob(st *state.State, key string) (*state.Job, error) {
	if j := st.JobByName(key); j != nil {
		return j, nil
	}
	id, err := strconv.ParseUint(key, 10, 64)
	if err != nil {
		if d := st.DeletedByName(key); d != nil {
			return nil, wasDeleted(d)
		}
		return nil, fmt.Errorf("%w: there is no job %q", state.ErrNotFound, key)
	}
	if j := st.Job(id); j != nil {
		return j, nil
	}
	if d := st.Deleted(id); d != nil {
		return nil, wasDeleted(d)
	}
	return nil, fmt.Errorf("%w: there is no job %q", state.ErrNotFound, key)
}

// wasDeleted is the error of a request about a deleted job.
func wasDeleted(d *state.DeletedJob) error {
	return fmt.Errorf("%w: %v was deleted", state.ErrNotFound, d)
}

// jobView describes jobs: what is committed, how far they are, and what they wait for.
type jobView struct {
	store   *store.Store
	running Running
}

// info describes a job as a log entry left it.
func (v *jobView) info(j *state.Job, index uint64) protocol.JobInfo {
	var waits map[uint64]jobs.Wait
	if !j.State.Final() {
		waits = v.running.Waits(v.store.State())
	}
	return v.infoWaiting(j, index, waits)
}

// infoWaiting is info with waits known.
func (v *jobView) infoWaiting(j *state.Job, index uint64, waits map[uint64]jobs.Wait) protocol.JobInfo {
	info := j.Info()
	info.Index = index
	info.Waiting, info.WaitingFor = waits[j.ID].Text, waits[j.ID].Reason
	if j.State != protocol.Running {
		return info
	}
	if live, ok := v.running.Live(j.ID); ok {
		info.InFlight = live.InFlight
		if live.Progress != nil {
			info.Progress = live.Progress
		}
		if info.Tasks == 0 && live.Tasks > 1 {
			info.Tasks = live.Tasks
		}
	}
	return info
}

// describe lists jobs of a state: chosen, of total that a query matches.
func (v *jobView) describe(st *state.State, chosen []*state.Job, total int, full bool) *protocol.JobList {
	list := &protocol.JobList{Jobs: []protocol.JobInfo{}, Total: total}
	waits := v.running.Waits(st)
	for _, j := range chosen {
		info := v.infoWaiting(j, st.Index(), waits)
		if !full {
			abridge(&info)
		}
		list.Jobs = append(list.Jobs, info)
	}
	return list
}

// abridge leaves out what may be large, so that a list of many jobs takes at most about 2
// KiB for each.
func abridge(info *protocol.JobInfo) {
	if info.Job != nil {
		j := *info.Job
		j.Params, j.Cells, info.Job = nil, nil, &j
	}
	info.Spec, info.Outcome, info.Models, info.Events, info.EventsDropped = nil, nil, nil, nil, 0
	info.Error, info.Suspect, info.Waiting = protocol.Brief(info.Error), protocol.Brief(info.Suspect),
		protocol.Brief(info.Waiting)
}

// jobHandlers answer requests about jobs, but for their submission and their results.
type jobHandlers struct {
	responder
	jobView
	blobs *replica.Blobs
}

func (h *jobHandlers) get(r *http.Request) (any, error) {
	st := h.store.State()
	j, err := findJob(st, r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	return h.describeOne(j, st.Index()), nil
}

// describeOne is info with the workers of the job, and with events that the log does not have yet.
func (h *jobHandlers) describeOne(j *state.Job, index uint64) protocol.JobInfo {
	info := h.info(j, index)
	if j.State == protocol.Running {
		info.Workers = h.running.Workers(j.ID)
		info.Events, info.EventsDropped = j.Events(h.running.Journal().Unrecorded(j.ID))
	}
	return info
}

func (h *jobHandlers) list(r *http.Request) (any, error) {
	q, err := protocol.ParseJobQuery(r.URL.Query())
	if err != nil {
		return nil, bad{err}
	}
	if q.Mine {
		if q.Owner = access.Of(r.Context()).Name; q.Owner == "" {
			return nil, fmt.Errorf("%w: mine: the caller has no name, since this cluster uses no TLS; use owner instead",
				errBad)
		}
	}
	st := h.store.State()
	if q.After != 0 && st.Job(q.After) == nil {
		return nil, fmt.Errorf("after: job %d: %w; list the jobs from the first on", q.After, state.ErrNotFound)
	}
	limit, next := q.Limit, uint64(0)
	if limit > 0 {
		q.Limit++ // to see if one follows
	}
	chosen, total := choose(st.Jobs(), &q)
	if limit > 0 && len(chosen) > limit {
		chosen, next = chosen[:limit], chosen[limit-1].ID
	}
	list := h.describe(st, chosen, total, q.Full)
	list.Next, list.States = next, make(map[protocol.JobState]int)
	for _, j := range st.Jobs() {
		if asked(j, &q) {
			list.States[j.State]++
		}
	}
	return list, nil
}

// rank is the place of a job in an order: by class, then by number and text.
type rank struct {
	job    *state.Job
	class  int // 0; 1: the number is a measure of training rows; 2: the job has no such value
	number float64
	text   string
}

// asked reports whether a query is about a job, apart from the job's state.
func asked(j *state.Job, q *protocol.JobQuery) bool {
	return (q.Experiment == "" || j.Experiment == q.Experiment || q.Experiment == protocol.AnyExperiment &&
		j.Experiment != "") && (q.Owner == "" || q.Owner == j.Owner) &&
		(q.Algorithm == "" || q.Algorithm == j.Job.Algorithm) && (q.Dataset == "" || q.Dataset == j.Dataset) &&
		protocol.MatchName(q.Name, j.Name) && j.Submitted >= q.Since && (q.Until == 0 || j.Submitted <= q.Until)
}

// choose returns the jobs that a query asks for, in its order, and how many there are
// without its bounds Limit and After.
func choose(jobs []*state.Job, q *protocol.JobQuery) (chosen []*state.Job, total int) {
	key, descending := q.Order()
	var ranks []rank
	var after *rank // it need not be one of the ranks
	for _, j := range jobs {
		if j.ID == q.After {
			r := rankOf(j, key)
			after = &r
		}
		if asked(j, q) && (len(q.States) == 0 || slices.Contains(q.States, j.State)) {
			ranks = append(ranks, rankOf(j, key))
		}
	}
	compare := func(a, b rank) int {
		order := cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
		if descending {
			order = -order
		}
		return cmp.Or(cmp.Compare(a.class, b.class), order, cmp.Compare(b.job.ID, a.job.ID))
	}
	slices.SortFunc(ranks, compare)
	total = len(ranks)
	if after != nil {
		first, found := slices.BinarySearchFunc(ranks, *after, compare)
		if found {
			first++
		}
		ranks = ranks[first:]
	}
	if q.Limit > 0 {
		ranks = ranks[:min(q.Limit, len(ranks))]
	}
	for _, r := range ranks {
		chosen = append(chosen, r.job)
	}
	return chosen, total
}

func rankOf(j *state.Job, key string) rank {
	r := rank{job: j}
	switch key {
	case "submitted":
		r.number = float64(j.ID)
	case "ended":
		if r.number = float64(j.Ended); !j.State.Final() {
			r.class = 2
		}
	case "name":
		r.text = j.Name
	case "state":
		r.text = string(j.State)
	case "algorithm":
		r.text = j.Job.Algorithm
	case "dataset":
		r.text = j.Dataset
	default: // a measure; values of held-out rows come first, since they tell more
		value, held, ok := j.Measure(key)
		switch {
		case !ok:
			r.class = 2
		case !held:
			r.number, r.class = value, 1
		default:
			r.number = value
		}
	}
	return r
}

// change is a request that commits an entry about one job.
type change struct {
	kind protocol.EntryKind
	// from reports whether a job in a state is changed; otherwise it is in the state already, or has ended.
	from func(protocol.JobState) bool
}

var (
	cancels = change{protocol.EntryCancel, func(s protocol.JobState) bool { return !s.Final() }}
	pauses  = change{protocol.EntryPause, func(s protocol.JobState) bool {
		return s == protocol.Queued || s == protocol.Running
	}}
	resumes = change{protocol.EntryResume, func(s protocol.JobState) bool { return s == protocol.Paused }}
)

// entry returns the entry about a job. It brings the events that the log does not have yet, since the job's driver may
// commit nothing more.
func (v *jobView) entry(job uint64) protocol.JobEntry {
	now, journal := time.Now(), v.running.Journal()
	e := protocol.JobEntry{Job: job, Time: now.Unix(), Millis: protocol.Millis(now)}
	if e.Events = journal.Take(job, true); len(e.Events) > 0 {
		e.EventsEpoch = journal.Epoch()
	}
	return e
}

// changeJob commits an entry about a job that the caller may change, and answers with the job as the
// entry left it.
func (v *jobView) changeJob(r *http.Request, key string, kind protocol.EntryKind,
	entry func(*state.Job) any) (any, error) {
	j, err := findJob(v.store.State(), key)
	if err != nil {
		return nil, err
	}
	if err := access.Own(r.Context(), j.String(), j.Owner); err != nil {
		return nil, err
	}
	index, changed, err := commit(r, v.store, kind, entry(j))
	if err != nil {
		return nil, err
	}
	if shared, ok := changed.([]*state.Job); ok {
		changed = shared[0]
	}
	return v.info(changed.(*state.Job), index), nil
}

// change answers a request that changes the state of a job.
func (h *jobHandlers) change(c change) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		return h.changeJob(r, r.PathValue("job"), c.kind, func(j *state.Job) any { return h.entry(j.ID) })
	}
}

// share lets all users read what a job leaves behind.
func (h *jobHandlers) share(r *http.Request) (any, error) {
	return h.changeJob(r, r.PathValue("job"), protocol.EntryShare, func(j *state.Job) any {
		return protocol.ShareEntry{Jobs: []uint64{j.ID}, Owner: j.Owner}
	})
}

// delete deletes jobs by id: all of them or none.
func (h *jobHandlers) delete(r *http.Request) (any, error) {
	var req protocol.DeleteRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if n := len(req.Jobs); n == 0 || n > protocol.MaxDelete {
		return nil, fmt.Errorf("%w: want 1 to %[3]d jobs to delete in one request, got %[2]d", errBad, n, protocol.MaxDelete)
	}
	slices.Sort(req.Jobs)
	ids := slices.Compact(req.Jobs)
	st := h.store.State()
	for _, id := range ids {
		if st.Job(id) == nil && st.Deleted(id) == nil {
			return nil, fmt.Errorf("%w: there is no job %d; nothing was deleted", state.ErrNotFound, id)
		}
	}
	return h.deleteAll(r, st, ids)
}

// deleteAll deletes jobs, at most protocol.MaxDelete: all of them or none.
func (h *jobHandlers) deleteAll(r *http.Request, st *state.State, ids []uint64) (any, error) {
	for _, id := range ids {
		if j := st.Job(id); j != nil {
			if err := access.Own(r.Context(), j.String(), j.Owner); err != nil {
				return nil, fmt.Errorf("%w; nothing was deleted", err)
			}
		}
	}
	answer := protocol.Deletion{Jobs: []protocol.DeletedJob{}, Frees: h.frees(st, ids)}
	if !slices.ContainsFunc(ids, func(id uint64) bool { return st.Job(id) != nil }) { // the request is repeated
		for _, id := range ids {
			if d := st.Deleted(id); d != nil {
				answer.Jobs = append(answer.Jobs, protocol.DeletedJob{ID: id, Name: d.Name, Before: true})
			}
		}
		return answer, nil
	}
	deleted, err := h.commitDeletion(r, ids)
	if err != nil {
		return nil, err
	}
	now := make(map[uint64]*state.Job, len(deleted))
	for _, j := range deleted {
		now[j.ID] = j
	}
	st = h.store.State()
	for _, id := range ids {
		if j := now[id]; j != nil {
			answer.Jobs = append(answer.Jobs, deletedJob(j))
		} else if d := st.Deleted(id); d != nil {
			answer.Jobs = append(answer.Jobs, protocol.DeletedJob{ID: id, Name: d.Name, Before: true})
		}
	}
	return answer, nil
}

// prune deletes the jobs that ended before a time, or, in a dry run, lists them. It leaves out
// jobs that the caller may not delete. If it
// fails after the first deletion, the error says that the request may have taken effect.
func (h *jobHandlers) prune(r *http.Request) (any, error) {
	var req protocol.PruneRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, bad{err}
	}
	st := h.store.State()
	old := prunable(st.Jobs(), time.Now().Unix()-req.OlderThan, req.States)
	old = slices.DeleteFunc(old, func(j *state.Job) bool { return !access.Owns(r.Context(), j.Owner) })
	var ids []uint64
	for _, j := range old {
		ids = append(ids, j.ID)
	}
	answer := protocol.Deletion{Jobs: []protocol.DeletedJob{}, DryRun: req.DryRun, Frees: h.frees(st, ids)}
	for some := range slices.Chunk(old, protocol.MaxDelete) {
		if !req.DryRun {
			chunk := ids[:len(some)]
			ids = ids[len(some):]
			var err error
			if some, err = h.commitDeletion(r, chunk); err != nil {
				if len(answer.Jobs) > 0 {
					err = perhaps{err}
				}
				return nil, err
			}
		}
		for _, j := range some {
			answer.Jobs = append(answer.Jobs, deletedJob(j))
		}
	}
	return answer, nil
}

// commitDeletion commits one deletion and returns the jobs that it deleted.
func (h *jobHandlers) commitDeletion(r *http.Request, ids []uint64) ([]*state.Job, error) {
	_, deleted, err := commit(r, h.store, protocol.EntryJobsDelete,
		protocol.JobsDeleteEntry{Jobs: ids, Time: time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	return deleted.([]*state.Job), nil
}

// frees returns the bytes of the blobs here that nothing refers to once some jobs of a
// state are deleted.
func (h *jobHandlers) frees(st *state.State, ids []uint64) (bytes uint64) {
	after := st
	for some := range slices.Chunk(ids, protocol.MaxDelete) { // delete the jobs in this copy of the state only
		entry := protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: some})
		after, _ = after.Apply(after.Index()+1, entry)
	}
	left := after.References()
	for d := range st.References() {
		if left.Contains(d) {
			continue
		}
		if size, err := h.blobs.Folder.Size(d.String()); err == nil { // an error says that the blob is not here
			bytes += uint64(size)
		}
	}
	return bytes
}

func deletedJob(j *state.Job) protocol.DeletedJob {
	d := protocol.DeletedJob{ID: j.ID, Name: j.Name, State: j.State, Ended: j.Ended}
	for i := range j.Models {
		d.Bytes += j.Models[i].Bytes
	}
	if j.Predictions != nil {
		d.Bytes += j.Predictions.Bytes
	}
	return d
}

// prunable returns the jobs that ended in one of the states, by default in any, at a time
// or before. It leaves out the jobs of experiments that have not ended.
func prunable(jobs []*state.Job, until int64, states []protocol.JobState) (old []*state.Job) {
	unended := state.Unended(jobs)
	for _, j := range jobs {
		if j.State.Final() && !unended[j.Experiment] && j.Ended <= until &&
			(len(states) == 0 || slices.Contains(states, j.State)) {
			old = append(old, j)
		}
	}
	return old
}
