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
	port    string // the address to listen at again
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
	at := l.Addr().(*net.TCPAddr)
	others := at.String()
	if at.IP.IsUnspecified() { // it listens on all interfaces: others reach it by the name of this machine
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		others = net.JoinHostPort(host, fmt.Sprint(at.Port))
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
		address: others, port: at.String(),
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
