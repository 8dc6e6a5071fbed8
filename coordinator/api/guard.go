package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Limits bound what all callers together take by HTTP. Of each limit, one caller gets about three quarters.
type Limits struct {
	// Requests is how many requests are answered at once. More are refused with status
	// 503, except urgent ones.
	Requests int
	// Streams is how many of these requests may be streams of changes, and Pages how many of the streams may be of
	// open pages: other clients find room however many pages are open.
	Streams, Pages int
	// Bodies is how many bytes the bodies of requests take while they are read, except blobs. A byte of JSON
	// counts as bodyFactor bytes, which is about what it takes once it is decoded.
	Bodies int
}

const (
	// leastRate is the least rate, in bytes a second, at which a body must come and a
	// response must be read. A link of 1 Mbit/s is seven times as fast. paceWindow is the
	// time over which the rate is averaged.
	leastRate  = 16 << 10
	paceWindow = 10 * time.Second
	// drainTime bounds the wait for the rest of a body that the handler did not read.
	drainTime  = time.Second
	bodyFactor = 4
)

// Guard keeps the requests to a handler within limits, and ends requests that stand
// still. If the body does not come, the status is 408. If the response is not read, the
// connection is closed.
func Guard(h http.Handler, l Limits) http.Handler { return newGuard(h, l, paceWindow) }

func newGuard(h http.Handler, l Limits, window time.Duration) *guard {
	return &guard{h: h, window: window, active: newShares(l.Requests), open: newShares(l.Streams),
		pages: newShares(l.Pages), bodies: newShares(l.Bodies)}
}

type guard struct {
	h      http.Handler
	window time.Duration
	active *shares // requests that are being answered, without urgent ones
	open   *shares // streams of changes among them
	pages  *shares // of these, of open pages
	bodies *shares // bytes
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller := nameOf(access.Of(r.Context()))
	kind := rights.Is(r)
	if kind&rights.Urgent == 0 {
		excess := ""
		for _, place := range []struct {
			limit *shares
			takes rights.Kind // requests of these kinds need a place; 0: all
			what  string
		}{{g.active, 0, "requests"}, {g.open, rights.Stream, "streams of changes"},
			{g.pages, rights.Stream | rights.Page, "open pages that are live"}} {
			if kind&place.takes != place.takes {
				continue
			}
			if !place.limit.take(caller, 1, 0) {
				excess = fmt.Sprintf("%d %s", place.limit.most, place.what)
				break
			}
			defer place.limit.give(caller, 1)
		}
		if excess != "" {
			conn := http.NewResponseController(w) // its errors say that r has no connection, as in tests
			_ = conn.SetReadDeadline(time.Now().Add(min(drainTime, g.window)))
			_ = conn.SetWriteDeadline(time.Now().Add(g.window))
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			_ = writeJSON(w, http.StatusServiceUnavailable, protocol.Problem{
				Kind: protocol.ProblemKind(http.StatusServiceUnavailable, false),
				Error: fmt.Sprintf("%v: this coordinator serves at most %s at once, and fewer of one caller (coppice coordinator "+
					"--max-connections); try again", errBusy, excess),
			})
			return
		}
	}
	conn := http.NewResponseController(w) // its errors say that r has no connection, as in tests
	_ = conn.SetWriteDeadline(time.Time{})
	defer func() { _ = conn.SetWriteDeadline(time.Now().Add(g.window)) }()
	paced := *r
	if r.Body != nil && r.Body != http.NoBody {
		b := &pacedBody{body: r.Body, conn: conn, window: g.window, caller: caller}
		if kind&rights.ToFile == 0 {
			b.room = g.bodies
		}
		paced.Body = b
		defer context.AfterFunc(r.Context(), func() { b.end(context.Cause(r.Context())) })()
		defer b.finish()
	}
	out := &pacedWriter{ResponseWriter: w, conn: conn, window: g.window, ctx: r.Context()}
	defer context.AfterFunc(r.Context(), out.end)()
	g.h.ServeHTTP(out, &paced)
	if out.finish() {
		panic(http.ErrAbortHandler) // the client must not take the part for the whole
	}
}

// pacedBody is a body that must come at the least rate. Time in which the handler does
// not read does not count. The deadline of a read is what is left of the window after the
// waits of earlier reads.
type pacedBody struct {
	body   io.ReadCloser
	conn   *http.ResponseController
	window time.Duration
	room   *shares // nil: the body takes no room
	caller string

	// mu guards the fields below: a transport may still read after the request that it
	// forwards has ended.
	mu     sync.Mutex
	over   bool          // true if the request has ended
	taken  int           // bytes of room
	waited time.Duration // the time spent waiting for the last got bytes
	got    float64
	err    error // of the last read
}

// Read implements io.Reader. It bounds the wait for the next bytes, and counts it. After the end
// of the request it leaves the connection alone, which may have the next request by then.
func (b *pacedBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.mu.Lock()
	err := b.err
	if b.over {
		err = io.ErrUnexpectedEOF
	} else if err == nil {
		_ = b.conn.SetReadDeadline(began.Add(b.window - b.waited))
	}
	b.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.waited += time.Since(began)
	if b.got += float64(n); b.got >= leastRate*b.window.Seconds() {
		b.got, b.waited = 0, 0
	}
	fits := true
	if b.room != nil && n > 0 && !b.over {
		if fits = b.room.take(b.caller, bodyFactor*n, b.taken); fits {
			b.taken += bodyFactor * n
		}
	}
	switch {
	case b.over:
		b.err = io.ErrUnexpectedEOF
	case b.err != nil: // the context has ended
	case !fits:
		b.err = fmt.Errorf("%w: the bodies of other requests already take %d KiB of memory; try again", errBusy,
			b.room.inUse()>>10)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = fmt.Errorf("%w: %.0f bytes of the request's body arrived in %v, want at least %d bytes a second", errSlow,
			b.got, b.window, leastRate)
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // the handler may take its time now
		b.err = err
	default:
		b.err = err
	}
	return n, b.err
}

// end ends the reads because the context of the request has ended.
func (b *pacedBody) end(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && !b.over {
		b.err = cause
		_ = b.conn.SetReadDeadline(time.Now())
	}
}

// fault returns why the body did not come, if the client, its identity or the limits are the reason.
func (b *pacedBody) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, refused := access.StatusOf(b.err); refused || errors.Is(b.err, errSlow) || errors.Is(b.err, errBusy) {
		return b.err
	}
	return nil
}

// Close implements io.Closer.
func (b *pacedBody) Close() error { return b.body.Close() }

// finish ends the request: it gives the room back and bounds the wait for what was not
// read.
func (b *pacedBody) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.room != nil {
		b.room.give(b.caller, b.taken)
	}
	if !errors.Is(b.err, io.EOF) {
		_ = b.conn.SetReadDeadline(time.Now().Add(min(drainTime, b.window)))
	}
}

// pacedWriter is a response that must be read at the least rate. If the identity of the caller ends
// meanwhile, a response that has begun ends too. An error can still be sent.
type pacedWriter struct {
	http.ResponseWriter
	conn   *http.ResponseController
	window time.Duration
	ctx    context.Context // of the request

	mu     sync.Mutex
	status int  // 0: none was sent
	cut    bool // true if a part of the response was not sent
	over   bool // true if the request has ended
}

// refused returns why the caller is not trusted any more, or nil. A client that leaves, or only closes its
// side of the connection, is no reason to end a response.
func (w *pacedWriter) refused() error {
	err := context.Cause(w.ctx)
	if _, ok := access.StatusOf(err); ok {
		return err
	}
	return nil
}

// finish ends the request. It reports whether a part of the response was not sent.
func (w *pacedWriter) finish() (cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	return w.cut
}

// WriteHeader implements http.ResponseWriter.
func (w *pacedWriter) WriteHeader(status int) {
	w.mu.Lock()
	w.status = status
	w.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

// end ends a write that waits for the client to read.
func (w *pacedWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && w.status != 0 && w.status < http.StatusBadRequest && w.refused() != nil {
		w.cut = true
		_ = w.conn.SetWriteDeadline(time.Now())
	}
}

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if why := w.refused(); why != nil && w.status < http.StatusBadRequest {
		w.cut = true
		w.mu.Unlock()
		return 0, why
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.window + time.Duration(len(p))*time.Second/leastRate))
	w.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// counted calls count, if it is set, after each response: see Config.Count.
func counted(h http.Handler, count func(route string, code int, took time.Duration, waits bool)) http.Handler {
	if count == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, status := time.Now(), &statusWriter{ResponseWriter: w}
		defer func() {
			route, code := r.Pattern, status.code
			if route == "" || route == "/" {
				route = "other"
			}
			if code == 0 { // neither a status nor a body was written
				code = http.StatusOK
			}
			count(route, code, time.Since(began), rights.Is(r)&rights.Stream != 0 || r.URL.Query().Has("wait_ms"))
		}()
		h.ServeHTTP(status, r)
	})
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter
	code int // 0: nothing was written
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) { // the others precede the response
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom implements io.ReaderFrom, so that the system copies files.
func (w *statusWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return io.Copy(w.ResponseWriter, r)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// leaderOnly has requests answered by the leader: here if this coordinator leads, and by
// forwarding if not. A coordinator that only believes to lead answers with an error, and
// the client asks another one.
type leaderOnly struct {
	responder
	id        string
	leader    func() string // empty: there is none
	current   leaderCheck
	forwarder forwarder
}

func newLeaderOnly(cfg *Config, respond responder) *leaderOnly {
	l := &leaderOnly{responder: respond, id: cfg.ID, leader: cfg.Status.Leader}
	l.current.store = cfg.Store
	l.forwarder.open(cfg, respond)
	return l
}

// only runs f on the leader.
func (l *leaderOnly) only(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leader := l.leader()
		if leader != l.id {
			if leader == "" || !l.forwarder.try(w, r, leader) {
				l.answer(w, nil, fmt.Errorf("%w: the cluster has no leader at the moment; try again", store.ErrNotLeader))
			}
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), protocol.VerifyLeader)
		err := l.current.verify(ctx)
		cancel()
		if err != nil {
			l.answer(w, nil, fmt.Errorf("%w: no quorum of coordinators confirms that this coordinator leads: %w",
				store.ErrNotLeader, err))
			return
		}
		f(w, r)
	}
}

// leaderCheck confirms that this coordinator leads and that its state is complete.
type leaderCheck struct {
	store    *store.Store
	complete atomic.Uint64      // the last Raft term in which the state was found complete
	barriers singleflight.Group // the barriers under way, by Raft term
}

// verify returns nil if a quorum agrees that this coordinator leads and its state has
// every entry that was acknowledged before the call. A coordinator that was stopped for a
// while may not know that another one leads. A coordinator that lost the leadership and
// won it again may lack what was committed in between.
func (c *leaderCheck) verify(ctx context.Context) error {
	term := c.store.Stats().Term
	if c.complete.Load() != term {
		// All requests that wait at once share one barrier, since there are many of them
		// after an election. It goes on if one of them gives up.
		done := c.barriers.DoChan(strconv.FormatUint(term, 10), func() (any, error) {
			ctx, cancel := context.WithTimeout(context.Background(), protocol.VerifyLeader)
			defer cancel()
			return nil, c.store.Barrier(ctx)
		})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-done:
			if r.Err != nil {
				return r.Err
			}
		}
	}
	if err := c.store.VerifyLeader(ctx); err != nil {
		return err
	}
	if c.store.Stats().Term != term {
		return errors.New("the leadership has just changed")
	}
	c.complete.Store(term)
	return nil
}

// forwardedHeader marks a forwarded request. It is not forwarded again, so that two
// coordinators that disagree on the leader do not send it back and forth.
const forwardedHeader = "Coppice-Forwarded-By"

const (
	// probesPerSilence is how often the leader is probed during the silence after which
	// it is given up.
	probesPerSilence = 4
	// uploadSilence multiplies that silence for a body of more than smallBody bytes,
	// which may fill a slow link.
	uploadSilence = 10
	smallBody     = 64 << 10
)

// forwarder forwards requests to the leader. It gives a request up if another coordinator
// leads, or if the leader is silent; the client then asks another coordinator.
type forwarder struct {
	store   *store.Store
	proxy   *httputil.ReverseProxy
	tls     *certs.Source
	silence time.Duration
	// prober sends each probe over a connection of its own, since a connection that hangs
	// says nothing of the next.
	prober *http.Client
	probes singleflight.Group // the probes under way, by address
}

// leaderKey and bodyKey are the keys of the leader's URL and of the body in the context
// of a request.
type (
	leaderKey struct{}
	bodyKey   struct{}
)

// open prepares the proxy. An error of the proxy says whether the request may have taken
// effect: it cannot if no connection was made. If the client sent the body too slowly,
// the error says that instead.
func (f *forwarder) open(cfg *Config, respond responder) {
	f.store, f.tls, f.silence = cfg.Store, cfg.TLS, cmp.Or(cfg.silence, protocol.ForwardSilence)
	f.prober = &http.Client{Transport: cfg.TLS.Transport(&http.Transport{DisableKeepAlives: true})}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(p.In.Context().Value(leaderKey{}).(*url.URL))
			p.Out.Header.Set(forwardedHeader, cfg.ID)
			access.Forward(p.Out, p.In.Context())
		},
		FlushInterval: -1, // watchers see each line at once
		ErrorLog:      slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			why := fmt.Errorf("%w: the leader did not answer: %w", store.ErrNotLeader, err)
			if !unheard(err) {
				why = perhaps{why}
			}
			if b, ok := r.Context().Value(bodyKey{}).(*pacedBody); ok {
				why = cmp.Or(b.fault(), why)
			}
			respond.answer(w, nil, why)
		},
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // between coordinators is no proxy, whatever HTTP_PROXY says
	f.proxy.Transport = f.tls.Transport(transport)
}

// try forwards a request. It reports false if the request was forwarded already, or if
// the address of the leader is not in the state yet.
func (f *forwarder) try(w http.ResponseWriter, r *http.Request, leader string) bool {
	if r.Header.Get(forwardedHeader) != "" {
		return false
	}
	for _, m := range f.store.State().Members() {
		if m.ID == leader {
			ctx := context.WithValue(r.Context(), leaderKey{}, &url.URL{Scheme: f.tls.URLScheme(), Host: m.HTTP})
			ctx, cancel := context.WithCancel(context.WithValue(ctx, bodyKey{}, r.Body))
			watched, silent := f.untilSilent(ctx, r, m.HTTP, cancel)
			defer silent() // the proxy may panic
			defer f.untilDeposed(ctx, leader, cancel)()
			defer cancel()
			f.proxy.ServeHTTP(w, r.WithContext(watched))
			return true
		}
	}
	return false
}

// untilDeposed calls cancel if another coordinator leads: the former leader may hang. The
// watch ends with ctx; stop waits for its end.
func (f *forwarder) untilDeposed(ctx context.Context, leader string, cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		st, changed := f.store.Watch()
		for began := st.Epoch(); ; st, changed = f.store.Watch() {
			if st.Epoch() != began && st.Leader() != leader {
				cancel()
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	return func() { <-done }
}

// untilSilent calls cancel if the leader answers neither the request nor a probe for a
// while. The leader may hang or be cut off, though no other coordinator is known to lead.
// The watch ends with ctx, and with the first byte of the response, which watched
// reports; stop waits for its end.
func (f *forwarder) untilSilent(ctx context.Context, r *http.Request, host string,
	cancel func()) (watched context.Context, stop func()) {
	silence := f.silence
	if r.ContentLength > smallBody {
		silence *= uploadSilence
	}
	answers, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	watched = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		once.Do(func() { close(answers) })
	}})
	go func() {
		defer close(done)
		tick := time.NewTicker(silence / probesPerSilence)
		defer tick.Stop()
		for heard := time.Now(); time.Since(heard) < silence; {
			select {
			case <-ctx.Done():
				return
			case <-answers:
				return
			case <-tick.C:
			}
			if f.probe(host, silence/probesPerSilence) {
				heard = time.Now()
			}
		}
		cancel()
	}()
	return watched, func() { <-done }
}

// probe reports whether a coordinator answers within a time. Requests that wait at once
// share a probe.
func (f *forwarder) probe(host string, within time.Duration) bool {
	answered, _, _ := f.probes.Do(host, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.tls.URLScheme()+"://"+host+"/healthz", nil)
		if err != nil {
			return false, nil
		}
		response, err := f.prober.Do(request)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
		return err == nil, nil
	})
	return answered.(bool)
}
