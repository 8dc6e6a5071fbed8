package api

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// counted has each request counted once it is answered.
func (s *Server) counted(h http.Handler) http.Handler {
	if s.cfg.Count == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, a := time.Now(), &answered{ResponseWriter: w}
		defer func() { s.cfg.Count(routeOf(r), a.status(), time.Since(began), waits(r)) }()
		h.ServeHTTP(a, r)
	})
}

// routeOf returns the pattern that a request was answered by.
func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "other"
	}
	return r.Pattern
}

// waits reports whether a request takes as long as something else does, by its nature.
func waits(r *http.Request) bool {
	return strings.HasSuffix(r.Pattern, "/watch") || r.URL.Query().Has("wait_ms")
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(code int) {
	if a.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) { // else one that comes before the answer
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answered) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// ReadFrom implements io.ReaderFrom, so that the system copies files.
func (a *answered) ReadFrom(r io.Reader) (int64, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return io.Copy(a.ResponseWriter, r)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// status is the answer's; that of one without a body is 200.
func (a *answered) status() int {
	if a.code == 0 {
		return http.StatusOK
	}
	return a.code
}
