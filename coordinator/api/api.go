// Package api serves a coordinator's HTTP API (see protocol/api.go). Any
// coordinator answers: a follower forwards to the leader. What it tells is
// committed state only.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Config is what the API serves.
type Config struct {
	ID      string
	Cluster func() protocol.Cluster // as this coordinator knows it
	// Local is what protocol.ClusterLocal tells, and Heard whether it names a leader.
	Local func() protocol.Cluster
	Heard func() bool
	// Live, where set, tells how far a job is that this coordinator drives.
	Live func(job uint64) (dispatch.Live, bool)
	// WorkersOf, where set, lists the workers that compute a job just now.
	WorkersOf func(job uint64) []string
	// Waits, where set, tells for what the jobs of a state wait, by id, as far as this
	// coordinator leads.
	Waits func(*state.State) map[uint64]jobs.Wait
	// Standing, where set, is what there is to add to Ready, of a coordinator that is
	// ready and of one that is not: a sentence with the command that helps.
	Standing func(ctx context.Context, notReady error) string
	// Count, where set, is told of each request that was answered: the pattern of its
	// path, its status, how long it took, and whether that is due to what it waits for.
	Count func(route string, code int, took time.Duration, waits bool)
	// Backed, where set, is called when a whole backup was sent.
	Backed func()
	Ready  func() error // nil once there is a leader and NATS answers
	// Lacks, if set, says which blobs of the state this coordinator lacks; nil: none.
	Lacks   func() error
	Quotas  Quotas
	Store   *store.Store
	Blobs   *replica.Blobs
	Members *members.Service // who the coordinators are
	Metrics http.Handler
	Log     *slog.Logger

	patience time.Duration // with a leader that says nothing; 0: protocol.ForwardSilence
}

// Server answers requests.
type Server struct {
	cfg     Config
	forward *forwarder
	meter   *meter
	folds   foldCurves
	current atomic.Uint64 // the Raft term of which this leader's state is complete
	// barriers are those under way, by Raft term.
	barriers singleflight.Group
}

// The bounds of request bodies.
const (
	maxBody = protocol.MaxJSON
	maxBlob = 256 << 20
)

// verified runs f once a majority agrees that this coordinator leads: one that was
// stopped for a while, and does not know yet that another leads, would answer with
// what was.
func (s *Server) verified(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), verifyTimeout)
		defer cancel()
		if err := s.verify(ctx); err != nil {
			s.answer(w, nil, fmt.Errorf("%w: no quorum of coordinators confirms that this coordinator leads: %w", store.ErrNotLeader, err))
			return
		}
		f(w, r)
	}
}

// verify returns nil once a majority agrees that this coordinator leads and its
// state has every entry that was acknowledged before the call: one that has lost the
// lead and won it again may not have applied what was committed in between.
func (s *Server) verify(ctx context.Context) error {
	term := s.cfg.Store.Stats().Term
	if s.current.Load() != term {
		if err := s.barrier(ctx, term); err != nil {
			return err
		}
	}
	if err := s.cfg.Store.VerifyLeader(ctx); err != nil {
		return err
	}
	if s.cfg.Store.Stats().Term != term {
		return errors.New("the leadership has just changed")
	}
	s.current.Store(term)
	return nil
}

// barrier waits until this leader's state has all that was committed before its
// term. All requests that wait at once share one barrier, which goes on when one of
// them gives up: after an election there are many of them.
func (s *Server) barrier(ctx context.Context, term uint64) error {
	done := s.barriers.DoChan(strconv.FormatUint(term, 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
		defer cancel()
		return nil, s.cfg.Store.Barrier(ctx)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		return r.Err
	}
}

// verifyTimeout bounds the question whether this coordinator leads.
const verifyTimeout = protocol.VerifyLeader

// Handler returns the API's handler.
func Handler(cfg Config) http.Handler {
	s := &Server{cfg: cfg, forward: newForwarder(cfg), meter: &meter{limit: cfg.Quotas.BlobBytes}}
	s.meter.usage = func() (int64, error) {
		_, bytes, err := cfg.Blobs.Folder.Usage()
		return bytes, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /v1/cluster", s.cluster)
	mux.HandleFunc("GET /v1/blobs/{digest}", s.getBlob)
	leader := func(pattern string, f func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, s.onLeader(func(w http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			s.answer(w, v, err)
		}))
	}
	mux.HandleFunc("PUT /v1/blobs/{digest}", s.onLeader(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.putBlob(w, r)
		s.answer(w, v, err)
	}))
	leader("GET /v1/datasets", s.datasets)
	leader("POST /v1/datasets", s.putDataset)
	leader("POST /v1/datasets/check", s.checkDataset)
	leader("GET /v1/datasets/{name}", s.dataset)
	leader("DELETE /v1/datasets/{name}", s.deleteDataset)
	leader("GET /v1/jobs", s.jobs)
	leader("POST /v1/jobs", s.submit)
	leader("POST /v1/jobs/delete", s.deleteJobs)
	leader("POST /v1/jobs/prune", s.pruneJobs)
	leader("GET /v1/jobs/{job}", s.job)
	leader("GET /v1/jobs/{job}/curve", s.curve)
	leader("GET /v1/jobs/{job}/runs", s.cells)
	leader("GET /v1/jobs/{job}/runs/states", s.cellStates)
	leader("POST /v1/experiments", s.submitExperiment)
	leader("POST /v1/jobs/{job}/cancel", s.cancel)
	leader("POST /v1/jobs/{job}/pause", s.pause)
	leader("POST /v1/jobs/{job}/resume", s.resume)
	leader("POST /v1/workers/{worker}/trust", s.trust)
	leader("GET /v1/models", s.models)
	leader("DELETE /v1/models/{job...}", s.deleteModel)
	if cfg.Members != nil {
		mux.HandleFunc("GET /v1/self", s.self)
		leader("GET /v1/members", s.members)
		leader("POST /v1/members", s.addMember)
		leader("DELETE /v1/members/{id}", s.removeMember)
		leader("POST /v1/transfer", s.transfer)
	}
	mux.HandleFunc("GET /v1/backup", s.onLeader(s.backup))
	mux.HandleFunc("GET /v1/jobs/{job}/watch", s.onLeader(s.watch))
	mux.HandleFunc("GET /v1/models/{name...}", s.onLeader(s.model))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, nil, fmt.Errorf("%w: no request %s %s exists", state.ErrNotFound, r.Method, r.URL.Path))
	})
	return s.counted(mux)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// ready says whether this coordinator can serve; its text also says what stands in the
// way of training.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	err, more := s.cfg.Ready(), ""
	if s.cfg.Lacks != nil && r.URL.Query().Get(protocol.ReadyBlobs) != protocol.ReadyBlobsAny {
		if lacks := s.cfg.Lacks(); lacks != nil && err != nil {
			err = fmt.Errorf("%w; %w", err, lacks)
		} else if lacks != nil {
			err = lacks
		}
	}
	if s.cfg.Standing != nil {
		more = s.cfg.Standing(r.Context(), err)
	}
	if more != "" {
		more = "; " + more
	}
	if err != nil {
		http.Error(w, err.Error()+more, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready"+more+"\n")
}

// cluster answers with what the leader knows, or, while there is none, with what
// this coordinator knows; protocol.ClusterLocal always with the latter.
func (s *Server) cluster(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("local") == "true" {
		s.local(w, r)
		return
	}
	c := s.cfg.Cluster()
	if c.Leader != "" && c.Leader != s.cfg.ID && s.forward.try(w, r, c.Leader) {
		return
	}
	s.answer(w, c.Listed(), nil)
}

// maxLocalWait bounds the wait for a leader, and localLook is the time between two looks
// where the state does not change meanwhile.
const (
	maxLocalWait = 5 * time.Second
	localLook    = 20 * time.Millisecond
)

// local answers with what this coordinator knows. A worker that looks for a leader
// hears of one as soon as there is one, and need not ask again and again.
func (s *Server) local(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("wait_ms"), "0"), 10, 32)
	if err != nil {
		s.answer(w, nil, fmt.Errorf("%w: wait_ms: want a number of milliseconds, got %q", errBad, r.URL.Query().Get("wait_ms")))
		return
	}
	end := time.NewTimer(min(time.Duration(ms)*time.Millisecond, maxLocalWait))
	defer end.Stop()
	look := time.NewTicker(localLook)
	defer look.Stop()
	for waits := true; waits; {
		_, changed := s.cfg.Store.Watch()
		if s.cfg.Heard() {
			break
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			waits = false
		case <-changed:
		case <-look.C:
		}
	}
	local := s.cfg.Local()
	s.answer(w, local.Listed(), nil)
}

// answer writes a value or an error.
func (s *Server) answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(statusOf(err))
		v = protocol.Problem{Error: err.Error(), Unknown: unknown(err)}
	} else if v == nil {
		v = struct{}{}
	}
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.cfg.Log.Debug("a response could not be sent", "error", err)
	}
}

// errBad marks errors of the request itself.
var errBad = errors.New("bad request")

func statusOf(err error) int {
	var system syscall.Errno
	switch {
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errBad), errors.Is(err, state.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, state.ErrNotFound), errors.Is(err, blobs.ErrMissing):
		return http.StatusNotFound
	case errors.Is(err, members.ErrRefused), errors.Is(err, state.ErrExists), errors.Is(err, state.ErrInUse), errors.Is(err, state.ErrFinal),
		errors.Is(err, state.ErrNotEnded), errors.Is(err, state.ErrDeleted), errors.Is(err, state.ErrNoModel):
		return http.StatusConflict
	case errors.Is(err, store.ErrNotLeader), errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrClosed),
		errors.Is(err, replica.ErrNoMajority), errors.Is(err, bus.ErrOffline), errors.Is(err, bus.ErrNoBlob),
		errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, errQuota) && !errors.Is(err, errBlobQuota), errors.Is(err, state.ErrQueue):
		return http.StatusForbidden
	case errors.Is(err, errFull), errors.Is(err, errBlobQuota), errors.Is(err, syscall.ENOSPC):
		return http.StatusInsufficientStorage
	case errors.As(err, &system), errors.Is(err, files.ErrGone):
		return http.StatusServiceUnavailable // this machine's disk or folder: another coordinator can do it
	}
	return http.StatusInternalServerError
}

// body reads a JSON request body strictly: one value, no unknown keys, nothing behind
// it but blanks, at most maxBody bytes in all.
func body(r *http.Request, v any) error {
	limited := &io.LimitedReader{R: r.Body, N: maxBody + 1}
	dec := json.NewDecoder(limited)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	empty := err == io.EOF
	if err == nil {
		_, err = dec.Token()
	}
	switch {
	case limited.N <= 0:
		return fmt.Errorf("%w: the JSON body of the request is larger than %d bytes", errBad, maxBody)
	case empty:
		return fmt.Errorf("%w: the body of the request is empty, want JSON", errBad)
	case err == nil:
		return fmt.Errorf("%w: the body of the request has more text after its JSON value", errBad)
	case err != io.EOF:
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}

// bad makes an error that is answered with status 400 and its own text only.
type bad struct{ error }

func (b bad) Is(target error) bool { return target == errBad }
func (b bad) Unwrap() error        { return b.error }
