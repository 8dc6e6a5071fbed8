package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Limits bound what all clients together take by HTTP.
type Limits struct {
	// Requests that are answered at once; others are answered with status 503, but for
	// those that tell how a coordinator is.
	Requests int
	// Bodies is room for the bodies of requests while they are read, but for blobs: a byte of
	// JSON counts as four, as it takes about that when it is decoded.
	Bodies *protocol.Room
}

// The least rate at which a body must come and an answer be read, in bytes a second,
// and the time over which it is averaged: a link of 1 Mbit/s is seven times as fast.
const (
	leastRate  = 16 << 10
	paceWindow = 10 * time.Second
	// endWithin is for how long the rest of a body is waited for that nobody read.
	endWithin = time.Second
	// bodyCounts is what a byte of a body counts in Limits.Bodies.
	bodyCounts = 4
)

var (
	errSlow = errors.New("the request is too slow")
	errBusy = errors.New("too many requests at once")
)

// Guard keeps the requests to a handler within limits and ends those that stand still:
// with status 408 where their bytes do not come, by closing the connection where those of
// the answer are not read.
func Guard(h http.Handler, l Limits) http.Handler { return &guard{h: h, limits: l, window: paceWindow} }

type guard struct {
	h      http.Handler
	limits Limits
	window time.Duration
	active atomic.Int64
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !vital(r) {
		defer g.active.Add(-1)
		if g.active.Add(1) > int64(g.limits.Requests) {
			busy(w, g.limits.Requests)
			return
		}
	}
	conn := http.NewResponseController(w) // its errors say that r comes from no connection
	_ = conn.SetWriteDeadline(time.Time{})
	defer func() { _ = conn.SetWriteDeadline(time.Now().Add(g.window)) }()
	paced := *r
	if r.Body != nil && r.Body != http.NoBody {
		b := &pacedBody{body: r.Body, conn: conn, window: g.window}
		if !(r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/blobs/")) {
			b.room = g.limits.Bodies
		}
		paced.Body = b
		defer b.finish()
	}
	g.h.ServeHTTP(&pacedWriter{w, conn, g.window}, &paced)
}

// vital reports whether a request tells how a coordinator is, or who leads: what
// others decide by while it has too much to do.
func vital(r *http.Request) bool {
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

func busy(w http.ResponseWriter, most int) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "1")
	reply(w, http.StatusServiceUnavailable, protocol.Problem{
		Error: fmt.Sprintf("%v: this coordinator serves at most %d requests at once (--max-connections); try again", errBusy, most),
	})
}

// pacedBody is a body that must come at the least rate. Time in which nobody reads it
// does not count.
type pacedBody struct {
	body   io.ReadCloser
	conn   *http.ResponseController
	window time.Duration
	room   *protocol.Room // nil: it takes none

	mu     sync.Mutex // a transport may read on where a request that it forwards is over
	over   bool
	taken  int           // of room
	waited time.Duration // for got bytes
	got    float64
	err    error
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	began := time.Now()
	if err := b.wait(began); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	return n, b.came(n, err, time.Since(began))
}

// wait bounds the wait for the next bytes; where the request is over it does not, as the
// connection may have the next one.
func (b *pacedBody) wait(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return io.ErrUnexpectedEOF
	}
	if b.err == nil {
		_ = b.conn.SetReadDeadline(now.Add(b.window - b.waited))
	}
	return b.err
}

// came takes in n bytes that were waited for, or an error.
func (b *pacedBody) came(n int, err error, waited time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waited += waited
	if b.got += float64(n); b.got >= leastRate*b.window.Seconds() {
		b.got, b.waited = 0, 0
	}
	switch {
	case b.over:
		b.err = io.ErrUnexpectedEOF
	case !b.take(n):
		b.err = fmt.Errorf("%w: the bodies of other requests already take %d KiB of memory; try again", errBusy, b.room.Held()>>10)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = fmt.Errorf("%w: %.0f bytes of the request's body arrived in %v, want at least %d bytes a second", errSlow, b.got, b.window, leastRate)
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // whoever answers may take its time
		b.err = err
	default:
		b.err = err
	}
	return b.err
}

// fault returns why the body did not come, if that is the fault of who sent it.
func (b *pacedBody) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(b.err, errSlow) || errors.Is(b.err, errBusy) {
		return b.err
	}
	return nil
}

// take takes room for n bytes of the body; mu is held.
func (b *pacedBody) take(n int) bool {
	if b.room == nil || n <= 0 {
		return true
	}
	if !b.room.Take(bodyCounts * n) {
		return false
	}
	b.taken += bodyCounts * n
	return true
}

// Close implements io.Closer.
func (b *pacedBody) Close() error { return b.body.Close() }

// finish gives back what the body took and bounds the wait for what was not read.
func (b *pacedBody) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.room != nil {
		b.room.Give(b.taken)
	}
	if !errors.Is(b.err, io.EOF) {
		_ = b.conn.SetReadDeadline(time.Now().Add(min(endWithin, b.window)))
	}
}

// pacedWriter is an answer whose bytes must be read at the least rate.
type pacedWriter struct {
	http.ResponseWriter
	conn   *http.ResponseController
	window time.Duration
}

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.window + time.Duration(len(p))*time.Second/leastRate))
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
