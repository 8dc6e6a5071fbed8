package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/experiment/report"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// newSite returns a site with its templates and assets.
func newSite(cfg Config) *site {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &site{Config: cfg, api: source{cfg.API, cfg.Log}, static: make(map[string]asset)}
	s.live.feeds = make(map[viewKey]*feed)
	keep := func(file string, b []byte) {
		sum := sha256.Sum256(b)
		s.static[file] = asset{b, hex.EncodeToString(sum[:8]), kinds[path.Ext(file)]}
	}
	for _, file := range entries("static") {
		b, _ := files.ReadFile("static/" + file) // embedded, so it exists
		keep(file, b)
	}
	keep("report.css", []byte(report.Style))
	s.views = s.parse()
	return s
}

// Handler returns the handler of all paths below Root.
func Handler(cfg Config) http.Handler {
	s := newSite(cfg)
	mux := http.NewServeMux()
	for pattern, v := range s.routes() {
		mux.HandleFunc("GET "+Root+pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, v) })
		mux.HandleFunc("GET "+Root+"/live"+pattern, func(w http.ResponseWriter, r *http.Request) { s.follow(w, r, v) })
	}
	for pattern, act := range s.actions() {
		mux.HandleFunc("POST "+Root+pattern, func(w http.ResponseWriter, r *http.Request) { s.act(w, r, act) })
	}
	mux.HandleFunc("GET "+Root+"/static/{hash}/{file}", s.serveStatic)
	mux.HandleFunc("GET "+Root+"/login", s.askLogin)
	mux.HandleFunc("POST "+Root+"/login", s.login)
	mux.HandleFunc("POST "+Root+"/logout", s.logout)
	mux.HandleFunc("GET "+Root+"/download/models/{name...}", s.download)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, func(*visit) (*view, error) {
			return nil, &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("There is no page %s.", r.URL.Path)}
		})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access.Protect(w.Header()) // a server without access.Gate has not
		mux.ServeHTTP(w, r)
	})
}

// Starting answers for the pages of a coordinator that has no state yet. waits says what it waits for, which only
// callers with an identity are told.
func Starting(prefix string, waits func() string, log *slog.Logger) http.Handler {
	s := newSite(Config{Prefix: prefix, Log: log})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Root+"/static/{hash}/{file}", s.serveStatic)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		why := "This coordinator is starting."
		if access.Of(r.Context()).Role != rights.Anonymous {
			why = waits()
		}
		s.turnAway(w, r, http.StatusServiceUnavailable, &gate{Title: "Starting", Error: why, Wait: true})
	})
	return mux
}

// routes has the views by pattern, below Root. Each is also a stream of server-sent events below Root/live.
func (s *site) routes() map[string]viewFunc {
	all := map[string]viewFunc{
		"/{$}":        overviewView, // http.ServeMux would redirect /ui otherwise
		"":            overviewView,
		"/jobs":       jobsView,
		"/jobs/{job}": jobView,

		"/jobs/{job}/{change}":                 askJobView,
		"/compare":                             compareView,
		"/submit":                              submitView,
		"/submit/spec":                         specView,
		"/experiments":                         experimentsView,
		"/experiments/{name}":                  experimentView,
		"/experiments/{name}/report":           reportView,
		"/experiments/{name}/{change}":         askExperimentView,
		"/datasets":                            datasetsView,
		"/datasets/{name}":                     datasetView,
		"/models":                              modelsView,
		"/models/{name...}":                    modelView,
		"/workers":                             workersView,
		"/coordinators":                        coordinatorsView,
		"/coordinators/{coordinator}/transfer": transferView,
		"/audit":                               auditView,
	}
	if first, ok := all["/experiments"]; ok && s.Folder != "" {
		all["/{$}"], all[""] = first, first
	}
	return all
}

// actions has the actions by pattern, below Root.
func (s *site) actions() map[string]action {
	return map[string]action{
		"/jobs/{job}/{change}": changeJob,
		"/submit":              submitJob,
		"/submit/spec":         submitSpec,

		"/experiments/{name}/{change}": changeExperiment,
		"/models/{name...}":            deleteModel,

		"/workers/{worker}/trust":              trustWorker,
		"/coordinators/{coordinator}/transfer": transfer,
	}
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

// serveStatic answers with an asset. Its address has its hash, so browsers may keep it.
func (s *site) serveStatic(w http.ResponseWriter, r *http.Request) {
	a, ok := s.static[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.PathValue("hash") == a.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
}

// download answers with a model file, or with a page that says why not.
func (s *site) download(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	a := &attachment{ResponseWriter: w, file: strings.ReplaceAll(name, "/", "-") + ".model"}
	err := s.api.pass(a, r, "/v1/models/"+escapePath(name))
	if err == nil {
		err = a.refusal.problem()
	}
	if err != nil {
		w.Header().Del("Content-Length") // of the refusal
		s.serve(w, r, func(*visit) (*view, error) { return nil, err })
	}
}

// attachment is a response that a browser saves as a file. An error goes to refusal in place of the browser.
type attachment struct {
	http.ResponseWriter
	file    string
	refusal answer
	begun   bool
}

// WriteHeader implements http.ResponseWriter.
func (a *attachment) WriteHeader(status int) {
	if status >= http.StatusBadRequest && !a.begun {
		a.refusal.WriteHeader(status)
		return
	}
	if a.begun = a.begun || status >= http.StatusOK; a.begun {
		a.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.file))
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *attachment) Write(b []byte) (int, error) {
	if a.refusal.status != 0 {
		return a.refusal.Write(b)
	}
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController. A refusal is not sent: a coordinator that forwards the request flushes it.
func (a *attachment) FlushError() error {
	if a.refusal.status != 0 {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *attachment) Unwrap() http.ResponseWriter { return a.ResponseWriter }
