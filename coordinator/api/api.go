// Package api serves the HTTP API of a coordinator, which protocol/api.go describes.
// Every coordinator answers: a follower forwards to the leader what only the leader may
// answer. Responses show committed state, and what the leader knows of running jobs.
//
// A request comes with its caller (access.Gate), and passes Guard, which bounds all requests
// together, and the count for the metrics. The table of routes in Handler finds its handler.
// access.Route refuses callers without the right. For most routes, leaderOnly forwards the
// request or confirms that this coordinator leads. The handlers of one resource are methods
// of one type.
package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// route is a request that a coordinator answers. The table of routes also decides the
// text in the metrics: Config.Count gets the pattern.
type route struct {
	pattern string // method and path, as http.ServeMux reads them
	where   place
	handler http.HandlerFunc
}

// place says which coordinator answers a route. Reads are answered by the leader too:
// only the leader can tell that its state has everything that was acknowledged.
type place int

const (
	here   place = iota // any coordinator
	leader              // the leader; the others forward the request
)

// Handler returns the handler of the API. It may serve before there is a leader.
func Handler(cfg Config) http.Handler {
	respond := responder{cfg.Log}
	leading := newLeaderOnly(&cfg, respond)
	blob := newBlobHandlers(&cfg, respond)
	cluster := &clusterHandlers{respond, cfg.ID, cfg.Store, cfg.Members, cfg.Status, &leading.forwarder}
	dataset := &datasetHandlers{cfg.Store, blob}
	view := jobView{cfg.Store, cfg.Running}
	job, result := &jobHandlers{respond, view, cfg.Blobs}, &resultHandlers{store: cfg.Store, blobs: cfg.Blobs}
	submission, model := &submissionHandlers{view, blob, cfg.Quotas}, &modelHandlers{respond, view, cfg.Blobs}
	experiment := &experimentHandlers{respond, view, result, submission, job, newPlaces(1), newPlaces(2), make(chan struct{}, 1)}
	changes := &changeHandlers{jobs: job, experiments: experiment, leads: func() bool { return cfg.Status.Cluster().Leader == cfg.ID }}
	backup := &backupHandlers{respond, cfg.Store, cfg.Blobs, cfg.Status.Cluster, cfg.Backed}
	audit, token, json := &auditHandlers{cfg.Store, cfg.TLS != nil}, &tokenHandlers{cfg.Store, cfg.TLS != nil}, respond.json
	mux := http.NewServeMux()
	for _, r := range []route{
		// Guard answers the first five above its limit as well: see urgent.
		{"GET /metrics", here, cfg.Metrics.ServeHTTP},
		{"GET /healthz", here, health},
		{"GET /readyz", here, cluster.ready},
		{"GET /v1/self", here, json(cluster.self)},
		{"GET /v1/cluster", here, cluster.overview},
		{"GET /v1/members", leader, json(cluster.list)},
		{"POST /v1/members", leader, json(cluster.add)},
		{"DELETE /v1/members/{id}", leader, json(cluster.remove)},
		{"POST /v1/transfer", leader, json(cluster.transfer)},
		{"POST /v1/workers/{worker}/trust", leader, json(cluster.trust)},
		{"GET /v1/backup", leader, backup.get},
		{"GET /v1/tokens", leader, json(token.list)},
		{"POST /v1/tokens", leader, json(token.create)},
		{"DELETE /v1/tokens/{id}", leader, json(token.revoke)},
		{"GET /v1/audit", leader, json(audit.list)},
		{"POST /v1/audit", leader, json(audit.add)},
		{"GET /v1/revocations", leader, json(audit.revocations)},
		{"POST /v1/revocations", leader, json(audit.revoke)},

		{"GET /v1/blobs/{digest}", here, blob.get(leading.only(blob.getAsLeader))},
		{"PUT /v1/blobs/{digest}", leader, json(blob.put)}, // Guard takes no room for its body, which goes to a file
		{"GET /v1/datasets", leader, json(dataset.list)},
		{"POST /v1/datasets", leader, json(dataset.put)},
		{"POST /v1/datasets/check", leader, json(dataset.check)},
		{"GET /v1/datasets/{name}", leader, json(dataset.get)},
		{"DELETE /v1/datasets/{name}", leader, json(dataset.delete)},
		{"POST /v1/datasets/{name}/share", leader, json(dataset.share)},
		{"GET /v1/jobs", leader, json(job.list)},
		{"POST /v1/jobs", leader, json(submission.submitJob)},
		{"GET /v1/experiments", leader, json(experiment.list)},
		{"POST /v1/experiments", leader, json(experiment.submit)},
		{"GET /v1/experiments/{name}", leader, json(experiment.get)},
		{"GET /v1/experiments/{name}/changes", leader, changes.ofExperiment},
		{"GET /v1/experiments/{name}/report", leader, experiment.writeReport},
		{"POST /v1/experiments/{name}/cancel", leader, json(experiment.changeAll(cancels))},
		{"POST /v1/experiments/{name}/pause", leader, json(experiment.changeAll(pauses))},
		{"POST /v1/experiments/{name}/resume", leader, json(experiment.changeAll(resumes))},
		{"POST /v1/experiments/{name}/retry", leader, json(experiment.retry)},
		{"POST /v1/experiments/{name}/share", leader, json(experiment.share)},
		{"DELETE /v1/experiments/{name}", leader, json(experiment.delete)},
		{"GET /v1/jobs/{job}", leader, json(job.get)},
		{"GET /v1/jobs/{job}/changes", leader, changes.ofJob},
		{"POST /v1/jobs/{job}/cancel", leader, json(job.change(cancels))},
		{"POST /v1/jobs/{job}/pause", leader, json(job.change(pauses))},
		{"POST /v1/jobs/{job}/resume", leader, json(job.change(resumes))},
		{"POST /v1/jobs/{job}/share", leader, json(job.share)},
		{"POST /v1/jobs/delete", leader, json(job.delete)},
		{"POST /v1/jobs/prune", leader, json(job.prune)},
		{"GET /v1/jobs/{job}/curve", leader, json(result.curve)},
		{"GET /v1/jobs/{job}/runs", leader, json(result.runs)},
		{"GET /v1/jobs/{job}/runs/states", leader, json(result.runStates)},
		{"GET /v1/models", leader, json(model.list)},
		{"GET /v1/models/{name...}", leader, model.get},
		{"DELETE /v1/models/{job...}", leader, json(model.delete)},
	} {
		if r.where == leader {
			r.handler = leading.only(r.handler)
		}
		mux.HandleFunc(r.pattern, access.Route(r.pattern, r.handler))
	}
	mux.HandleFunc("/", respond.unknown(mux, cfg.Prefix))
	return counted(mux, cfg.Count)
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
			p.answer(w, nil, errtext.Errorf(errtext.WrongRequest, "%w: no request %s %s exists%s", state.ErrNotFound, r.Method, r.URL.Path, belowAnother(r.URL.Path, prefix)))
			return
		}
		w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		err := writeJSON(w, http.StatusMethodNotAllowed, protocol.Problem{Error: fmt.Sprintf("no request %s %s exists; the methods of this path are %s", r.Method, r.URL.Path, strings.Join(allowed, ", "))})
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
	return errtext.Sprintf("; leave the path %s out of {server}, or if a proxy has the API below it, start each coordinator with --http-prefix %s", other, other)
}

// urgent reports whether a request says how a coordinator is or who leads. Others decide
// by these answers while a coordinator has too much to do, so Guard never refuses them.
func urgent(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics", "/v1/self":
		return true
	case "/v1/cluster":
		return r.URL.Query().Get("local") == "true"
	}
	return false
}

// streams reports whether a request is for a stream of changes.
func streams(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodGet && strings.HasSuffix(path, "/changes") && strings.Count(path, "/") > 3 && (strings.HasPrefix(path, "/v1/jobs/") || strings.HasPrefix(path, "/v1/experiments/"))
}

// waits reports whether a request takes as long as something that it waits for.
func waits(r *http.Request) bool { return streams(r) || r.URL.Query().Has("wait_ms") }

// Starting serves a coordinator before its log is open: it says who the coordinator is
// and what it waits for. Clients send every other request again, or to another
// coordinator.
func Starting(self func() protocol.Self, waits func() string) http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, access.Route(pattern, h)) }
	route("GET /healthz", health)
	route("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, waits(), http.StatusServiceUnavailable)
	})
	route("GET /v1/self", func(w http.ResponseWriter, _ *http.Request) {
		_ = writeJSON(w, http.StatusOK, self())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_ = writeJSON(w, http.StatusServiceUnavailable, protocol.Problem{Error: waits()})
	})
	return mux
}

// health says that the process runs. It waits for nothing, since a forwarder probes the
// leader with it.
func health(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }
