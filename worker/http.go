package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/coppice-ldl/coppice/metrics"
)

// web is the worker's HTTP server; nil: none.
type web struct {
	server *http.Server
	done   chan struct{}
}

// listen starts the HTTP server where the configuration asks for one.
func (w *worker) listen() (*web, error) {
	if w.cfg.Listen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", w.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("worker: cannot listen for HTTP at --listen %s: %w", w.cfg.Listen, err)
	}
	w.address = reachable(l.Addr().(*net.TCPAddr))
	w.cfg.Listen = l.Addr().String() // the same port, if the worker begins again
	x := &web{
		server: &http.Server{Handler: w.handler(), ReadHeaderTimeout: 5 * time.Second},
		done:   make(chan struct{}),
	}
	go func() {
		defer close(x.done)
		if err := x.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.log.Error("the HTTP server ended", "error", err)
		}
	}()
	return x, nil
}

// reachable returns the address by which others reach a listener: on all
// interfaces it is known by this machine's name.
func reachable(a *net.TCPAddr) string {
	if !a.IP.IsUnspecified() {
		return a.String()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return net.JoinHostPort(host, fmt.Sprint(a.Port))
}

// close ends the server, after at most a second for requests under way.
func (x *web) close() {
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if x.server.Shutdown(ctx) != nil {
		x.server.Close()
	}
	<-x.done
}

func (w *worker) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(w.registry))
	mux.HandleFunc("GET /healthz", func(r http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(r, "ok")
	})
	mux.HandleFunc("GET /readyz", func(r http.ResponseWriter, _ *http.Request) {
		if reason := w.unready(); reason != "" {
			http.Error(r, reason, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(r, "ok")
	})
	return mux
}

// unready says why the worker cannot take orders now; empty: it can.
func (w *worker) unready() string {
	s := w.session.Load()
	if s == nil {
		return "no coordinator has answered yet"
	}
	if !s.conn.Connected() {
		return "the worker is not connected to NATS"
	}
	if why := w.disk.trouble(); why != "" {
		return why
	}
	silence := w.silence()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case silence > s.limits.LeaderLost:
		return fmt.Sprintf("the worker has not heard from a leader for %v", silence.Round(time.Second))
	case w.refused != "":
		return "the leader refuses this worker: " + w.refused
	case w.leader == "":
		return "the worker has not heard from a leader yet"
	}
	return ""
}
