package access_test

import (
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// changing is a registry that tests change while a server uses it.
type changing struct {
	mu sync.Mutex
	registry
}

func (c *changing) Token(id string) (access.Token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registry.Token(id)
}

func (c *changing) Revoked(serial string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registry.Revoked(serial)
}

func (c *changing) change(f func(*registry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.registry)
}

// serve serves a handler with a gate, and returns its address.
func serve(t *testing.T, gate *access.Gate, h http.Handler) string {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{ReadHeaderTimeout: time.Second, ConnContext: certs.ConnContext, Handler: gate.Identify(h)}
	go func() {
		_ = web.Serve(certs.Listen(inner, gate.TLS, certs.Terms{Port: certs.PortHTTP, Late: true, Within: time.Second}))
	}()
	t.Cleanup(func() { web.Close() })
	return inner.Addr().String()
}

// TestStreamsEnd: the context of a request ends within a second after its token was revoked or has
// expired, or its certificate was revoked. The requests of others go on.
func TestStreamsEnd(t *testing.T) {
	s := newSite(t)
	known := &changing{registry: registry{tokens: make(map[string]access.Token)}}
	ends := make(chan string, 4)
	begun := make(chan struct{}, 4)
	gate := &access.Gate{TLS: s.Source(certs.Coordinator, "a"), Registry: func() access.Registry { return known }}
	s.address = serve(t, gate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := access.Of(r.Context()).Name
		begun <- struct{}{}
		<-r.Context().Done()
		ends <- name
	}))
	text := make(map[string]string)
	ids := make(map[string]string)
	for name, end := range map[string]time.Duration{"revoked": time.Hour, "expired": 5 * time.Second,
		"valid": time.Hour} {
		secret, id, hash := access.NewToken()
		text[name], ids[name] = secret, id
		known.change(func(r *registry) {
			r.tokens[id] = access.Token{Owner: name, Role: rights.Read, Hash: hash, Ends: time.Now().Add(end)}
		})
	}
	source := s.User("certificate", "read")
	clients := map[string]*http.Client{"": s.as(source)}
	for name := range text {
		clients[name] = s.as(nil)
	}
	for name, c := range clients {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			r.Header.Set("Authorization", "Bearer "+text[name])
		}
		go func() {
			if response, err := c.Do(r); err == nil {
				response.Body.Close()
			}
		}()
	}
	for range clients {
		testkit.Receive(t, "a request", begun)
	}
	known.change(func(r *registry) {
		delete(r.tokens, ids["revoked"])
		r.revoked = certs.Serial(source.Own())
	})
	ended := make(map[string]bool)
	for range 2 {
		ended[testkit.Receive(t, "the end of a request", ends)] = true
	}
	if !ended["revoked"] || !ended["certificate"] {
		t.Errorf("%v ended first", ended)
	}
	if last := testkit.Receive(t, "the end of a request", ends); last != "expired" {
		t.Errorf("%s ended", last)
	}
	select {
	case name := <-ends:
		t.Errorf("the request of %s ended", name)
	default:
	}
}

// TestMetrics: a token of metrics, or an open gate, gives /metrics and nothing else.
func TestMetrics(t *testing.T) {
	const secret = "a-text-of-prometheus"
	hash := sha256.Sum256([]byte(secret))
	token := func() ([sha256.Size]byte, bool) { return hash, true }
	authority := certtest.New(t)
	cluster, _, _ := access.NewToken()
	for _, c := range []struct {
		name, token string
		gate        access.Gate
		want        map[string]int
	}{
		{"with the token", secret, access.Gate{MetricsToken: token}, map[string]int{"/metrics": 200, "/v1/jobs": 401,
			"/metrics/x": 401}},
		{"with another token", secret + "x", access.Gate{MetricsToken: token}, map[string]int{"/metrics": 401}},
		{"without a token", "", access.Gate{MetricsToken: token}, map[string]int{"/metrics": 401}},
		{"with a token of the cluster", cluster, access.Gate{MetricsToken: token}, map[string]int{"/metrics": 401}},
		{"open", "", access.Gate{OpenMetrics: true}, map[string]int{"/metrics": 200, "/v1/jobs": 401}},
		{"open, with a token that is also there", "", access.Gate{OpenMetrics: true, MetricsToken: token},
			map[string]int{"/metrics": 200}},
		{"closed", secret, access.Gate{}, map[string]int{"/metrics": 401}},
		{"a coordinator that starts", cluster, access.Gate{Registry: func() access.Registry {
			return nil
		}}, map[string]int{"/metrics": 503}},
	} {
		c.gate.TLS = authority.Source(certs.Worker, "w")
		mux := http.NewServeMux()
		for _, pattern := range []string{"GET /metrics", "GET /v1/jobs", "GET /metrics/x"} {
			mux.HandleFunc(pattern, access.Route(pattern, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "secret")
			}))
		}
		s := &site{Authority: authority, t: t, address: serve(t, &c.gate, mux)}
		for path, want := range c.want {
			var header []string
			if c.token != "" {
				header = []string{"Authorization", "Bearer " + c.token}
			}
			if status, body := s.ask(s.as(nil), "GET", path, header...); status != want ||
				(status == 200) != (body == "secret") {
				t.Errorf("%s, %s: %d %s", c.name, path, status, body)
			}
		}
	}
}

// TestBearer: without TLS a token is not looked at, and everybody may do everything.
func TestBearer(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://localhost/", nil)
	r.Header.Set("Authorization", "Bearer x")
	(&access.Gate{}).Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c := access.Of(r.Context()); c.Role != rights.Admin || c.Name != "" || c.Token != "" {
			t.Errorf("%+v", c)
		}
	})).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Error(w.Code)
	}
}
