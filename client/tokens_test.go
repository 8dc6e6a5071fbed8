package client

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// listener notes every header of authorization that a server gets.
type listener struct {
	address string
	mu      sync.Mutex
	got     []string
}

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// secureServer serves a handler with certificates; nil: in the clear.
func secureServer(t *testing.T, source *certs.Source, h http.HandlerFunc) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{address: inner.Addr().String()}
	web := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.mu.Lock()
			l.got = append(l.got, r.Header.Get("Authorization"))
			l.mu.Unlock()
			h(w, r)
		})}
	go func() {
		_ = web.Serve(certs.Listen(inner, source, certs.Terms{Port: certs.PortHTTP, Late: true, Within: time.Second}))
	}()
	t.Cleanup(func() { web.Close() })
	return l
}

// TestToken: a token is sent to a coordinator of the cluster, and to no other server.
func TestToken(t *testing.T) {
	authority, other := certtest.New(t), certtest.Of(t, "other")
	trust, err := certs.Trust(filepath.Join(authority.Folder(certs.User, "x"), certs.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	list := func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, []protocol.Token{{ID: "0"}}) }
	ask := func(l *listener) error {
		c, err := NewWithToken(l.address, trust, "coppice_token")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Patience = 0
		tokens, err := c.Tokens().List(t.Context())
		if err == nil && len(tokens) != 1 {
			t.Errorf("%v", tokens)
		}
		c.Survey(t.Context())
		return err
	}
	good := secureServer(t, authority.Source(certs.Coordinator, "a"), list)
	if err := ask(good); err != nil {
		t.Error(err)
	}
	for _, h := range good.heard() {
		if h != "Bearer coppice_token" && h != "" {
			t.Errorf("the coordinator got %q", h)
		}
	}
	if len(good.heard()) < 2 {
		t.Errorf("the coordinator got %q", good.heard())
	}
	for what, source := range map[string]*certs.Source{
		"a worker": authority.Source(certs.Worker, "w"), "a user": authority.User("eve", "admin"),
		"a coordinator of another cluster": other.Source(certs.Coordinator, "a"), "a server in the clear": nil,
	} {
		l := secureServer(t, source, list)
		if err := ask(l); err == nil {
			t.Errorf("%s is trusted", what)
		}
		if got := l.heard(); len(got) > 0 {
			t.Errorf("%s got %q", what, got)
		}
	}
	target := secureServer(t, authority.Source(certs.Coordinator, "b"), list)
	redirecting := secureServer(t, authority.Source(certs.Coordinator, "a"), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+target.address+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if err := ask(redirecting); err == nil || len(target.heard()) > 0 {
		t.Errorf("a redirect is followed: %v, %q", err, target.heard())
	}
	for _, c := range []struct {
		servers string
		source  *certs.Source
	}{{"http://127.0.0.1:1", trust}, {"127.0.0.1:1", nil}, {"https://127.0.0.1:1", nil}} {
		if _, err := NewWithToken(c.servers, c.source, "coppice_token"); err == nil ||
			!strings.Contains(err.Error(), "TLS") || strings.Contains(err.Error(), "coppice_token") {
			t.Errorf("%s: %v", c.servers, err)
		}
	}
}
