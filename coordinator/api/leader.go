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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// leaderOnly has requests answered by the leader: here if this coordinator leads, and by
// forwarding if not. A coordinator that only believes to lead answers with an error, and
// the client asks another one.
type leaderOnly struct {
	responder
	id        string
	cluster   func() protocol.Cluster
	current   leaderCheck
	forwarder forwarder
}

func newLeaderOnly(cfg *Config, respond responder) *leaderOnly {
	l := &leaderOnly{responder: respond, id: cfg.ID, cluster: cfg.Status.Cluster}
	l.current.store = cfg.Store
	l.forwarder.open(cfg, respond)
	return l
}

// only runs f on the leader.
func (l *leaderOnly) only(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leader := l.cluster().Leader
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
			l.answer(w, nil, fmt.Errorf("%w: no quorum of coordinators confirms that this coordinator leads: %w", store.ErrNotLeader, err))
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
	if f.tls != nil {
		f.proxy.Transport = f.tls.Transport(http.DefaultTransport.(*http.Transport).Clone())
	}
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
func (f *forwarder) untilSilent(ctx context.Context, r *http.Request, host string, cancel func()) (watched context.Context, stop func()) {
	silence := f.silence
	if r.ContentLength > smallBody {
		silence *= uploadSilence
	}
	answers, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	watched = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { once.Do(func() { close(answers) }) }})
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
