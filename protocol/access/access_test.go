package access_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// registry is a registry of tests.
type registry struct {
	tokens  map[string]access.Token
	revoked string
	waits   atomic.Int64
}

func (r *registry) Token(id string) (t access.Token, ok bool) {
	t, ok = r.tokens[id]
	return t, ok
}

func (r *registry) Revoked(serial string) bool { return serial == r.revoked }

func (r *registry) Member(name string) bool { return name == "b" }

// CatchUp counts the waits.
func (r *registry) CatchUp(context.Context, func() bool) { r.waits.Add(1) }

// site is a server with a gate.
type site struct {
	*certtest.Authority
	t       *testing.T
	address string
	known   registry

	mu      sync.Mutex
	refused []string // what Gate.Refused has told
}

// newSite serves the path /who, which answers with the caller, and routes of the API.
func newSite(t *testing.T) *site {
	s := &site{Authority: certtest.New(t), t: t, known: registry{tokens: make(map[string]access.Token)}}
	source := s.Source(certs.Coordinator, "a")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /who", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(access.Of(r.Context()))
	})
	mux.HandleFunc("GET /own", func(w http.ResponseWriter, r *http.Request) {
		if err := access.Own(r.Context(), "job 1", "ana"); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	})
	for _, pattern := range []string{"GET /readyz", "GET /metrics", "GET /v1/cluster", "GET /v1/jobs", "POST /v1/jobs",
		"GET /v1/backup"} {
		mux.HandleFunc(pattern, access.Route(pattern, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "secret")
		}))
	}
	gate := &access.Gate{TLS: source, Registry: func() access.Registry { return &s.known }}
	gate.Refused = func(c *access.Caller, request string, reason access.Reason, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, fmt.Sprintf("%s %s: %s: %s", c.Role, c.Name, request, reason))
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{ReadHeaderTimeout: time.Second, ConnContext: certs.ConnContext, Handler: gate.Identify(mux)}
	go func() {
		_ = web.Serve(certs.Listen(inner, source, certs.Terms{Port: certs.PortHTTP, Late: true, Within: time.Second}))
	}()
	t.Cleanup(func() { web.Close() })
	s.address = inner.Addr().String()
	return s
}

// as returns a client with the certificate of a source; nil: without one.
func (s *site) as(source *certs.Source) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	if source != nil {
		transport = source.Transport(&http.Transport{DisableKeepAlives: true})
	}
	return &http.Client{Transport: transport}
}

// stranger returns a client with the certificate of an admin that another authority has signed.
func (s *site) stranger(a *certtest.Authority) *http.Client {
	s.t.Helper()
	dir := a.Folder(certs.User, "x")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
	if err != nil {
		s.t.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}
}

// ask sends a request with a header, and returns status and body.
func (s *site) ask(c *http.Client, method, path string, header ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "https://"+s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// TestRoles: each role reaches its requests, and the refusal of others says what helps.
func TestRoles(t *testing.T) {
	s := newSite(t)
	of := s.stranger(certtest.Of(t, "other"))
	impostor := s.stranger(certtest.New(t))
	for _, c := range []struct {
		name    string
		client  *http.Client
		request string
		status  int
		body    string
	}{
		{"anonymous", s.as(nil), "GET /readyz", 200, ""},
		{"anonymous", s.as(nil), "GET /v1/jobs", 401, "COPPICE_TOKEN_FILE"},
		{"anonymous", s.as(nil), "GET /metrics", 401, "--tls-dir"},
		{"anonymous", s.as(nil), "GET /readyz/", 401, "--tls-dir"},
		{"a stranger", of, "GET /v1/jobs", 403, "it is of another cluster"},
		{"a stranger", of, "GET /readyz", 200, ""},
		{"an impostor", impostor, "GET /v1/jobs", 403, "another authority has signed it"},
		{"read", s.as(s.User("rita", "read")), "GET /v1/jobs", 200, "secret"},
		{"read", s.as(s.User("rita", "read")), "POST /v1/jobs", 403,
			"user rita (role read) may not make the request POST /v1/jobs, which needs the role submit; an admin grants it"},
		{"submit", s.as(s.User("sam", "submit")), "POST /v1/jobs", 200, "secret"},
		{"submit", s.as(s.User("sam", "submit")), "GET /v1/backup", 403, "needs the role admin"},
		{"admin", s.as(s.User("ana", "admin")), "GET /v1/backup", 200, "secret"},
		{"worker", s.as(s.Source(certs.Worker, "w")), "GET /v1/jobs", 403, "worker w may not"},
		{"worker", s.as(s.Source(certs.Worker, "w")), "GET /v1/cluster", 403, "only with local=true"},
		{"worker", s.as(s.Source(certs.Worker, "w")), "GET /v1/cluster?local=true", 200, "secret"},
		{"coordinator", s.as(s.Source(certs.Coordinator, "b")), "GET /v1/backup", 403, "coordinator b may not"},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		status, body := s.ask(c.client, method, path)
		if status != c.status || !strings.Contains(body, c.body) || c.body == "" && body != "" {
			t.Errorf("%s, %s: %d %q, want %d %q", c.name, c.request, status, body, c.status, c.body)
		}
	}
}

// TestRefused: each refusal is told, with its reason.
func TestRefused(t *testing.T) {
	s := newSite(t)
	_, id, _ := access.NewToken()
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Read, Ends: time.Now().Add(-time.Minute)}
	eve := s.User("eve", "admin")
	s.known.revoked = certs.Serial(eve.Own())
	s.ask(s.as(nil), "GET", "/v1/jobs")
	s.ask(s.as(nil), "GET", "/healthz")
	s.ask(s.as(nil), "GET", "/v1/jobs", "Authorization", "Bearer coppice_"+id+"_"+strings.Repeat("0", 64))
	s.ask(s.as(eve), "GET", "/v1/jobs")
	s.ask(s.as(s.User("rita", "read")), "POST", "/v1/jobs")
	s.ask(s.as(s.User("rita", "read")), "GET", "/v1/jobs")
	s.ask(s.as(s.Source(certs.Worker, "w")), "GET", "/v1/cluster")
	s.ask(s.as(s.User("sam", "submit")), "GET", "/own")
	want := []string{
		"anonymous : GET /v1/jobs: identity", "anonymous : GET /v1/jobs: token", "admin eve: GET /v1/jobs: certificate",
		"read rita: POST /v1/jobs: role", "worker w: GET /v1/cluster: role", "submit sam: GET /own: owner",
	}
	if s.mu.Lock(); !slices.Equal(s.refused, want) {
		t.Errorf("%q", s.refused)
	}
	s.mu.Unlock()
}

// TestHideTokens: of a token, or its beginning, only the id is shown.
func TestHideTokens(t *testing.T) {
	text, id, _ := access.NewToken()
	for given, want := range map[string]string{
		text:                       "coppice_" + id + "_SECRET",
		"a/" + text + ": no file":  "a/coppice_" + id + "_SECRET: no file",
		text[:40] + " and " + text: "coppice_" + id + "_SECRET and coppice_" + id + "_SECRET",
		"coppice_token.txt":        "coppice_token.txt",
	} {
		if got := access.HideTokens(given); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := access.HasToken(given); got != (given != want) {
			t.Errorf("HasToken is %v for %q", got, want)
		}
	}
}

// TestTokens: a token has the role and the owner that the cluster knows. Every other token is
// refused with the same words.
func TestTokens(t *testing.T) {
	s := newSite(t)
	text, id, hash := access.NewToken()
	_, other, _ := access.NewToken()
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Submit, Hash: hash}
	who := func(text string) (int, string) {
		return s.ask(s.as(nil), "GET", "/who", "Authorization", "Bearer "+text)
	}
	if status, body := who(text); status != 200 || !strings.Contains(body, `"role":"submit","name":"ana"`) ||
		strings.Contains(body, text[len(text)-20:]) {
		t.Errorf("the token: %d %s", status, body)
	}
	_, want := who("x")
	wrong := text[:len(text)-1] + string('0'+(text[len(text)-1]-'0'+1)%8)
	for what, text := range map[string]string{"another secret": wrong, "an unknown id": strings.Replace(text, id, other,
		1), "without a secret": "coppice_" + id + "_", "empty": ""} {
		if status, body := who(text); status != 401 || body != want || !strings.Contains(body, "coppice token create") {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	for what, text := range map[string]string{"another secret": wrong, "an unknown id": strings.Replace(text, id,
		other, 1)} {
		before := s.known.waits.Load()
		if who(text); s.known.waits.Load() != before+1 {
			t.Errorf("%s: the refusal has %d waits, which tells whether the id exists", what, s.known.waits.Load()-before)
		}
	}
	if status, _ := s.ask(s.as(nil), "GET", "/who", "Authorization", "Basic "+text); status != 401 {
		t.Errorf("another scheme: %d", status)
	}
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Submit, Hash: hash, Ends: time.Now().Add(-time.Second)}
	if status, body := who(text); status != 401 || body != want {
		t.Errorf("an expired token: %d %s", status, body)
	}
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Submit}
	if status, _ := s.ask(s.as(nil), "GET", "/who", "Authorization", "Bearer "+strings.Replace(text, id, other,
		1)); status != 401 {
		t.Errorf("a token without a hash: %d", status)
	}
}

// TestForwarded: only a coordinator says who called, and what this server knows of the
// caller counts.
func TestForwarded(t *testing.T) {
	s := newSite(t)
	text, id, hash := access.NewToken()
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Read, Hash: hash}
	s.known.revoked = "abc"
	coordinator := s.as(s.Source(certs.Coordinator, "b"))
	const header = "Coppice-Caller"
	for _, c := range []struct {
		name   string
		client *http.Client
		caller string
		status int
		body   string
	}{
		{"an admin", coordinator, `{"role":"admin","name":"ana","from":"h:1"}`, 200,
			`"role":"admin","name":"ana","from":"h:1"`},
		{"a token", coordinator, `{"role":"admin","name":"x","token":"` + id + `","from":"h:1"}`, 200,
			`"role":"read","name":"ana","token"`},
		{"an unknown token", coordinator, `{"role":"admin","token":"0123456789abcdef","from":"h:1"}`, 401, "token"},
		{"a revoked certificate", coordinator, `{"role":"admin","name":"x","serial":"abc","from":"h:1"}`, 403, "revoked"},
		{"no JSON", coordinator, `x`, 403, header},
		{"a user", s.as(s.User("eve", "admin")), `{"role":"admin","name":"ana","from":"h:1"}`, 403, "only a coordinator"},
		{"a worker", s.as(s.Source(certs.Worker, "w")), `{"role":"admin","name":"ana","from":"h:1"}`, 403,
			"only a coordinator"},
	} {
		if status, body := s.ask(c.client, "GET", "/who", header, c.caller); status != c.status ||
			!strings.Contains(body, c.body) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	if status, body := s.ask(s.as(nil), "GET", "/who", header, `{"role":"admin","from":"h:1"}`, "Authorization", "Bearer "+
		text); status != 200 || strings.Contains(body, "admin") {
		t.Errorf("a user with a token: %d %s", status, body)
	}
}

// TestOtherSites: a change that a page of another site asks for is refused, though the browser
// sends the certificate of an admin. Reading is not, and programs state no site.
func TestOtherSites(t *testing.T) {
	s := newSite(t)
	admin := s.as(s.User("ana", "admin"))
	for _, c := range []struct {
		method string
		header []string
		want   int
	}{
		{"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403}, {"POST", []string{"Origin", "https://evil.example"}, 403},
		{"POST", []string{"Sec-Fetch-Site", "same-origin"}, 200}, {"POST", nil, 200},
		{"GET", []string{"Sec-Fetch-Site", "cross-site"}, 200},
	} {
		if status, body := s.ask(admin, c.method, "/v1/jobs", c.header...); status != c.want {
			t.Errorf("%s %v: %d %s", c.method, c.header, status, body)
		}
	}
}

// TestHalfRequests: a caller without an identity who does not send the rest of a request loses
// the connection.
func TestHalfRequests(t *testing.T) {
	s := newSite(t)
	c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 401") {
		t.Errorf("%v: %.100q", err, b)
	}
}

// TestWorkersTakeNoTokens: a process without tokens of a cluster does not advise them.
func TestWorkersTakeNoTokens(t *testing.T) {
	r := httptest.NewRequest("GET", "/metrics", nil)
	w := httptest.NewRecorder()
	gate := &access.Gate{TLS: certtest.New(t).Source(certs.Worker, "w")}
	gate.Identify(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != 401 || strings.Contains(w.Body.String(), "token create") ||
		!strings.Contains(w.Body.String(), "--metrics-token-file") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRevoked: a revoked certificate is refused, and its open connection as well.
func TestRevoked(t *testing.T) {
	s := newSite(t)
	source := s.User("ana", "admin")
	c := &http.Client{Transport: source.Transport(new(http.Transport))}
	if status, body := s.ask(c, "GET", "/v1/jobs"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	s.known.revoked = certs.Serial(source.Own())
	if status, body := s.ask(c, "GET", "/v1/jobs"); status != 403 || !strings.Contains(body, "revoked") {
		t.Errorf("%d %s", status, body)
	}
	b := s.Source(certs.Coordinator, "b")
	s.known.revoked = certs.Serial(b.Own())
	if status, body := s.ask(s.as(b), "GET", "/v1/jobs", "Coppice-Caller",
		`{"role":"admin","name":"ana","from":"h:1"}`); status != 503 || !strings.Contains(body, "revoked") {
		t.Errorf("a request that a revoked coordinator forwards: %d %s", status, body)
	}
}

// TestExpired: the refusal of a certificate that has expired speaks to its owner.
func TestExpired(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	if _, err := s.Issue(dir, certs.Identity{Role: certs.User, Name: "ana", Rights: "admin"}, nil,
		-time.Minute); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}
	if status, body := s.ask(c, "GET", "/v1/jobs"); status != 403 ||
		!strings.Contains(body, "the certificate of the caller has expired") {
		t.Errorf("%d %s", status, body)
	}
}

// TestRead: what is private is read by its owner and by admins, and by no process that has the name of the owner.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		role        rights.Role
		name, owner string
		want        bool
	}{
		{rights.Submit, "sam", "sam", true}, {rights.Read, "sam", "sam", true}, {rights.Submit, "eve", "sam", false},
		{rights.Read, "eve", "sam", false},
		{rights.Admin, "ana", "sam", true}, {rights.Admin, "", "", true}, {rights.Coordinator, "a", "sam", true},
		{rights.Submit, "", "", false},
		{rights.Serve, "sam", "sam", false}, {rights.Worker, "sam", "sam", false}, {rights.Pool, "sam", "sam", false},
		{rights.Anonymous, "sam", "sam", false},
	} {
		ctx := access.With(t.Context(), access.Caller{Role: c.role, Name: c.name})
		err := access.Read(ctx, "dataset", "art", protocol.Ownership{Owner: c.owner, Private: true})
		if (err == nil) != c.want || err != nil && (!errors.Is(err, access.ErrPrivate) ||
			!strings.HasSuffix(err.Error(), "coppice dataset share art")) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := access.Read(ctx, "dataset", "art", protocol.Ownership{Owner: c.owner}); err != nil {
			t.Errorf("%+v, of what is shared: %v", c, err)
		}
	}
	if access.Reads(t.Context(), protocol.Ownership{Owner: "sam", Private: true}) {
		t.Error("a request without a caller reads what is private")
	}
}

// TestOwn: only the owner and an admin may change something, and a request without a caller
// may change nothing.
func TestOwn(t *testing.T) {
	for _, c := range []struct {
		role        rights.Role
		name, owner string
		want        bool
	}{
		{rights.Submit, "sam", "sam", true}, {rights.Submit, "sam", "ana", false}, {rights.Submit, "sam", "", false},
		{rights.Submit, "", "", false},
		{rights.Admin, "ana", "sam", true}, {rights.Admin, "", "", true},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		caller := access.Caller{Role: c.role, Name: c.name}
		err := access.Own(access.With(r.Context(), caller), "job 1", c.owner)
		if (err == nil) != c.want || err != nil && !errors.Is(err, access.ErrOwner) {
			t.Errorf("%+v: %v", c, err)
		}
		if nobody := "job 1: it has no owner, so only an admin may change it"; err != nil &&
			(err.Error() == nobody) != (c.owner == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r := httptest.NewRequest("POST", "/", nil)
	if access.Own(r.Context(), "job 1", "") == nil || access.Settled(r.Context()) {
		t.Error("a request without a caller may change something")
	}
	w := httptest.NewRecorder()
	access.Route("GET /v1/jobs", func(http.ResponseWriter, *http.Request) {
		t.Error("a request without a caller is answered")
	})(w, r)
	var p protocol.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 403 {
		t.Errorf("%d %v", w.Code, err)
	}
}

// TestSettled: a request that may change only its caller's own must ask for the owner.
func TestSettled(t *testing.T) {
	for pattern, want := range map[string]bool{"POST /v1/jobs": true, "POST /v1/jobs/{job}/cancel": false} {
		r := httptest.NewRequest("POST", "/", nil)
		r = r.WithContext(access.With(r.Context(), access.Caller{Role: rights.Submit, Name: "sam"}))
		access.Route(pattern, func(_ http.ResponseWriter, r *http.Request) {
			if access.Settled(r.Context()) != want {
				t.Errorf("%s is settled: %v", pattern, !want)
			}
			if err := access.Own(r.Context(), "job 1", "sam"); err != nil || !access.Settled(r.Context()) {
				t.Errorf("%s is not settled by its owner: %v", pattern, err)
			}
		})(httptest.NewRecorder(), r)
	}
}

// FuzzParseToken: what is taken apart is put together again, and the error is the same for all texts.
func FuzzParseToken(f *testing.F) {
	_, _, refused := access.ParseToken("")
	text, _, _ := access.NewToken()
	f.Add(text)
	f.Add("coppice__")
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, err := access.ParseToken(text)
		if err == nil && "coppice_"+id+"_"+secret != text {
			t.Errorf("%q: %q %q", text, id, secret)
		}
		if err != nil && (id != "" || secret != "" || err.Error() != refused.Error()) {
			t.Errorf("%q: %q %q %v", text, id, secret, err)
		}
	})
}

// FuzzForwarded: whatever a coordinator states, the caller is refused or has the role of its
// token.
func FuzzForwarded(f *testing.F) {
	f.Add(`{"role":"admin","name":"ana","from":"h:1"}`)
	f.Add(`{"role":"admin","token":"0123456789abcdef","serial":"ab","from":"h:1"}`)
	known := &registry{tokens: map[string]access.Token{"0123456789abcdef": {Owner: "sam", Role: rights.Read}},
		revoked: "ab"}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := access.Forwarded(text, known)
		if err == nil && (c.Serial == "ab" || c.Token != "" && c.Role != rights.Read) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

// TestNewToken: the hash belongs to the secret.
func TestNewToken(t *testing.T) {
	text, id, hash := access.NewToken()
	got, secret, err := access.ParseToken(text)
	if err != nil || got != id || sha256.Sum256([]byte(secret)) != hash {
		t.Errorf("%s %v", id, err)
	}
	if again, _, _ := access.NewToken(); again == text {
		t.Error("two tokens are the same")
	}
}

// TestHosts: in the clear, a request for a name that a page of another site may have made up is refused.
func TestHosts(t *testing.T) {
	gate := &access.Gate{Hosts: []string{"Coppice.Example.org", "nodes.lan."}}
	for host, want := range map[string]int{
		"127.0.0.1:7100": 200, "127.0.0.1": 200, "[::1]:7100": 200, "[::1]": 200, "10.1.2.3:7100": 200, "localhost:7100": 200,
		"worker1:9100": 200, "": 200,
		"coppice.example.org:7100": 200, "coppice.example.org.": 200, "nodes.lan": 200,
		"evil.example": 421, "evil.example:7100": 421, "127.0.0.1.evil.example": 421, "x.coppice.example.org": 421,
		"localhost.evil.example.": 421, "0x7f.1": 421,
	} {
		r := httptest.NewRequest("GET", "/v1/cluster", nil)
		r.Host = host
		w := httptest.NewRecorder()
		gate.Identify(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })).ServeHTTP(w, r)
		if w.Code != want || want != 200 && !strings.Contains(w.Body.String(), "--allow-host") {
			t.Errorf("%q: %d %s, want %d", host, w.Code, w.Body, want)
		}
	}
}
