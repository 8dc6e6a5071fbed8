// Package served answers the requests of the HTTP API that make sense for a folder of this machine: about its
// experiments, which were run with --local, and about its model files and the trainings that made them.
//
// It only reads: another process may write the folder meanwhile. What was read is kept in memory while the files have
// the same size and time. No path leads out of the folder, also not by a symbolic link.
package served

import (
	"errors"
	"net/http"
)

// Folder answers requests about a folder.
type Folder struct {
	*shelf
	mux *http.ServeMux
}

// Open returns a handler for a folder. The caller closes it.
func Open(dir string) (*Folder, error) {
	s, err := openShelf(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{shelf: s, mux: http.NewServeMux()}
	experiment, training := &experimentHandlers{shelf: s}, &trainings{shelf: s}
	report, model, job := newReports(experiment), &modelHandlers{training}, &jobHandlers{training}
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /v1/experiments":             experiment.list,
		"GET /v1/experiments/{name}":      experiment.get,
		"GET /v1/experiments/{name}/grid": experiment.grid,
		"GET /v1/models":                  model.list,
		"GET /v1/jobs":                    job.list,
		"GET /v1/jobs/{job}":              job.get,
		"GET /v1/jobs/{job}/curve":        job.curve,
	} {
		f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := answer(r)
			respond(w, v, err)
		})
	}
	f.mux.HandleFunc("GET /v1/experiments/{name}/changes", experiment.changes)
	f.mux.HandleFunc("GET /v1/experiments/{name}/report", report.get)
	f.mux.HandleFunc("GET /v1/jobs/{job}/changes", job.changes)
	f.mux.HandleFunc("GET /v1/models/{name...}", model.get)
	f.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			respond(w, nil, withStatus{http.StatusMethodNotAllowed, errors.New("a folder is only shown; to change " +
				"something, use the commands of coppice")})
			return
		}
		respond(w, nil, notFound("no request %s %s exists for a folder", r.Method, r.URL.Path))
	})
	return f, nil
}

// ServeHTTP implements http.Handler.
func (f *Folder) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }
