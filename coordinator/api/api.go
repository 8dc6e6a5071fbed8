// Package api serves the HTTP API of a coordinator, which protocol/api.go describes.
// Every coordinator answers: a follower forwards to the leader what only the leader may
// answer. Responses show committed state, and what the leader knows of running jobs.
//
// A request comes with its caller (access.Gate), and passes Guard, which bounds all requests
// together, and the count for the metrics. rights.Requests says who may make it and who answers it.
// access.Route refuses callers without the right. For most routes, leaderOnly forwards the
// request or confirms that this coordinator leads. The handlers of one resource are methods
// of one type.
package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/page"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/openapi"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Handler returns the handler of the API. It may serve before there is a leader.
func Handler(cfg Config) http.Handler {
	respond := responder{cfg.Log}
	leading, blob, view := newLeaderOnly(&cfg, respond), newBlobHandlers(&cfg, respond), jobView{cfg.Store, cfg.Running}
	cluster := &clusterHandlers{responder: respond, id: cfg.ID, store: cfg.Store, members: cfg.Members, status: cfg.Status,
		forward: &leading.forwarder}
	dataset := &datasetHandlers{cfg.Store, blob}
	job, result := &jobHandlers{respond, view, cfg.Blobs}, &resultHandlers{store: cfg.Store, blobs: cfg.Blobs}
	submission, model := &submissionHandlers{view, blob, cfg.Quotas}, &modelHandlers{respond, view, cfg.Blobs}
	experiment := &experimentHandlers{responder: respond, jobView: view, results: result, submissions: submission,
		jobs: job, reporting: newPlaces(1), deciding: newPlaces(2), committing: make(chan struct{}, 1)}
	grid := &gridHandlers{jobView: view, results: result, source: experiment, building: newPlaces(1),
		most: maxKnownRuns}
	changes := &changeHandlers{jobs: job, experiments: experiment, leads: func() bool {
		return cfg.Status.Leader() == cfg.ID
	}}
	backup := &backupHandlers{responder: respond, store: cfg.Store, blobs: cfg.Blobs, cluster: cfg.Status.Cluster,
		backed: cfg.Backed}
	audit, token, json := &auditHandlers{cfg.Store, cfg.TLS != nil}, &tokenHandlers{cfg.Store, cfg.TLS != nil},
		respond.json
	handlers := map[string]http.HandlerFunc{
		"GET /metrics":                       cfg.Metrics.ServeHTTP,
		"GET /healthz":                       health,
		"GET /readyz":                        cluster.ready,
		"GET /v1/self":                       json(cluster.self),
		"GET /v1/openapi.json":               described(cfg.Prefix),
		"GET /v1/cluster":                    cluster.overview,
		"GET /v1/members":                    json(cluster.list),
		"POST /v1/members":                   json(cluster.add),
		"DELETE /v1/members/{id}":            json(cluster.remove),
		"POST /v1/transfer":                  json(cluster.transfer),
		"POST /v1/workers/{worker}/trust":    json(cluster.trust),
		"GET /v1/backup":                     backup.get,
		"GET /v1/tokens":                     json(token.list),
		"POST /v1/tokens":                    json(token.create),
		"DELETE /v1/tokens/{id}":             json(token.revoke),
		"GET /v1/audit":                      json(audit.list),
		"POST /v1/audit":                     json(audit.add),
		"GET /v1/revocations":                json(audit.revocations),
		"POST /v1/revocations":               json(audit.revoke),
		"GET /v1/blobs/{digest}":             blob.get(leading.only(blob.getAsLeader)),
		"PUT /v1/blobs/{digest}":             json(blob.put),
		"GET /v1/datasets":                   json(dataset.list),
		"POST /v1/datasets":                  json(dataset.put),
		"POST /v1/datasets/check":            json(dataset.check),
		"GET /v1/datasets/{name}":            json(dataset.get),
		"DELETE /v1/datasets/{name}":         json(dataset.delete),
		"POST /v1/datasets/{name}/share":     json(dataset.share),
		"GET /v1/jobs":                       json(job.list),
		"POST /v1/jobs":                      json(submission.submitJob),
		"GET /v1/experiments":                json(experiment.list),
		"POST /v1/experiments":               json(experiment.submit),
		"GET /v1/experiments/{name}":         json(experiment.get),
		"GET /v1/experiments/{name}/changes": changes.ofExperiment,
		"GET /v1/experiments/{name}/grid":    json(grid.get),
		"GET /v1/experiments/{name}/report":  experiment.writeReport,
		"POST /v1/experiments/{name}/cancel": json(experiment.changeAll(cancels)),
		"POST /v1/experiments/{name}/pause":  json(experiment.changeAll(pauses)),
		"POST /v1/experiments/{name}/resume": json(experiment.changeAll(resumes)),
		"POST /v1/experiments/{name}/retry":  json(experiment.retry),
		"POST /v1/experiments/{name}/share":  json(experiment.share),
		"DELETE /v1/experiments/{name}":      json(experiment.delete),
		"GET /v1/jobs/{job}":                 json(job.get),
		"GET /v1/jobs/{job}/changes":         changes.ofJob,
		"POST /v1/jobs/{job}/cancel":         json(job.change(cancels)),
		"POST /v1/jobs/{job}/pause":          json(job.change(pauses)),
		"POST /v1/jobs/{job}/resume":         json(job.change(resumes)),
		"POST /v1/jobs/{job}/share":          json(job.share),
		"POST /v1/jobs/delete":               json(job.delete),
		"POST /v1/jobs/prune":                json(job.prune),
		"GET /v1/jobs/{job}/curve":           json(result.curve),
		"GET /v1/jobs/{job}/runs":            json(result.runs),
		"GET /v1/jobs/{job}/runs/states":     json(result.runStates),
		"GET /v1/models":                     json(model.list),
		"GET /v1/models/{name...}":           model.get,
		"DELETE /v1/models/{job...}":         json(model.delete),
	}
	var mux *http.ServeMux
	handlers["GET /{$}"] = http.RedirectHandler(cfg.Prefix+rights.PagePath, http.StatusSeeOther).ServeHTTP
	mux = leading.route(handlers, page.Handler(page.Config{Prefix: cfg.Prefix, Open: cfg.Open, Log: cfg.Log,
		Edits: cfg.Store.Edits,
		API:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) })}))
	mux.HandleFunc("/", respond.unknown(mux, cfg.Prefix))
	return counted(mux, cfg.Count)
}

// route serves each request of package rights by its handler, or by the page. A request that the leader answers is
// forwarded to it.
func (l *leaderOnly) route(handlers map[string]http.HandlerFunc, page http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	routed := 0
	for _, r := range rights.Requests {
		handler := handlers[r.Pattern]
		switch {
		case handler != nil:
			routed++
		case r.Kind&rights.Page != 0:
			handler = page.ServeHTTP
		default:
			panic("api: the requests of package rights have other patterns than their handlers, such as " + r.Pattern)
		}
		if r.Kind&(rights.AnyAnswers|rights.AnyIfLocal) == 0 {
			handler = l.only(handler)
		}
		mux.HandleFunc(r.Pattern, access.Route(r.Pattern, handler))
	}
	if routed != len(handlers) {
		panic("api: a handler answers no request of package rights")
	}
	return mux
}

// methods are the methods of requests.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete}

// unknown answers requests of an unknown path or method, so that the error is JSON. If the path has other
// methods, the header Allow lists them. prefix is the path below which a proxy has the API, or empty.
func (p responder) unknown(mux *http.ServeMux, prefix string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range methods {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			p.answer(w, nil, errtext.Errorf(errtext.WrongRequest, "%w: no request %s %s exists%s", state.ErrNotFound, r.Method,
				r.URL.Path, belowAnother(r.URL.Path, prefix)))
			return
		}
		w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		err := writeJSON(w, http.StatusMethodNotAllowed,
			protocol.Problem{Kind: protocol.ProblemKind(http.StatusMethodNotAllowed, false),
				Error: fmt.Sprintf("no request %s %s exists; the methods of this path are %s", r.Method,
					r.URL.Path, strings.Join(allowed, ", "))})
		if err != nil {
			p.log.Debug("a response could not be sent", "error", err)
		}
	}
}

// belowAnother says what to do if the path of a request is one of the API below a path that is not prefix. Otherwise it
// returns nothing.
func belowAnother(path, prefix string) errtext.Text {
	other, _, found := strings.Cut(path, "/v1/")
	switch {
	case !found || protocol.CheckPrefix(other) != nil:
		return ""
	case prefix != "":
		return errtext.Sprintf("; this coordinator has the API below %s: replace %s by it in {server}", prefix, other)
	}
	return errtext.Sprintf("; leave the path %s out of {server}, or if a proxy has the API below it, start each "+
		"coordinator with coppice coordinator --public-url https://HOST%s", other, other)
}

// Starting serves a coordinator before its log is open: it says who the coordinator is
// and what it waits for. Clients send every other request again, or to another
// coordinator, and browsers ask again. prefix is the path below which a proxy has the page, or empty.
func Starting(prefix string, self func() protocol.Self, waits func() string, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, access.Route(pattern, h)) }
	route("GET /healthz", health)
	route("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, waits(), http.StatusServiceUnavailable)
	})
	route("GET /v1/self", func(w http.ResponseWriter, _ *http.Request) {
		_ = writeJSON(w, http.StatusOK, self())
	})
	starting := page.Starting(prefix, waits, log)
	for _, path := range []string{"/{$}", rights.PagePath, rights.PagePath + "/"} {
		mux.Handle(path, starting)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_ = writeJSON(w, http.StatusServiceUnavailable, protocol.Problem{Error: waits(),
			Kind: protocol.ProblemKind(http.StatusServiceUnavailable, false)})
	})
	return mux
}

// described answers with the description of the API.
func described(prefix string) http.HandlerFunc {
	document := sync.OnceValue(func() []byte { return openapi.Document(prefix) })
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(document()) // an error has no reader any more
	}
}

// health says that the process runs. It waits for nothing, since a forwarder probes the
// leader with it.
func health(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

const (
	// linesApart is the least time between two lines of a stream, except for its last lines.
	linesApart = 250 * time.Millisecond
	// looksApart is that time as a multiple of the time that a look at the jobs took.
	looksApart = 10
)

// changeHandlers answer with streams of changes. Guard bounds their number.
type changeHandlers struct {
	jobs        *jobHandlers
	experiments *experimentHandlers
	leads       func() bool // true if this coordinator leads

	mu    sync.Mutex
	ended map[string]*endedRuns // by name, of experiments that a stream with runs is open for; guarded by mu
}

// ofJob streams a job.
func (h *changeHandlers) ofJob(w http.ResponseWriter, r *http.Request) {
	key, last := r.PathValue("job"), protocol.JobInfo{}
	find := func(st *state.State) ([]*state.Job, error) {
		j, err := findJob(st, key)
		if err != nil {
			return nil, err
		}
		key = strconv.FormatUint(j.ID, 10) // another job may get the name
		return []*state.Job{j}, nil
	}
	h.stream(w, r, find, func(st *state.State, of []*state.Job) (line any, more bool) {
		info := h.jobs.describeOne(of[0], st.Index())
		if last.Index = info.Index; reflect.DeepEqual(last, info) {
			return nil, false
		}
		last = info
		return info, false
	})
}

// ofExperiment streams an experiment; with runs=true also the runs that have ended, from the
// second line on.
func (h *changeHandlers) ofExperiment(w http.ResponseWriter, r *http.Request) {
	name, runs := r.PathValue("name"), false
	if err := protocol.ReadQuery(r.URL.Query(), "a stream", protocol.Flag("runs", &runs)); err != nil {
		h.jobs.answer(w, nil, bad{err})
		return
	}
	ended, told := h.open(name), 0
	defer h.close(name)
	find := func(st *state.State) ([]*state.Job, error) { return jobsOf(st, name) }
	var last *protocol.Experiment
	h.stream(w, r, find, func(st *state.State, of []*state.Job) (line any, more bool) {
		x := protocol.ExperimentLine{Experiment: *h.experiments.progressOf(st, of, h.experiments.running.Waits(st))}
		first := last == nil
		if runs && !first {
			x.RunsEnded, more = ended.after(r.Context(), h.experiments.results, of, told)
			for i := range x.RunsEnded {
				told += len(x.RunsEnded[i].Runs)
			}
		}
		if !first {
			last.Index = x.Index
		}
		if !first && x.RunsEnded == nil && reflect.DeepEqual(*last, x.Experiment) {
			return nil, more
		}
		last = &x.Experiment
		return x, more || runs && first
	})
}

// stream writes what line says about the jobs that find returns: at once, then after each
// change of one of the jobs, and every protocol.WatchBeat, since only the leader knows of
// running tasks. If line returns nil, nothing has changed, and an empty line says every
// protocol.WatchBeat that the stream is alive. If more is true, line is called again at once.
//
// The stream ends after the line about jobs that have all ended. It also ends if the jobs were
// deleted, this coordinator does not lead any more, or the client has left. A reader that is
// slow gets fewer lines: a line is made when the line before is sent.
func (h *changeHandlers) stream(w http.ResponseWriter, r *http.Request, find func(*state.State) ([]*state.Job, error),
	line func(*state.State, []*state.Job) (v any, more bool)) {
	store := h.jobs.store
	st, changed := store.Watch()
	of, err := find(st)
	if err != nil {
		h.jobs.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	if r.Method == http.MethodHead {
		return
	}
	enc, conn := json.NewEncoder(w), http.NewResponseController(w)
	beat := time.NewTicker(protocol.WatchBeat)
	defer beat.Stop()
	var seen []*state.Job
	for due := true; ; {
		began, v, more := time.Now(), any(nil), false
		if due || !slices.Equal(of, seen) {
			v, more = line(st, of)
			seen = of
		}
		pause := time.NewTimer(min(max(linesApart, looksApart*time.Since(began)), protocol.WatchBeat/2))
		if v != nil {
			err = enc.Encode(v)
		} else if due {
			_, err = io.WriteString(w, "\n")
		}
		if err != nil || conn.Flush() != nil || r.Context().Err() != nil || !more && haveEnded(st, of) {
			return
		}
		due = more
		for news, rested := more, more; !news || !rested; {
			select {
			case <-r.Context().Done():
				return
			case <-pause.C:
				rested = true
			case <-beat.C:
				news, due = true, true
			case <-changed:
				st, changed = store.Watch()
				news, rested = true, rested || haveEnded(st, of)
			}
		}
		st, changed = store.Watch()
		if of, err = find(st); err != nil || !h.leads() {
			return // the client asks again, and finds the leader or hears that the job was deleted
		}
	}
}

// haveEnded reports whether no job of a list goes on in a state.
func haveEnded(st *state.State, list []*state.Job) bool {
	return !slices.ContainsFunc(list, func(j *state.Job) bool {
		now := st.Job(j.ID)
		return now != nil && !now.State.Final()
	})
}

// open returns the ended runs of an experiment, which all streams of it share. The caller
// calls close.
func (h *changeHandlers) open(name string) *endedRuns {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = make(map[string]*endedRuns)
	}
	e := h.ended[name]
	if e == nil {
		e = &endedRuns{jobs: make(map[uint64]*knownRuns)}
		h.ended[name] = e
	}
	e.streams++
	return e
}

func (h *changeHandlers) close(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.ended[name]
	if e.streams--; e.streams == 0 {
		delete(h.ended, name)
	}
}

// endedRuns notes how the runs of an experiment have ended. A run is noted once, so that its
// outcome is read once for all streams.
type endedRuns struct {
	streams int // that use it; guarded by the lock of the handlers

	mu   sync.Mutex            // guards the fields below
	jobs map[uint64]*knownRuns // by job
	list []endedRun            // in the order in which they were noted
}

type endedRun struct {
	job uint64
	protocol.CellState
}

// knownRuns says which runs of a job are noted.
type knownRuns struct {
	is   []bool     // by run
	read *state.Job // all runs of this record are noted; nil: there is none
}

// after returns at most a page of the runs that were noted after the first told ones, by job.
// It first notes the runs that have ended meanwhile. more is true if there are more to tell.
func (e *endedRuns) after(ctx context.Context, results *resultHandlers, of []*state.Job,
	told int) (page []protocol.EndedRuns, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range slices.Backward(of) { // the oldest job comes first
		k := e.jobs[j.ID]
		if k == nil && j.Job.Cells != nil {
			k = &knownRuns{is: make([]bool, j.Job.Cells.Count())}
			e.jobs[j.ID] = k
		}
		if k == nil || k.read == j || more {
			continue
		}
		var err error
		more, err = results.newStates(ctx, j, k.is, func(c protocol.CellState) {
			k.is[c.Task] = true
			e.list = append(e.list, endedRun{j.ID, protocol.CellState{Task: c.Task, Failed: c.Failed, NotRun: c.NotRun}})
		})
		if !more && err == nil { // after an error, as of a client that has left, the next look reads again
			k.read = j
		}
	}
	until := min(told+protocol.CellStatesPage, len(e.list))
	for _, run := range e.list[told:until] {
		if n := len(page); n == 0 || page[n-1].Job != run.job {
			page = append(page, protocol.EndedRuns{Job: run.job})
		}
		last := &page[len(page)-1]
		last.Runs = append(last.Runs, run.CellState)
	}
	return page, more || until < len(e.list)
}
