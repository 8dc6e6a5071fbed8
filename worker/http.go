package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/metrics"
)

// web is the worker's HTTP server.
type web struct {
	address string // by which others reach it
	port    string // where it listens
	server  *http.Server
	done    chan struct{}
}

// listen starts an HTTP server at an address. If the address is empty, it returns nil.
func listen(address string, registry *prometheus.Registry, unready func() string, log *slog.Logger) (*web, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("worker: cannot listen for HTTP at --listen %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(registry))
	mux.HandleFunc("GET /healthz", func(r http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(r, "ok")
	})
	mux.HandleFunc("GET /readyz", func(r http.ResponseWriter, _ *http.Request) {
		if reason := unready(); reason != "" {
			http.Error(r, reason, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(r, "ok")
	})
	x := &web{
		address: reachable(l.Addr().(*net.TCPAddr)), port: l.Addr().String(),
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, done: make(chan struct{}),
	}
	go func() {
		defer close(x.done)
		if err := x.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the HTTP server ended", "error", err)
		}
	}()
	return x, nil
}

// reachable returns the address by which others reach a listener. If it listens on all interfaces, that is the name of
// this machine.
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

// close ends the server. Requests have at most a second to end.
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
