package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// findJob finds the job of a request, by id or name.
func (s *Server) findJob(st *state.State, r *http.Request) (*state.Job, error) {
	return lookUp(st, r.PathValue("job"))
}

// lookUp finds a job by id or name.
func lookUp(st *state.State, key string) (*state.Job, error) {
	if j := st.JobByName(key); j != nil {
		return j, nil
	}
	id, err := strconv.ParseUint(key, 10, 64)
	if err != nil {
		if d := st.DeletedByName(key); d != nil {
			return nil, gone(d)
		}
		return nil, fmt.Errorf("%w: there is no job %q", state.ErrNotFound, key)
	}
	if j := st.Job(id); j != nil {
		return j, nil
	}
	if d := st.Deleted(id); d != nil {
		return nil, gone(d)
	}
	return nil, fmt.Errorf("%w: there is no job %q", state.ErrNotFound, key)
}

// gone is the error of a request about a deleted job.
func gone(d *state.DeletedJob) error {
	return fmt.Errorf("%w: %v was deleted", state.ErrNotFound, d)
}

func (s *Server) job(r *http.Request) (any, error) {
	st := s.cfg.Store.State()
	j, err := s.findJob(st, r)
	if err != nil {
		return nil, err
	}
	info := s.info(j, st.Index())
	if s.cfg.WorkersOf != nil && j.State == protocol.Running {
		info.Workers = s.cfg.WorkersOf(j.ID)
	}
	return info, nil
}

// info describes a job as it is after a log entry: committed state, what is in flight,
// and for what it waits.
func (s *Server) info(j *state.Job, index uint64) protocol.JobInfo {
	var waits map[uint64]jobs.Wait
	if !j.State.Final() {
		waits = s.waits(s.cfg.Store.State())
	}
	return s.describe(j, index, waits)
}

func (s *Server) waits(st *state.State) map[uint64]jobs.Wait {
	if s.cfg.Waits == nil {
		return nil
	}
	return s.cfg.Waits(st)
}

func (s *Server) describe(j *state.Job, index uint64, waits map[uint64]jobs.Wait) protocol.JobInfo {
	info := j.Info()
	info.Index = index
	info.Waiting, info.WaitingFor = waits[j.ID].Text, waits[j.ID].Reason
	if s.cfg.Live != nil && j.State == protocol.Running {
		if live, ok := s.cfg.Live(j.ID); ok {
			addLive(&info, &live)
		}
	}
	return info
}

// addLive adds how far a collected round is to what is committed.
func addLive(info *protocol.JobInfo, live *dispatch.Live) {
	info.InFlight, info.CellsLeft = live.InFlight, live.Left
	if live.Progress != nil {
		info.Progress = live.Progress
	}
	if info.Units == 0 && live.Units > 1 {
		info.Units = live.Units
	}
}

// submit resolves the spec against its dataset and queues the job. The same token
// or the same name with the same spec answers with the job that exists.
func (s *Server) submit(r *http.Request) (any, error) {
	var req protocol.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken)
	}
	st := s.cfg.Store.State()
	if j := st.JobByToken(req.Token); j != nil { // an answer was lost
		return s.info(j, st.Index()), nil
	}
	if d := st.DeletedByToken(req.Token); d != nil {
		return nil, d.Repeated()
	}
	ppm, err := auditPPM(req.Audit)
	if err != nil {
		return nil, err
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
	if err := s.haveBlobs(r.Context(), job); err != nil {
		return nil, err
	}
	if err := s.fitsWeights(job, d.Manifest); err != nil {
		return nil, err
	}
	if err := s.cfg.Quotas.checkMemory(job, d.Manifest); err != nil {
		return nil, err
	}
	given, err := json.Marshal(req.Spec)
	if err != nil {
		return nil, err
	}
	e := protocol.SubmitEntry{Token: req.Token, Name: req.Spec.Name, Dataset: d.Name, Spec: given, Job: job, AuditPPM: ppm, MaxQueue: uint32(s.cfg.Quotas.Queue), Time: time.Now().Unix()}
	index, made, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntrySubmit, e))
	if err != nil {
		return nil, err
	}
	return s.info(made.(*state.Job), index), nil
}

// haveBlobs returns once a majority has the blobs that a job names: its split, and the weights
// that it begins from.
func (s *Server) haveBlobs(ctx context.Context, j *round.Job) error {
	for _, b := range []struct{ what, digest string }{{"the list of folds", j.Split.Assigned}, {"the file of weights", j.Weights}} {
		if b.digest == "" {
			continue
		}
		if err := s.sent(ctx, b.what, b.digest); err != nil {
			return err
		}
	}
	return nil
}

// fitsWeights refuses a job whose weights, which are here, are not of its network.
func (s *Server) fitsWeights(j *round.Job, m *dataset.Manifest) error {
	if j.Weights == "" {
		return nil
	}
	b, err := s.cfg.Blobs.Folder.Get(j.Weights)
	if err != nil {
		return err
	}
	with, err := j.WithWeights(b)
	if err == nil {
		err = pipeline.FitsWeights(with, m)
	}
	if err != nil {
		return bad{err}
	}
	return nil
}

// auditPPM turns the share of units that are computed twice into units of a million.
func auditPPM(rate float64) (uint32, error) {
	if !(rate >= 0 && rate <= 1) {
		return 0, fmt.Errorf("%w: audit: want a fraction from 0 to 1, got %v", errBad, rate)
	}
	return uint32(math.Ceil(rate * 1e6)), nil
}

func (s *Server) cancel(r *http.Request) (any, error) {
	return s.wish(r, protocol.EntryCancel, func(job uint64, now time.Time) any {
		return protocol.CancelEntry{Job: job, Time: now.Unix(), Millis: protocol.Millis(now)}
	})
}

func (s *Server) pause(r *http.Request) (any, error) {
	return s.wish(r, protocol.EntryPause, func(job uint64, now time.Time) any {
		return protocol.PauseEntry{Job: job, Time: now.Unix(), Millis: protocol.Millis(now)}
	})
}

func (s *Server) resume(r *http.Request) (any, error) {
	return s.wish(r, protocol.EntryResume, func(job uint64, now time.Time) any { return protocol.ResumeEntry{Job: job, Time: now.Unix()} })
}

// wish commits what a user wants of a job, and answers with the job as the entry
// left it.
func (s *Server) wish(r *http.Request, kind protocol.EntryKind, entry func(job uint64, now time.Time) any) (any, error) {
	j, err := s.findJob(s.cfg.Store.State(), r)
	if err != nil {
		return nil, err
	}
	index, v, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(kind, entry(j.ID, time.Now())))
	if err != nil {
		return nil, err
	}
	return s.info(v.(*state.Job), index), nil
}

// trust ends the distrust of a worker.
func (s *Server) trust(r *http.Request) (any, error) {
	e := protocol.TrustEntry{Worker: r.PathValue("worker")}
	if _, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryTrust, e)); err != nil {
		return nil, err
	}
	return s.cfg.Cluster(), nil
}

// watchBeat is how often a watcher hears of a job that does not change: it tells
// a slow job from a lost connection.
const watchBeat = protocol.WatchBeat

// watch writes the job as a line of JSON at each change until it is final.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	j, err := s.findJob(s.cfg.Store.State(), r)
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
			return // the watcher connects again and finds the leader, or hears that the job was deleted
		}
		if j != sent {
			if enc.Encode(s.info(j, st.Index())) != nil || flush.Flush() != nil || j.State.Final() {
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
