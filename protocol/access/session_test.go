package access_test

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// ClusterID implements access.Registry.
func (r *registry) ClusterID() string { return testCluster }

const (
	testCluster = "c0ffee"
	cookieName  = "__Secure-coppice-" + testCluster
)

// paged is a server with a page.
type paged struct {
	*site
	gate  *access.Gate
	known *changing
}

// newPaged serves the login of a page, paths that answer with the caller, and a stream.
func newPaged(t *testing.T) *paged {
	t.Helper()
	p := &paged{site: newSite(t), known: &changing{registry: registry{tokens: make(map[string]access.Token)}}}
	p.gate = &access.Gate{TLS: p.Source(certs.Coordinator, "a"), Prefix: "/p", Origin: "https://example.org",
		Registry: func() access.Registry { return p.known }}
	p.gate.Refused = func(c *access.Caller, request string, reason access.Reason, _ error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refused = append(p.refused, fmt.Sprintf("%s: %s", request, reason))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(access.Of(r.Context()))
	})
	mux.HandleFunc("GET /ui/login", func(w http.ResponseWriter, r *http.Request) {
		if status, err := access.Refusal(r.Context()); err != nil {
			w.WriteHeader(status)
			fmt.Fprintf(w, "login, then %s: %v", r.URL.Query().Get("next"), err)
		}
	})
	mux.HandleFunc("POST /ui/login", func(w http.ResponseWriter, r *http.Request) {
		if err := access.Login(w, r, r.PostFormValue("token")); err != nil {
			status, _ := access.StatusOf(err)
			http.Error(w, err.Error(), status)
		}
	})
	mux.HandleFunc("POST /ui/logout", access.Logout)
	p.address = serve(t, p.gate, mux)
	return p
}

// token makes a token known.
func (p *paged) token(owner string, role rights.Role, life time.Duration) (text, id string) {
	text, id, hash := access.NewToken()
	p.known.change(func(r *registry) {
		token := access.Token{Owner: owner, Role: role, Hash: hash}
		if life != 0 {
			token.Ends = time.Now().Add(life)
		}
		r.tokens[id] = token
	})
	return text, id
}

// login sends a form with a token, and returns the answer.
func (p *paged) login(text string, header ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "POST", "https://"+p.address+"/ui/login",
		strings.NewReader(url.Values{"token": {text}}.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := p.as(nil).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	return response
}

// session logs in and returns the value of the cookie.
func (p *paged) session(text string) string {
	p.t.Helper()
	cookies := p.login(text).Cookies()
	if len(cookies) != 1 {
		p.t.Fatalf("%d cookies", len(cookies))
	}
	return cookies[0].Value
}

// TestSession: a cookie for a token has the caller of the token, on paths of the page and at each server that knows the
// token. Nothing else accepts it, and a header wins.
func TestSession(t *testing.T) {
	p := newPaged(t)
	text, id := p.token("ana", rights.Submit, time.Hour)
	other, _ := p.token("bob", rights.Read, 0)
	response := p.login(text)
	cookies := response.Cookies()
	if response.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("%s, %v", response.Status, cookies)
	}
	c := cookies[0]
	if c.Name != cookieName || c.Path != "/p/ui" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode ||
		c.Domain != "" || c.MaxAge > 3600 || c.MaxAge < 3500 {
		t.Errorf("%+v", c)
	}
	if again := p.session(text); again == c.Value {
		t.Error("two sessions of a token have one cookie")
	}
	if age := p.login(other).Cookies()[0].MaxAge; age > 12*3600 || age < 12*3600-100 {
		t.Errorf("a session lasts %d s", age)
	}
	b, _ := base64.RawURLEncoding.DecodeString(c.Value)
	_, secret, _ := access.ParseToken(text)
	raw, _ := hex.DecodeString(secret)
	if strings.Contains(c.Value, secret) || strings.Contains(string(b), string(raw)) {
		t.Error("the cookie shows the secret")
	}
	second := *p.gate
	elsewhere := serve(t, &second, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(access.Of(r.Context()))
	}))
	cookie := cookieName + "=" + c.Value
	for _, c := range []struct {
		address, path string
		header        []string
		status        int
		body          string
	}{
		{p.address, "/ui", nil, 200, `"role":"submit","name":"ana","token":"` + id}, {p.address, "/ui/x/y", nil, 200, "ana"},
		{elsewhere, "/ui", nil, 200, "ana"}, {p.address, "/v1/jobs", nil, 401, ""}, {p.address, "/metrics", nil, 401, ""},
		{p.address, "/uix", nil, 401, ""}, {p.address, "/", nil, 200, "anonymous"},
		{p.address, "/ui", []string{"Authorization", "Bearer " + other}, 200, "bob"},
		{p.address, "/ui", []string{"Authorization", "Bearer x"}, 401, "not valid"},
		{p.address, "/ui", []string{"Authorization", "Basic eDp5"}, 200, "ana"},
		{p.address, "/v1/jobs", []string{"Authorization", "Basic eDp5"}, 401, "not valid"},
	} {
		p.site.address = c.address
		status, body := p.ask(p.as(nil), "GET", c.path, append([]string{"Cookie", cookie}, c.header...)...)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %v: %d %s", c.path, c.header, status, body)
		}
	}
	if status, body := p.ask(p.as(p.User("eve", "read")), "GET", "/ui", "Cookie", cookie); status != 200 ||
		!strings.Contains(body, "eve") {
		t.Errorf("with a certificate: %d %s", status, body)
	}
	p.known.change(func(r *registry) { delete(r.tokens, id) })
	if status, body := p.ask(p.as(nil), "GET", "/ui", "Cookie", cookie); status != 401 ||
		!strings.Contains(body, "again") {
		t.Errorf("the session of a revoked token: %d %s", status, body)
	}
	if r := p.login(text); r.StatusCode != 401 || len(r.Cookies()) > 0 {
		t.Errorf("a revoked token: %s, %v", r.Status, r.Cookies())
	}
}

// TestForgedSessions: every cookie but the sealed one is refused, each with the same words. An unknown token takes as
// long as a wrong seal.
func TestForgedSessions(t *testing.T) {
	p := newPaged(t)
	text, id := p.token("ana", rights.Admin, 0)
	_, secret, _ := access.ParseToken(text)
	_, otherID := p.token("bob", rights.Read, 0)
	good := p.session(text)
	now := time.Now()
	random := func() string {
		b := make([]byte, 32)
		rand.Read(b)
		return hex.EncodeToString(b)
	}
	forged := map[string]string{
		"empty": "", "short": good[:len(good)-1], "long": good + "A", "huge": strings.Repeat("A", 60<<10),
		"ended":             access.SealSession(id, secret, testCluster, now.Add(-time.Second)),
		"of the epoch":      access.SealSession(id, secret, testCluster, time.Unix(0, 0)),
		"of another":        access.SealSession(id, secret, "decaf", now.Add(time.Hour)),
		"other secret":      access.SealSession(id, random(), testCluster, now.Add(time.Hour)),
		"unknown token":     access.SealSession("0123456789abcdef", secret, testCluster, now.Add(time.Hour)),
		"secret of another": access.SealSession(otherID, secret, testCluster, now.Add(time.Hour)),
		"a token":           text, "other alphabet": strings.Repeat("+/", len(good)/2) + "A",
	}
	stored, _ := p.known.Token(id)
	forged["by a thief of the hash"] = access.ForgeSession(stored.Hash, id, testCluster, now.Add(time.Hour))
	b, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		forged[fmt.Sprint("bit ", bit)] = base64.RawURLEncoding.EncodeToString(b)
		b[bit/8] ^= 1 << (bit % 8)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(letters, good[len(good)-1])
	forged["unused bits"] = good[:len(good)-1] + letters[last^1:][:1]
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer web.CloseIdleConnections()
	send := func(cookies ...string) (int, string) {
		t.Helper()
		return p.ask(web, "GET", "/ui", "Cookie", strings.Join(cookies, "; "))
	}
	if status, body := send(cookieName + "=" + good); status != 200 || !strings.Contains(body, "ana") {
		t.Fatalf("%d %s", status, body)
	}
	for what, value := range forged {
		status, body := send(cookieName + "=" + value)
		if status != 401 || body != "login, then /ui: this login has ended: log in again" {
			t.Errorf("%s: %d %.200s", what, status, body)
		}
	}
	for what, cookies := range map[string][]string{"twice": {cookieName + "=" + good, cookieName + "=" + good},
		"with a planted one": {cookieName + "=" + forged["short"], cookieName + "=" + good}} {
		if status, body := send(cookies...); status != 401 || !strings.Contains(body, "several cookies") {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	for _, name := range []string{"coppice-" + testCluster, "__Secure-coppice-decaf", "__Secure-coppice-"} {
		if status, body := send(name + "=" + good); status != 401 || strings.Contains(body, "again") {
			t.Errorf("the cookie %s: %d %s", name, status, body)
		}
	}
	for _, what := range []string{"unknown token", "other secret", "bit 200"} {
		before := p.known.waits.Load()
		if send(cookieName + "=" + forged[what]); p.known.waits.Load() != before+1 {
			t.Errorf("%s: %d waits", what, p.known.waits.Load()-before)
		}
	}
}

// TestLoginPage: a browser without a caller gets the login for each path of the page, and programs get an error as
// before. Nothing else of another site reaches the login.
func TestLoginPage(t *testing.T) {
	p := newPaged(t)
	text, _ := p.token("ana", rights.Submit, 0)
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		body, at     string
	}{
		{"GET", "/ui/jobs/7?x=%2F&y=1", nil, 401, "login, then /ui/jobs/7?x=%2F&y=1: ", ""},
		{"GET", "/ui/live/jobs", nil, 401, "login, then", ""}, {"HEAD", "/ui", nil, 401, "", ""},
		{"POST", "/ui/jobs/7/cancel", nil, 303, "", "/p/ui/login"}, {"DELETE", "/ui/x", nil, 303, "", "/p/ui/login"},
		{"GET", "/ui/static/1/page.css", nil, 200, "anonymous", ""}, {"GET", "/ui/login", nil, 200, "", ""},
		{"GET", "/ui/static", nil, 401, "login", ""}, {"GET", "/ui/login/x", nil, 401, "login", ""},
		{"GET", "/v1/jobs", nil, 401, `{"error":`, ""}, {"POST", "/", nil, 401, `{"error":`, ""},
		{"POST", "/ui/jobs/7/cancel", []string{"Sec-Fetch-Site", "cross-site"}, 403, "login, then : a page of another", ""},
		{"POST", "/ui/login", []string{"Sec-Fetch-Site", "same-site"}, 403, "another site", ""},
		{"POST", "/ui/logout", []string{"Origin", "https://evil.example"}, 403, "another site", ""},
		{"POST", "/ui/logout", []string{"Origin", "null"}, 403, "another site", ""},
		{"POST", "/ui/logout", []string{"Origin", "https://example.org"}, 200, "", ""},
		{"POST", "/ui/logout", []string{"Sec-Fetch-Site", "same-origin"}, 200, "", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://"+p.address+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		web := p.as(nil)
		web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || !strings.Contains(string(body), c.body) ||
			response.Header.Get("Location") != c.at {
			t.Errorf("%s %s %v: %s, %s, %s", c.method, c.path, c.header, response.Status, response.Header.Get("Location"), body)
		}
		if csp := response.Header.Get("Content-Security-Policy"); (csp != "") == strings.HasPrefix(c.path, "/v1") {
			t.Errorf("%s %s: the policy is %q", c.method, c.path, csp)
		}
		for _, cookie := range response.Cookies() {
			if c.path != "/ui/logout" || cookie.MaxAge >= 0 || cookie.Value != "" {
				t.Errorf("%s %s: %+v", c.method, c.path, cookie)
			}
		}
	}
	if r := p.login(text, "Sec-Fetch-Site", "cross-site"); r.StatusCode != 403 || len(r.Cookies()) > 0 {
		t.Errorf("another site logs a browser in: %s, %v", r.Status, r.Cookies())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.refused, func(text string) bool { return strings.HasPrefix(text, "GET /ui") }) {
		t.Errorf("a visit without a login counts as refused: %v", p.refused)
	}
}

// TestFailedLogins: a login with a wrong token is counted as a refusal.
func TestFailedLogins(t *testing.T) {
	p := newPaged(t)
	wrong, _, _ := access.NewToken()
	for _, text := range []string{wrong, "", "x", strings.Repeat("x", 1<<20)} {
		if r := p.login(text); r.StatusCode != 401 || len(r.Cookies()) > 0 {
			t.Errorf("%.20q: %s, %v", text, r.Status, r.Cookies())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := slices.Repeat([]string{"POST /ui/login: token"}, 4); !slices.Equal(p.refused, want) {
		t.Errorf("%q", p.refused)
	}
}

// TestSessionsEnd: a request ends within a second after the token of its session was revoked, and at the end of the
// session.
func TestSessionsEnd(t *testing.T) {
	p := newPaged(t)
	ends := make(chan string, 9)
	begun := make(chan struct{}, 9)
	gate := *p.gate
	p.address = serve(t, &gate, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ends <- access.Of(r.Context()).Name
	}))
	var revoked string
	for owner, long := range map[string]time.Duration{"revoked": time.Hour, "ended": 5 * time.Second,
		"valid": time.Hour} {
		text, id := p.token(owner, rights.Read, 0)
		if owner == "revoked" {
			revoked = id
		}
		_, secret, _ := access.ParseToken(text)
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+p.address+"/ui/live/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: cookieName, Value: access.SealSession(id, secret, testCluster, time.Now().Add(long))})
		go func() {
			for t.Context().Err() == nil { // on a busy machine, a handshake may take too long
				if response, err := p.as(nil).Do(r); err == nil {
					response.Body.Close()
					return
				}
			}
		}()
	}
	for range 3 {
		testkit.Receive(t, "a request", begun)
	}
	p.known.change(func(r *registry) { delete(r.tokens, revoked) })
	if who := testkit.Receive(t, "the end of a request", ends); who != "revoked" {
		t.Errorf("%s ended first", who)
	}
	if who := testkit.Receive(t, "the end of a request", ends); who != "ended" {
		t.Errorf("%s ended", who)
	}
	select {
	case who := <-ends:
		t.Errorf("%s ended", who)
	default:
	}
}

// TestSessionThroughProxy: behind a proxy, a cookie counts as a token does. The user whom the proxy names comes first.
func TestSessionThroughProxy(t *testing.T) {
	p := newPaged(t)
	text, _ := p.token("ana", rights.Submit, 0)
	edge := p.as(p.Source(certs.Proxy, "edge"))
	cookie := cookieName + "=" + p.session(text)
	const named = `{"role":"read","name":"bob","from":"192.0.2.7:1"}`
	for _, c := range []struct {
		path   string
		header []string
		status int
		body   string
	}{
		{"/ui", nil, 401, "login, then /ui"}, {"/ui/login", nil, 200, ""}, {"/ui/static/1/x", nil, 200, `"via":"edge"`},
		{"/ui", []string{"Cookie", cookie}, 200, `"name":"ana"`},
		{"/v1/jobs", []string{"Cookie", cookie}, 403, "names no user"},
		{"/ui", []string{"Coppice-Caller", named}, 200, `"name":"bob"`},
		{"/ui", []string{"Coppice-Caller", named, "Cookie", cookie}, 200, `"name":"bob"`},
		{"/ui", []string{"Coppice-Caller", named, "Authorization", "Bearer " + text}, 403, "two users"},
	} {
		if status, body := p.ask(edge, "GET", c.path, c.header...); status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %v: %d %s", c.path, c.header, status, body)
		}
	}
}

// TestForwardedWithoutCookie: a request that a coordinator forwards has the caller, and no cookie.
func TestForwardedWithoutCookie(t *testing.T) {
	out := httptest.NewRequest("GET", "/v1/jobs", nil)
	out.Header.Set("Cookie", "a=b")
	access.Forward(out, access.With(t.Context(), access.Caller{Role: rights.Read, Name: "ana", Token: "x"}))
	if out.Header.Get("Cookie") != "" || !strings.Contains(out.Header.Get("Coppice-Caller"), "ana") {
		t.Errorf("%v", out.Header)
	}
}

// TestNestedRights: a request for the page makes requests of the API, also at the same time. Each of them has its own
// right, and what one of them settles is not settled for another.
func TestNestedRights(t *testing.T) {
	settled := make(map[string]bool)
	inner := func(pattern, owner string) http.HandlerFunc {
		return access.Route(pattern, func(_ http.ResponseWriter, r *http.Request) {
			_ = access.Own(r.Context(), "job 1", owner) // the error is what Settled tells
			settled[owner] = access.Settled(r.Context())
		})
	}
	access.Route("POST /ui/{action...}", func(w http.ResponseWriter, r *http.Request) {
		inner("POST /v1/jobs/{job}/cancel", "sam")(w, r)
		inner("POST /v1/jobs/{job}/cancel", "eve")(w, r)
		inner("POST /v1/members", "admin")(w, r)
		settled["page"] = access.Settled(r.Context())
	})(httptest.NewRecorder(), httptest.NewRequest("POST", "/ui/x", nil).WithContext(access.With(t.Context(),
		access.Caller{Role: rights.Submit, Name: "sam"})))
	if _, called := settled["admin"]; !settled["sam"] || settled["eve"] || called {
		t.Errorf("%v", settled)
	}
}

// FuzzSession: whatever a browser sends as a cookie, it is the sealed value or refused.
func FuzzSession(f *testing.F) {
	text, id, hash := access.NewToken()
	_, secret, _ := access.ParseToken(text)
	known := &registry{tokens: map[string]access.Token{id: {Owner: "ana", Role: rights.Admin, Hash: hash}}}
	good := access.SealSession(id, secret, testCluster, time.Now().Add(time.Hour))
	f.Add(good)
	f.Add(good[:50])
	f.Add(access.SealSession(id, secret, "decaf", time.Now().Add(time.Hour)))
	f.Add(access.SealSession("0123456789abcdef", secret, testCluster, time.Now().Add(time.Hour)))
	f.Fuzz(func(t *testing.T, value string) {
		if token, ok := access.OpenSession(value, known); ok && value != good || ok && token != id || !ok && value == good {
			t.Errorf("%q: %q %v", value, token, ok)
		}
	})
}
