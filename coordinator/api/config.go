package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	experiments "github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Config is what the API serves.
type Config struct {
	ID      string
	TLS     *certs.Source // certificates for requests to other coordinators; nil: in the clear
	Store   *store.Store
	Blobs   *replica.Blobs
	Members *members.Service // who the coordinators are
	Status  Status
	Running Running
	Quotas  Quotas
	Prefix  string // the path below which a proxy has the API; empty: there is none
	Open    bool   // true if connections in the clear may leave this machine
	Metrics http.Handler
	Log     *slog.Logger
	// Count, if set, is called after each response. The route is the pattern of its
	// path, and waits is true if the time depends on what the request waits for.
	Count func(route string, code int, took time.Duration, waits bool)
	// Backed, if set, is called after a complete backup was sent.
	Backed func()

	silence time.Duration // after which a silent leader is given up; 0: protocol.ForwardSilence
}

// Status is what this coordinator knows of itself and of the cluster.
type Status struct {
	Cluster func() protocol.Cluster // as this coordinator knows it
	Leader  func() string           // the leader that Cluster names; empty: none
	Local   func() protocol.Cluster // the answer to protocol.ClusterLocal
	Heard   func() bool             // true if Local names a leader
	Ready   func() error            // nil if there is a leader and NATS answers
	// Lacks, if set, returns an error that says which blobs of the state this coordinator
	// lacks.
	Lacks func() error
	// Advice, if set, returns a sentence to add to /readyz, with the command that helps.
	// notReady is the error of Ready.
	Advice func(ctx context.Context, notReady error) string
}

// Running is what the leader knows of jobs beyond the committed state.
type Running struct {
	Live    func(job uint64) (dispatch.Live, bool)  // how far a job is that this coordinator drives
	Workers func(job uint64) []string               // the workers that compute a job now
	Waits   func(*state.State) map[uint64]jobs.Wait // why the jobs of a state wait, by id
	Journal func() *jobs.Journal                    // events that the log does not have; nil: there are none
}

// Quotas bound what users may put on a cluster; 0: no bound. They are checked when a
// client submits or sends something, and never for what the cluster has accepted already.
type Quotas struct {
	Queue     int   // jobs that have not ended
	JobMemory int64 // bytes that one job is expected to take on the leader: see spec.Estimate
	BlobBytes int64 // bytes of all blobs of a coordinator
	Message   int64 // bytes of the largest message between leader and workers
}

// checkMemory refuses a job that is expected to take more than one job may.
func (q *Quotas) checkMemory(j *round.Job, m *dataset.Manifest) error {
	if q.JobMemory <= 0 && q.Message <= 0 {
		return nil
	}
	need, err := spec.Estimate(j, m)
	if err != nil {
		return bad{err}
	}
	if q.Message > 0 && need.Message > q.Message {
		return fmt.Errorf("%w: messages between the leader and workers take about %s for %s, want at most %s, which is "+
			"5/16 of coppice coordinator --message-memory",
			errQuota, units.Format(need.Message), need.Algorithm, units.Format(q.Message))
	}
	total := need.State + need.Tree
	if q.JobMemory <= 0 || total <= q.JobMemory {
		return nil
	}
	return fmt.Errorf("%w: the job takes about %s of memory on the leader (%s of training state, %s of sums), want at "+
		"most %s (coppice coordinator --max-job-memory)",
		errQuota, units.Format(total), units.Format(need.State), units.Format(need.Tree), units.Format(q.JobMemory))
}

// responder writes responses.
type responder struct{ log *slog.Logger }

// json makes a handler of a function that returns a value or an error.
func (p responder) json(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			err = context.Cause(r.Context()) // the identity of the caller may have ended
		}
		p.answer(w, v, err)
	}
}

// part is the answer to a request for a list. next is the query for the elements that follow; nil: there are none.
type part struct {
	list any
	next url.Values
}

// answer writes a value, or an error with its status.
func (p responder) answer(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
		problem := protocol.Problem{Error: err.Error(), Unknown: unknown(err), Form: errtext.Of(err.Error(), err)}
		if more := (*detailed)(nil); errors.As(err, &more) {
			problem.Mistakes, problem.MistakeForms, problem.Plan = more.mistakes, more.forms, more.plan
		}
		problem.Kind = protocol.ProblemKind(status, len(problem.Mistakes) > 0)
		v = problem
	} else if v == nil {
		v = struct{}{}
	} else if p, ok := v.(part); ok {
		if v = p.list; p.next != nil {
			w.Header().Set("Link", fmt.Sprintf("<?%s>; rel=\"next\"", p.next.Encode()))
		}
	}
	if err := writeJSON(w, status, v); err != nil {
		p.log.Debug("a response could not be sent", "error", err)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(v)
}

// content answers with bytes, or the ranges of them that the request asks for, as fast as the client reads them. digest
// is of the bytes, and of no others.
func content(w http.ResponseWriter, r *http.Request, digest string, bytes io.ReadSeeker) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", strconv.Quote(digest))
	if unit, _, _ := strings.Cut(r.Header.Get("Range"), "="); unit != "bytes" {
		r.Header.Del("Range") // a server ignores units that it does not know
	}
	http.ServeContent(w, r, "", time.Time{}, bytes)
}

// maxBody bounds a JSON request body.
const maxBody = protocol.MaxJSON

// body decodes a JSON request body strictly: one value, no unknown keys, only blanks
// after it, and at most maxBody bytes.
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

var (
	errBad       = errors.New("bad request")
	errSlow      = errors.New("the request is too slow")
	errBusy      = errors.New("too many requests at once")
	errFull      = errors.New("the coordinator's disk is nearly full")
	errQuota     = errors.New("over quota")
	errOrphans   = errors.New("runs would be orphaned")
	errNotSent   = errors.New("upload the blob first")
	errBlobQuota = fmt.Errorf("%w for blobs", errQuota)
)

// bad marks an error of the request itself. Unlike wrapping errBad, it adds nothing to
// the text.
type bad struct{ error }

func (b bad) Is(target error) bool { return target == errBad }
func (b bad) Unwrap() error        { return b.error }

// lacking marks an error about something that does not exist. Unlike wrapping state.ErrNotFound, it adds nothing to the
// text.
type lacking struct{ error }

func (l lacking) Is(target error) bool { return target == state.ErrNotFound }
func (l lacking) Unwrap() error        { return l.error }

// detailed is an error that says more than its text.
type detailed struct {
	error
	mistakes []string        // in the spec of an experiment
	forms    []*errtext.Form // of the mistakes, nil for one without
	plan     json.RawMessage // a protocol.ExperimentPlan
}

func (d *detailed) Unwrap() error { return d.error }

// perhaps marks the error of a request that may have changed something all the same.
type perhaps struct{ error }

func (p perhaps) Unwrap() error { return p.error }

// unknown reports whether a request that failed may have taken effect, in full or in
// part, now or later.
func unknown(err error) bool {
	var p perhaps
	return errors.As(err, &p) || errors.Is(err, store.ErrAmbiguous)
}

// unheard reports whether the error of a forwarded request says that the leader was not
// reached at all.
func unheard(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// statusOf returns the status of an error. A client sends a request again, to any
// coordinator, after status 503, and after no other status.
func statusOf(err error) int {
	if status, refused := access.StatusOf(err); refused {
		return status
	}
	var system syscall.Errno
	var request *experiments.RequestError
	switch {
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errNotSent):
		return protocol.StatusSendBlob
	case errors.Is(err, errBad), errors.Is(err, state.ErrInvalid), errors.As(err, &request):
		return http.StatusBadRequest
	case errors.Is(err, state.ErrNotFound), errors.Is(err, blobs.ErrMissing):
		return http.StatusNotFound
	case errors.Is(err, members.ErrRefused), errors.Is(err, state.ErrExists), errors.Is(err, state.ErrInUse),
		errors.Is(err, state.ErrFinal),
		errors.Is(err, state.ErrNotEnded), errors.Is(err, state.ErrDeleted), errors.Is(err, state.ErrNoModel),
		errors.Is(err, errOrphans):
		return http.StatusConflict
	case errors.Is(err, store.ErrNotLeader), errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrClosed),
		errors.Is(err, replica.ErrNoMajority), errors.Is(err, bus.ErrOffline), errors.Is(err, bus.ErrNoBlob),
		errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, access.ErrOwner), errors.Is(err, errQuota) && !errors.Is(err, errBlobQuota),
		errors.Is(err, state.ErrQueue), errors.Is(err, state.ErrTokens):
		return http.StatusForbidden
	case errors.Is(err, errFull), errors.Is(err, errBlobQuota), errors.Is(err, syscall.ENOSPC):
		return http.StatusInsufficientStorage
	case errors.As(err, &system), errors.Is(err, files.ErrGone):
		return http.StatusServiceUnavailable // the disk or the folder of this coordinator; another one may do it
	}
	return http.StatusInternalServerError
}

// What callers with an identity make is private, unless they share it. A private dataset is read by its owner and by
// admins. So are the models, predictions and records of a private job, and what an experiment of such jobs reports.
// What a cluster lists stays visible to all: names, states, settings, measures and digests.
//
// Everybody sees the digests of blobs in lists, so a digest grants nothing. A caller may read a blob, or refer to it,
// if something that the caller may read refers to it, or if the caller has sent its bytes.

// isPrivate reports whether something new is private: its maker has a name, and does not share it.
func isPrivate(ctx context.Context, shared bool) bool { return access.Of(ctx).Name != "" && !shared }

// readDataset returns nil if the caller may train on a dataset.
func readDataset(ctx context.Context, d *protocol.Dataset) error {
	return access.Read(ctx, "dataset", d.Name, d.Ownership)
}

// readJob returns nil if the caller may read what a job leaves behind.
func readJob(ctx context.Context, j *state.Job) error {
	return access.Read(ctx, "job", j.Name, j.Ownership)
}

// readExperiment returns nil if the caller may read the results of all jobs of an experiment.
func readExperiment(ctx context.Context, name string, jobs []*state.Job) error {
	for _, j := range jobs {
		if err := access.Read(ctx, "experiment", name, j.Ownership); err != nil {
			return err
		}
	}
	return nil
}

// maxSent is how many blobs sentBlobs remembers at least, the newest of all callers.
const maxSent = 1 << 18

// sentBlobs has the blobs that callers have sent, with the names of the callers. Only the leader receives blobs. It
// keeps the newest maxSent to twice maxSent of them in memory. A caller sends a forgotten blob again, as to another
// leader.
type sentBlobs struct {
	mu          sync.Mutex
	now, before map[sentBlob]struct{} // now has at most maxSent elements, and then takes the place of before
}

type sentBlob struct {
	caller string
	digest digests.Digest
}

// add notes that a caller has sent a blob.
func (s *sentBlobs) add(caller, digest string) {
	d, ok := digests.Parse(digest)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || len(s.now) == maxSent {
		s.now, s.before = make(map[sentBlob]struct{}), s.now
	}
	s.now[sentBlob{caller, d}] = struct{}{}
}

// remove removes from a set the blobs that a caller has sent.
func (s *sentBlobs) remove(caller string, from digests.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range from {
		_, now := s.now[sentBlob{caller, d}]
		_, before := s.before[sentBlob{caller, d}]
		if now || before {
			delete(from, d)
		}
	}
}

// errUnread says that a caller may not read a blob. It says the same of a blob that does not exist.
var errUnread = errors.New("there is no such blob that this caller may read")

// places bounds the requests of a kind that are answered at a time, because each takes seconds and much
// memory: some of all callers, and one of each. So a caller does not keep others from their turn for longer
// than one of its requests takes.
type places struct {
	all chan struct{} // has an element for each request

	mu sync.Mutex
	by map[string]*turn // by caller
}

// newPlaces returns places for n requests.
func newPlaces(n int) *places {
	return &places{all: make(chan struct{}, n), by: make(map[string]*turn)}
}

// turn is held by one request of a caller.
type turn struct {
	held  chan struct{}
	users int // requests that hold the turn or wait for it
}

// enter waits for the turn of the caller of ctx, and then for a place. The caller calls leave at the end.
func (p *places) enter(ctx context.Context) (leave func(), err error) {
	name := nameOf(access.Of(ctx))
	p.mu.Lock()
	own := p.by[name]
	if own == nil {
		own = &turn{held: make(chan struct{}, 1)}
		p.by[name] = own
	}
	own.users++
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(p.by, name)
		}
	}
	for _, place := range []chan struct{}{own.held, p.all} {
		select {
		case place <- struct{}{}:
			before := leave
			leave = func() { <-place; before() }
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}

// nameOf returns the name by which the requests of a caller are counted: its role and name, or its host.
func nameOf(c *access.Caller) string {
	if c.Name != "" {
		return string(c.Role) + " " + c.Name
	}
	return c.Host()
}

// shares bounds what all callers together take of something, and what one of them takes: at most ownShare times
// what is free then. So one caller has at most three quarters, several callers have less each, and something is
// left for the next caller.
type shares struct {
	most int

	mu    sync.Mutex
	taken int
	by    map[string]int // by caller
}

const ownShare = 3

func newShares(most int) *shares { return &shares{most: most, by: make(map[string]int)} }

// take takes n for a request that has taken held before. It reports whether it could. One request of a
// caller may take all that is free.
func (s *shares) take(caller string, n, held int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, before := s.most-s.taken-n, s.by[caller]
	if free < 0 || before > held && before+n > ownShare*free {
		return false
	}
	s.taken += n
	s.by[caller] += n
	return true
}

// give gives back n that a caller has taken.
func (s *shares) give(caller string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[caller] -= n; s.by[caller] == 0 {
		delete(s.by, caller)
	}
}

// inUse returns what all callers together have taken.
func (s *shares) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
