// Package served answers the requests of the HTTP API that make sense for a folder of this machine: about its
// experiments, which were run with --local, and about its model files and the trainings that made them.
//
// It only reads: another process may write the folder meanwhile. What was read is kept in memory while the files have the
// same size and time. No path leads out of the folder, also not by a symbolic link.
package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// Folder answers requests about a folder.
type Folder struct {
	dir  string   // absolute, without symbolic links
	root *os.Root // of dir
	mux  *http.ServeMux

	shelf     shelf
	readings  readings
	heads     heads
	reporting chan struct{} // full while a report is made
	reports   keptReports
}

// Open returns a handler for a folder. The caller closes it.
func Open(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, root: root, mux: http.NewServeMux(), reporting: make(chan struct{}, 1)}
	f.shelf.begin()
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /v1/experiments":             f.listExperiments,
		"GET /v1/experiments/{name}":      f.getExperiment,
		"GET /v1/experiments/{name}/grid": f.getGrid,
		"GET /v1/models":                  f.listModels,
		"GET /v1/jobs":                    f.listJobs,
		"GET /v1/jobs/{job}":              f.getJob,
		"GET /v1/jobs/{job}/curve":        f.getCurve,
	} {
		f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := answer(r)
			respond(w, v, err)
		})
	}
	f.mux.HandleFunc("GET /v1/experiments/{name}/changes", f.streamExperiment)
	f.mux.HandleFunc("GET /v1/experiments/{name}/report", f.writeReport)
	f.mux.HandleFunc("GET /v1/jobs/{job}/changes", f.streamJob)
	f.mux.HandleFunc("GET /v1/models/{name...}", f.sendModel)
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

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Dir returns the absolute path of the folder.
func (f *Folder) Dir() string { return f.dir }

// ServeHTTP implements http.Handler.
func (f *Folder) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// path returns the path of something in the folder, which a scan has found.
func (f *Folder) path(at string) string { return filepath.Join(f.dir, filepath.FromSlash(at)) }

// withStatus is an error with the status of its response.
type withStatus struct {
	status int
	error
}

func (e withStatus) Unwrap() error { return e.error }

func notFound(format string, args ...any) error {
	return withStatus{http.StatusNotFound, fmt.Errorf(format, args...)}
}

func wrong(err error) error { return withStatus{http.StatusBadRequest, err} }

// part is a list with a header Link, as coordinators answer.
type part struct {
	list any
	link string // empty: nothing follows
}

// respond writes a value, or an error as a Problem.
func respond(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if p, ok := v.(part); ok && err == nil {
		if v = p.list; p.link != "" {
			w.Header().Set("Link", p.link)
		}
	}
	if err != nil {
		var known withStatus
		switch status = http.StatusInternalServerError; {
		case errors.As(err, &known):
			status = known.status
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			status = http.StatusServiceUnavailable
		case errors.Is(err, fs.ErrNotExist): // it was deleted after the scan
			status = http.StatusNotFound
		}
		text := files.Message(err)
		v = protocol.Problem{Error: text, Kind: protocol.ProblemKind(status, false), Form: errtext.Of(text, err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error has no reader any more
}

// The time between two lines of a stream: linesApart, or a multiple of the time that a line took to make.
const (
	linesApart = protocol.WatchBeat
	looksApart = 10
)

// stream writes what line returns as lines of JSON, until last is true or the client has left. If line returns nil,
// nothing has changed, and an empty line says that the stream is alive.
func stream(w http.ResponseWriter, r *http.Request, line func() (v any, last bool, err error)) {
	out, conn := json.NewEncoder(w), http.NewResponseController(w)
	for begun := false; ; begun = true {
		began := time.Now()
		v, last, err := line()
		if err != nil {
			if !begun { // otherwise the client asks again, and hears why
				respond(w, nil, err)
			}
			return
		}
		if w.Header().Set("Content-Type", "application/jsonl"); r.Method == http.MethodHead {
			return
		}
		if v != nil {
			err = out.Encode(v)
		} else {
			_, err = io.WriteString(w, "\n")
		}
		if flushed := conn.Flush(); flushed != nil && !errors.Is(flushed, http.ErrNotSupported) || err != nil || last {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(min(max(linesApart, looksApart*time.Since(began)), protocol.WatchSilence/2)):
		}
	}
}
