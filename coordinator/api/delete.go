package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// deleteJobs deletes jobs by number: all of them or none.
func (s *Server) deleteJobs(r *http.Request) (any, error) {
	var req protocol.DeleteRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if n := len(req.Jobs); n == 0 || n > protocol.MaxDelete {
		return nil, fmt.Errorf("%w: want 1 to %[3]d jobs to delete in one request, got %[2]d", errBad, n, protocol.MaxDelete)
	}
	slices.Sort(req.Jobs)
	ids := slices.Compact(req.Jobs)
	st := s.cfg.Store.State()
	for _, id := range ids {
		if st.Job(id) == nil && st.Deleted(id) == nil {
			return nil, fmt.Errorf("%w: there is no job %d; nothing was deleted", state.ErrNotFound, id)
		}
	}
	frees := s.frees(st, ids)
	went, err := s.delete(r, ids)
	if err != nil {
		return nil, err
	}
	return protocol.Deletion{Jobs: deletedOf(ids, went, s.cfg.Store.State()), Frees: frees}, nil
}

// frees returns the bytes of the blobs of this coordinator that nothing refers to any more once
// some jobs of a state are deleted: not those that other jobs or datasets need as well.
func (s *Server) frees(st *state.State, ids []uint64) (bytes uint64) {
	after := st
	for some := range slices.Chunk(ids, protocol.MaxDelete) { // as the deletion itself, but in this copy only
		entry := protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: some})
		after, _ = after.Apply(after.Index()+1, entry)
	}
	left := after.References()
	for d := range st.References() {
		if left.Contains(d) {
			continue
		}
		if size, err := s.cfg.Blobs.Folder.Size(d.String()); err == nil { // else it is not here
			bytes += uint64(size)
		}
	}
	return bytes
}

// delete commits one deletion and returns the jobs that it deleted.
func (s *Server) delete(r *http.Request, ids []uint64) ([]*state.Job, error) {
	entry := protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: ids, Time: time.Now().Unix()})
	_, v, err := s.cfg.Store.Propose(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	return v.([]*state.Job), nil
}

// deletedOf describes the jobs of ids that went now, and those that had gone before.
func deletedOf(ids []uint64, went []*state.Job, st *state.State) []protocol.DeletedJob {
	now := make(map[uint64]*state.Job, len(went))
	for _, j := range went {
		now[j.ID] = j
	}
	list := []protocol.DeletedJob{}
	for _, id := range ids {
		if j := now[id]; j != nil {
			list = append(list, describe(j))
		} else if d := st.Deleted(id); d != nil {
			list = append(list, protocol.DeletedJob{ID: id, Name: d.Name, Before: true})
		}
	}
	return list
}

func describe(j *state.Job) protocol.DeletedJob {
	d := protocol.DeletedJob{ID: j.ID, Name: j.Name, State: j.State, Ended: j.Ended}
	for i := range j.Models {
		d.Bytes += j.Models[i].Bytes
	}
	if j.Predictions != nil {
		d.Bytes += j.Predictions.Bytes
	}
	return d
}

// pruneJobs deletes the jobs that ended some time ago, or says which these are.
func (s *Server) pruneJobs(r *http.Request) (any, error) {
	var req protocol.PruneRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, bad{err}
	}
	st := s.cfg.Store.State()
	old := prunable(st.Jobs(), time.Now().Unix()-req.OlderThan, req.States)
	var all []uint64
	for _, j := range old {
		all = append(all, j.ID)
	}
	answer := protocol.Deletion{Jobs: []protocol.DeletedJob{}, DryRun: req.DryRun, Frees: s.frees(st, all)}
	for some := range slices.Chunk(old, protocol.MaxDelete) {
		if !req.DryRun {
			ids := all[:len(some)]
			all = all[len(some):]
			var err error
			if some, err = s.delete(r, ids); err != nil {
				if len(answer.Jobs) > 0 {
					err = perhaps{err}
				}
				return nil, err
			}
		}
		for _, j := range some {
			answer.Jobs = append(answer.Jobs, describe(j))
		}
	}
	return answer, nil
}

// prunable returns the jobs that ended in one of the states, any where none is given,
// at a time or before, but those of experiments that have not ended.
func prunable(jobs []*state.Job, until int64, states []protocol.JobState) (old []*state.Job) {
	unended := state.Unended(jobs)
	for _, j := range jobs {
		if j.State.Final() && !unended[j.Experiment] && j.Ended <= until && (len(states) == 0 || slices.Contains(states, j.State)) {
			old = append(old, j)
		}
	}
	return old
}

// deleteModel deletes the models of a job, which stays.
func (s *Server) deleteModel(r *http.Request) (any, error) {
	st, key := s.cfg.Store.State(), r.PathValue("job")
	if job, fold, ok := strings.Cut(key, "/"); ok {
		return nil, fmt.Errorf("%w: the models of all folds are deleted together: name %s, because %s/%.20s alone cannot be deleted", errBad, job, job, fold)
	}
	j, err := lookUp(st, key)
	if err != nil {
		return nil, err
	}
	entry := protocol.EncodeEntry(protocol.EntryModelDelete, protocol.ModelDeleteEntry{Job: j.ID, Time: time.Now().Unix()})
	index, v, err := s.cfg.Store.Propose(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	return s.info(v.(*state.Job), index), nil
}
