package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// forwardedHeader marks a request that a coordinator forwarded already: it is not
// forwarded again, so that two that disagree on the leader do not play ball.
const forwardedHeader = "Coppice-Forwarded-By"

// forwarder passes requests on to the leader.
type forwarder struct {
	cfg       Config
	proxy     *httputil.ReverseProxy
	patience  time.Duration      // with a leader that says nothing
	questions singleflight.Group // whether it is there
}

// leaderKey and bodyKey are where a request's context has the leader's URL and the body.
type (
	leaderKey struct{}
	bodyKey   struct{}
)

func newForwarder(cfg Config) *forwarder {
	f := &forwarder{cfg: cfg, patience: cmp.Or(cfg.patience, protocol.ForwardSilence)}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(p.In.Context().Value(leaderKey{}).(*url.URL))
			p.Out.Header.Set(forwardedHeader, cfg.ID)
		},
		FlushInterval: -1, // watchers see each line at once
		ErrorLog:      slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			s := &Server{cfg: cfg}
			why := fmt.Errorf("%w: the leader did not answer: %w", store.ErrNotLeader, err)
			if !unheard(err) {
				why = perhaps{why}
			}
			if b, ok := r.Context().Value(bodyKey{}).(*pacedBody); ok {
				why = cmp.Or(b.fault(), why)
			}
			s.answer(w, nil, why)
		},
	}
	return f
}

// onLeader runs f on the leader: here, or by forwarding.
func (s *Server) onLeader(f http.HandlerFunc) http.HandlerFunc {
	f = s.verified(f)
	return func(w http.ResponseWriter, r *http.Request) {
		leader := s.cfg.Cluster().Leader
		if leader == s.cfg.ID {
			f(w, r)
			return
		}
		if leader == "" || !s.forward.try(w, r, leader) {
			s.answer(w, nil, fmt.Errorf("%w: the cluster has no leader at the moment; try again", store.ErrNotLeader))
		}
	}
}

// try forwards the request, and reports false where it cannot.
func (f *forwarder) try(w http.ResponseWriter, r *http.Request, leader string) bool {
	if r.Header.Get(forwardedHeader) != "" {
		return false
	}
	for _, m := range f.cfg.Store.State().Members() {
		if m.ID == leader {
			ctx, cancel := context.WithCancel(withLeader(r, &url.URL{Scheme: "http", Host: m.HTTP}))
			watched, silent := f.untilLeaderIsSilent(ctx, r, m.HTTP, cancel)
			defer silent() // the proxy may panic
			defer f.untilLeaderChanges(ctx, leader, cancel)()
			defer cancel()
			f.proxy.ServeHTTP(w, r.WithContext(watched))
			return true
		}
	}
	return false
}

// untilLeaderChanges gives a forwarded request up once another coordinator leads: the
// one that it went to may hang, and the client then asks again. stop waits for the
// end of the watch, which is that of ctx.
func (f *forwarder) untilLeaderChanges(ctx context.Context, leader string, cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		st, changed := f.cfg.Store.Watch()
		for began := st.Epoch(); ; st, changed = f.cfg.Store.Watch() {
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

func withLeader(r *http.Request, target *url.URL) context.Context {
	return context.WithValue(context.WithValue(r.Context(), bodyKey{}, r.Body), leaderKey{}, target)
}
