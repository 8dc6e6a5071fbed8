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
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Handler returns the handler of the API. It may serve before there is a leader.
func Handler(cfg Config) http.Handler {
	respond := responder{cfg.Log}
	leading, blob, view := newLeaderOnly(&cfg, respond), newBlobHandlers(&cfg, respond), jobView{cfg.Store, cfg.Running}
	cluster := &clusterHandlers{respond, cfg.ID, cfg.Store, cfg.Members, cfg.Status, &leading.forwarder}
	dataset := &datasetHandlers{cfg.Store, blob}
	job, result := &jobHandlers{respond, view, cfg.Blobs}, &resultHandlers{store: cfg.Store, blobs: cfg.Blobs}
	submission, model := &submissionHandlers{view, blob, cfg.Quotas}, &modelHandlers{respond, view, cfg.Blobs}
	experiment := &experimentHandlers{respond, view, result, submission, job, newPlaces(1), newPlaces(2), make(chan struct{}, 1)}
	changes := &changeHandlers{jobs: job, experiments: experiment, leads: func() bool { return cfg.Status.Cluster().Leader == cfg.ID }}
	backup := &backupHandlers{respond, cfg.Store, cfg.Blobs, cfg.Status.Cluster, cfg.Backed}
	audit, token, json := &auditHandlers{cfg.Store, cfg.TLS != nil}, &tokenHandlers{cfg.Store, cfg.TLS != nil}, respond.json
	handlers := map[string]http.HandlerFunc{
		"GET /metrics":                       cfg.Metrics.ServeHTTP,
		"GET /healthz":                       health,
		"GET /readyz":                        cluster.ready,
		"GET /v1/self":                       json(cluster.self),
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
	mux := leading.route(handlers)
	mux.HandleFunc("/", respond.unknown(mux, cfg.Prefix))
	return counted(mux, cfg.Count)
}

// route serves each request of package rights by its handler. A request that the leader answers is forwarded to it.
func (l *leaderOnly) route(handlers map[string]http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range rights.Requests {
		handler := handlers[r.Pattern]
		if handler == nil || len(handlers) != len(rights.Requests) {
			panic("api: the requests of package rights have other patterns than their handlers, such as " + r.Pattern)
		}
		if r.Kind&(rights.AnyAnswers|rights.AnyIfLocal) == 0 {
			handler = l.only(handler)
		}
		mux.HandleFunc(r.Pattern, access.Route(r.Pattern, handler))
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
	return errtext.Sprintf("; leave the path %s out of {server}, or if a proxy has the API below it, start each coordinator with coppice coordinator --http-prefix %s", other, other)
}

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
