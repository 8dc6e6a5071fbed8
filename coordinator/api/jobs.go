package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/spec"
)

func (s *Server) jobs(*http.Request) (any, error) {
	list := []protocol.JobInfo{}
	for _, j := range s.cfg.Store.State().Jobs() {
		list = append(list, s.info(j))
	}
	return list, nil
}

// findJob finds a job by id or name.
func (s *Server) findJob(r *http.Request) (*state.Job, error) {
	key := r.PathValue("job")
	st := s.cfg.Store.State()
	if j := st.JobByName(key); j != nil {
		return j, nil
	}
	if id, err := strconv.ParseUint(key, 10, 64); err == nil {
		if j := st.Job(id); j != nil {
			return j, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no job %q", state.ErrNotFound, key)
}

func (s *Server) job(r *http.Request) (any, error) {
	j, err := s.findJob(r)
	if err != nil {
		return nil, err
	}
	return s.info(j), nil
}

// info describes a job: committed state, and what is in flight.
func (s *Server) info(j *state.Job) protocol.JobInfo {
	info := j.Info()
	if s.cfg.InFlight != nil && j.State == protocol.Running {
		info.InFlight = s.cfg.InFlight(j.ID)
	}
	return info
}

// submit resolves the spec against its dataset and queues the job. The same token
// or the same name with the same spec answers with the job that exists.
func (s *Server) submit(r *http.Request) (any, error) {
	var req protocol.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" {
		return nil, fmt.Errorf("%w: a submission needs a token", errBad)
	}
	if req.Spec.Name != "" {
		if err := checkName("job", req.Spec.Name); err != nil {
			return nil, err
		}
	}
	d, err := s.findDataset(req.Spec.Dataset)
	if err != nil {
		return nil, err
	}
	job, err := spec.Resolve(req.Spec, d.Manifest)
	if err != nil {
		return nil, bad{err}
	}
	if a := req.Spec.Assigned; a != "" && !s.present(r.Context(), a) {
		return nil, fmt.Errorf("%w: the split (blob %s) was not sent", errBad, a)
	}
	given, err := json.Marshal(req.Spec)
	if err != nil {
		return nil, err
	}
	e := protocol.SubmitEntry{Token: req.Token, Name: req.Spec.Name, Dataset: d.Name, Spec: given, Job: job, Time: time.Now().Unix()}
	_, made, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntrySubmit, e))
	if err != nil {
		return nil, err
	}
	return made.(*state.Job).Info(), nil
}

func (s *Server) cancel(r *http.Request) (any, error) {
	j, err := s.findJob(r)
	if err != nil {
		return nil, err
	}
	e := protocol.CancelEntry{Job: j.ID, Time: time.Now().Unix()}
	if _, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryCancel, e)); err != nil {
		return nil, err
	}
	return s.job(r)
}

// watchBeat is how often a watcher hears of a job that does not change: it tells
// a slow job from a lost connection.
const watchBeat = 2 * time.Second

// watch writes the job as a line of JSON at each change until it is final.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	j, err := s.findJob(r)
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	flush := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	beat := time.NewTicker(watchBeat)
	defer beat.Stop()
	var sent *state.Job
	for {
		st, changed := s.cfg.Store.Watch()
		if j = st.Job(j.ID); j == nil || s.cfg.Cluster().Leader != s.cfg.ID {
			return // the watcher connects again and finds the leader
		}
		if j != sent {
			if enc.Encode(s.info(j)) != nil || flush.Flush() != nil || j.State.Final() {
				return
			}
			sent = j
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-beat.C:
			sent = nil
		}
	}
}
