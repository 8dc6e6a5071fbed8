package api

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/coppice-ldl/coppice/protocol"
)

// Starting serves what there is to say before the log is open: who the coordinator
// is, and for what it waits. Everything else is to be asked again, or elsewhere.
func Starting(self func() protocol.Self, waits func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, waits(), http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /v1/self", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, self()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, protocol.Problem{Error: waits()})
	})
	return mux
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // whoever asked may be gone
}
