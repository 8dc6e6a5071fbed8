package coordinator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// visitor is a browser: it sends its cookies with each request, and follows no redirects.
type visitor struct {
	t       *testing.T
	web     *http.Client
	cookies []*http.Cookie
}

func visit(t *testing.T, web *http.Client) *visitor {
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{t: t, web: web}
}

// open sends a request. form is nil for a visit.
func (v *visitor) open(ctx context.Context, method, address string, form url.Values, header ...string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := v.web.Do(r)
	if err != nil {
		v.t.Fatalf("%s %.200s: %v", method, address, err)
	}
	return response
}

// ask sends a request, and returns the answer and its text.
func (v *visitor) ask(ctx context.Context, method, address string, form url.Values,
	header ...string) (*http.Response, string) {
	v.t.Helper()
	response := v.open(ctx, method, address, form, header...)
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		v.t.Fatalf("%s %.200s: %v", method, address, err)
	}
	return response, string(b)
}

// login exchanges a token for a cookie, and returns where the browser goes.
func (v *visitor) login(ctx context.Context, address, text, next string) string {
	v.t.Helper()
	var response *http.Response
	var body string
	testkit.Until(v.t, "the coordinator to know the token", func() bool { // a follower may lag
		response, body = v.ask(ctx, "POST", address+"/ui/login", url.Values{"token": {text}, "next": {next}})
		return response.StatusCode != http.StatusUnauthorized
	})
	if v.cookies = response.Cookies(); response.StatusCode != http.StatusSeeOther || len(v.cookies) != 1 {
		v.t.Fatalf("login: %s, %v, %s", response.Status, v.cookies, body)
	}
	return response.Header.Get("Location")
}

// protections are the headers of each answer about the page.
var protections = map[string]string{
	"Content-Security-Policy": "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
		"object-src 'none'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	"Cache-Control": "no-store",
}

// protected checks the headers of an answer about the page.
func protected(t *testing.T, what string, r *http.Response) {
	t.Helper()
	for name, want := range protections {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s is %q", what, name, got)
		}
	}
}

// startPage starts coordinators with TLS that have a job without workers.
func startPage(ctx context.Context, t *testing.T, coordinators int) *secured {
	t.Helper()
	s := secure(t, coordinators)
	s.startAll(0)
	s.leader(ctx)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Jobs().Submit(ctx, submission("first")); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPageSessions: a browser that has logged in at one coordinator uses the page of each, with the rights of its
// token, and nothing else. Revoking the token ends its live pages within a second.
func TestPageSessions(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := startPage(ctx, t, 3)
	text, made := s.token(ctx, protocol.TokenRequest{Role: "submit", Owner: "ana"})
	v := visit(t, browser(t, ""))
	for i := range s.peers {
		response, body := v.ask(ctx, "GET", "https://"+s.port(i, 0)+"/ui/jobs/first", nil)
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(body, `name="token"`) ||
			!strings.Contains(body, `value="/ui/jobs/first"`) || strings.Contains(body, "ldlf") {
			t.Errorf("without a login: %s %s", response.Status, body)
		}
		protected(t, "the login", response)
	}
	if to := v.login(ctx, "https://"+s.port(1, 0), text, "/ui/jobs/first"); to != "/ui/jobs/first" {
		t.Errorf("the login leads to %s", to)
	}
	info, err := s.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c := v.cookies[0]; c.Name != "__Secure-coppice-"+info.ID || c.Path != "/ui" || !c.Secure || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	var streams []*bufio.Reader
	for i := range s.peers {
		at := "https://" + s.port(i, 0)
		response, body := v.ask(ctx, "GET", at+"/ui/jobs", nil)
		if response.StatusCode != http.StatusOK || !strings.Contains(body, "first") ||
			!strings.Contains(body, "ana (submit)") {
			t.Errorf("at %d: %s %s", i, response.Status, body)
		}
		protected(t, "a view", response)
		for _, path := range []string{"/v1/jobs", "/v1/self", "/metrics", "/v1/jobs/first/changes"} {
			if response, body := v.ask(ctx, "GET", at+path, nil); response.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with a cookie: %s %s", path, response.Status, body)
			}
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
			{"Origin", "https://evil.example"}, {"Origin", "null"}} {
			response, body := v.ask(ctx, "POST", at+"/ui/jobs/first/pause", url.Values{}, header...)
			if response.StatusCode != http.StatusForbidden || !strings.Contains(body, "another site") {
				t.Errorf("%v: %s %s", header, response.Status, body)
			}
		}
		live := v.open(ctx, "GET", at+"/ui/live/jobs", nil)
		defer live.Body.Close()
		streams = append(streams, bufio.NewReader(live.Body))
		if line, err := streams[i].ReadString('\n'); err != nil || live.StatusCode != http.StatusOK {
			t.Fatalf("%s %q %v", live.Status, line, err)
		}
	}
	if j, err := s.client.Jobs().Get(ctx, "first"); err != nil || j.State.Final() || j.State == protocol.Paused {
		t.Errorf("another site has changed the job: %+v, %v", j, err)
	}
	for i, change := range []string{"pause", "resume", "cancel"} {
		response, body := v.ask(ctx, "POST", "https://"+s.port(i, 0)+"/ui/jobs/first/"+change, url.Values{},
			"Sec-Fetch-Site", "same-origin")
		if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/ui/jobs/first" {
			t.Errorf("%s: %s %s", change, response.Status, body)
		}
	}
	records, err := s.client.Audit(ctx, protocol.AuditQuery{Caller: "ana"})
	if j, gone := s.client.Jobs().Get(ctx, "first"); err != nil || gone != nil || j.State != protocol.Cancelled ||
		!slices.ContainsFunc(records, func(r protocol.AuditRecord) bool {
			return strings.HasPrefix(r.Request, "POST /v1/jobs/first/cancel") && r.Token == made.ID
		}) {
		t.Errorf("%+v, %v, %v; %+v", j, gone, err, records)
	}
	if response, _ := v.ask(ctx, "POST", "https://"+s.at(0)+"/ui/logout", url.Values{}); len(response.Cookies()) != 1 ||
		response.Cookies()[0].MaxAge >= 0 || response.Cookies()[0].Name != v.cookies[0].Name {
		t.Errorf("logout: %v", response.Cookies())
	}
	if _, err := s.client.Tokens().Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i, stream := range streams {
		_, _ = io.Copy(io.Discard, stream) // an error: the answer is not complete
		if took := time.Since(began); took > cutWithin*testkit.Slowdown {
			t.Errorf("the live page at %d ended after %v", i, took)
		}
	}
	for i := range s.peers {
		response, body := v.ask(ctx, "GET", "https://"+s.port(i, 0)+"/ui/jobs", nil)
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "log in again") ||
			strings.Contains(body, "first") {
			t.Errorf("after the revocation: %s %s", response.Status, body)
		}
	}
}

// TestPageInClear: without TLS there is no login. A page of another site reaches neither the page through a name of its
// own, nor changes something. Links have the path of the public URL.
func TestPageInClear(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 1)
	c.tune = func(cfg *coordinator.Config) { cfg.PublicURL = "https://coppice.example.org/c" }
	c.startAll(0)
	c.leader(ctx)
	v := visit(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	at := fmt.Sprintf("http://127.0.0.1:%d", c.peers[0].Port)
	for _, one := range []struct {
		method, path string
		header       []string
		status       int
		to, body     string
	}{
		{"GET", "/", nil, 303, "/c/ui", ""}, {"GET", "/c", nil, 303, "/c/ui", ""}, {"GET", "/c/", nil, 303, "/c/ui", ""},
		{"GET", "/ui", nil, 200, "", `href="/c/ui/jobs"`}, {"GET", "/c/ui/", nil, 200, "", `href="/c/ui/jobs"`},
		{"GET", "/ui/login", nil, 303, "/c/ui", ""}, {"GET", "/ui/login?next=/ui/jobs", nil, 303, "/c/ui/jobs", ""},
		{"POST", "/ui/login", nil, 400, "", "no login"}, {"POST", "/ui/logout", nil, 303, "/c/ui/login", ""},
		{"GET", "/ui", []string{"Host", "coppice.example.org"}, 200, "", "Jobs"},
		{"GET", "/ui", []string{"Host", "evil.example"}, 421, "", "--allow-host"},
		{"GET", "/", []string{"Host", "evil.example:7100"}, 421, "", ""},
		{"GET", "/ui/live/jobs", []string{"Host", "evil.example"}, 421, "", ""},
		{"GET", "/ui/static/x/page.css", []string{"Host", "127.0.0.1.evil.example"}, 421, "", ""},
		{"POST", "/ui/jobs/1/cancel", []string{"Host", "evil.example", "Origin", "http://evil.example"}, 421, "", ""},
		{"POST", "/ui/jobs/1/cancel", []string{"Sec-Fetch-Site", "cross-site"}, 403, "", "another site"},
		{"POST", "/ui/jobs/1/cancel", []string{"Origin", "http://localhost:3000"}, 403, "", "another site"},
		{"POST", "/ui/jobs/1/cancel", []string{"Origin", at}, 404, "", "job"},
		{"POST", "/ui/jobs/1/cancel", []string{"Origin", "https://coppice.example.org"}, 404, "", "job"},
		{"POST", "/ui/jobs/1/cancel", []string{"Origin", "https://coppice.example.org:8443"}, 403, "", "another site"},
	} {
		form := url.Values(nil)
		if one.method == "POST" {
			form = url.Values{"token": {"x"}}
		}
		response, body := v.ask(ctx, one.method, at+one.path, form, one.header...)
		if response.StatusCode != one.status || response.Header.Get("Location") != one.to ||
			!strings.Contains(body, one.body) || len(response.Cookies()) > 0 && !strings.Contains(one.path, "logout") {
			t.Errorf("%s %s %v: %s %s %s", one.method, one.path, one.header, response.Status, response.Header.Get("Location"),
				body)
		}
		protected(t, one.path, response)
	}
	info, err := c.client.Cluster(ctx)
	if err != nil || info.PublicURL != "https://coppice.example.org/c" {
		t.Errorf("the public URL is %q, %v", info.PublicURL, err)
	}
}

// TestPageAttacks: with the session of a reader, no path of the page leads to something else, and no request is an
// internal error. What is too large or too slow is refused.
func TestPageAttacks(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := startPage(ctx, t, 1)
	at := "https://" + s.at(0)
	text, _ := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	v := visit(t, browser(t, ""))
	v.login(ctx, at, text, "")
	for _, path := range []string{
		"/ui/../v1/backup", "/ui/%2e%2e/v1/backup", "/ui/..%2fv1%2fbackup", "/ui/jobs/..", "/ui/jobs/%2e%2e",
		"/ui/jobs/%2e%2e%2f%2e%2e%2fv1%2fbackup", "/ui/jobs/..%2f..%2fbackup", "/ui/jobs/%2e", "/ui/jobs/%2f",
		"/ui/jobs/first%2fchanges", "/ui/jobs/first%3fx=1", "/ui/jobs/%00", "/ui/jobs/%0d%0aSet-Cookie:%20a=b",
		"/ui/jobs/%ff%fe", "/ui/jobs/%3Cimg%20src=x%20onerror=alert(1)%3E", "/ui/static/../../../etc/passwd",
		"/ui/static/x/..%2f..%2flogin.html", "/ui/static/..%2f/page.css", "/ui/static", "/ui/static/x", "/ui/live",
		"/ui/live/../../v1/backup", "/ui/live/login", "/ui/download/models/..%2f..%2fv1%2fbackup",
		"/ui/download/models/%2e%2e/backup", "/ui/download/models/x%0d%0ay", "/ui/download",
		"/ui/" + strings.Repeat("x", 60000),
		"/ui/" + strings.Repeat("x/", 20000), "/ui/jobs?state=" + strings.Repeat("%00", 1000), "/ui/jobs?name=%ff&limit=-1",
		"/ui/jobs?limit=99999999999999999999", "/ui/jobs?after=%2e%2e", "/ui/login?next=%ff", "/ui/ui/ui", "/ui/v1/backup",
		"/UI", "/ui;/jobs", "/ui/jobs;x=1", "//evil.example/ui", "/ui//evil.example",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"} {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			response := v.open(ctx, method, at+path, nil)
			b, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // a live page does not end
			response.Body.Close()
			cancel()
			to := response.Header.Get("Location")
			away := to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//"))
			leaks := strings.Contains(string(b), "manifest") || strings.Contains(string(b), "<img src=x")
			if response.StatusCode >= 500 || leaks || away || response.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s %.80s: %s, location %q, %.300q", method, path, response.Status, to, b)
			}
		}
	}
	for what, header := range map[string][]string{"long": {"X-Long", strings.Repeat("x", 70<<10)},
		"long cookie": {"Cookie", "a=" + strings.Repeat("x", 70<<10)}} {
		if response, _ := v.ask(ctx, "GET", at+"/ui", nil, header...); response.StatusCode != 431 {
			t.Errorf("a %s header: %s", what, response.Status)
		}
	}
	for path, want := range map[string]int{"/ui/login": 413, "/ui/jobs/first/cancel": 400} {
		r, err := http.NewRequestWithContext(ctx, "POST", at+path, strings.NewReader("token="+strings.Repeat("x", 17<<20)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(v.cookies[0])
		if response, err := v.web.Do(r); err == nil { // else the server has closed the connection before all was sent
			response.Body.Close()
			if response.StatusCode != want || len(response.Cookies()) > 0 {
				t.Errorf("a large form for %s: %s", path, response.Status)
			}
		}
	}
	s.redirects(ctx, v, text)
	s.slowLogin()
}

// redirects checks where a login leads: to a view of the page, whatever a link says.
func (s *secured) redirects(ctx context.Context, v *visitor, text string) {
	for next, want := range map[string]string{
		"/ui/jobs?state=done&sort=-submitted": "/ui/jobs?sort=-submitted&state=done", "/ui/jobs/a%2Fb": "/ui/jobs/a%2Fb",
		"": "/ui", "/": "/ui", "/ui": "/ui", "/v1/backup": "/ui", "//evil.example": "/ui", "///evil.example": "/ui",
		`/\evil.example`: "/ui", `\\evil.example`: "/ui", "https://evil.example/ui/x": "/ui", "//evil.example/ui/x": "/ui",
		"javascript:alert(1)": "/ui", "/ui/../..//evil.example": "/ui", "/ui/..%2f..%2f%2fevil.example": "/ui",
		"/ui/%2e%2e//evil.example": "/ui", `/ui/\evil.example`: "/ui", "/ui/x\r\nSet-Cookie: a=b": "/ui", "/ui/x\t": "/ui",
		" /ui/x": "/ui", "/ui/login": "/ui", "/ui/logout": "/ui", "/ui/live/jobs": "/ui", "/ui/static/x/page.js": "/ui",
		"/uix/jobs": "/ui", "/ui@evil.example": "/ui", "/ui/x#y": "/ui", "/ui//evil.example": "/ui",
		"/ui/" + strings.Repeat("x", 3000): "/ui", "%2f%2fevil.example": "/ui", "ui/jobs": "/ui", "?x=/ui/jobs": "/ui",
	} {
		if to := v.login(ctx, "https://"+s.at(0), text, next); to != want {
			s.t.Errorf("the login for %.80q leads to %q", next, to)
		}
	}
}

// slowLogin sends two forms: the first never ends, and the second comes byte by byte. The server ends the connection.
func (s *secured) slowLogin() {
	s.t.Helper()
	c, err := tls.Dial("tcp", s.at(0), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /ui/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\nContent-Type: "+
		"application/x-www-form-urlencoded\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	defer func() { <-done }()
	ended := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	defer close(ended)
	if err := c.SetReadDeadline(time.Now().Add(testkit.Limit)); err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if waits := (net.Error)(nil); errors.As(err, &waits) && waits.Timeout() || strings.HasPrefix(string(b), "HTTP/1.1 5") {
		s.t.Errorf("a form that comes slowly: %v, %.200s", err, b)
	}
}

// TestFailedLoginsInAudit: however many logins fail, the changes stay in the audit records, and the failures are
// counted together.
func TestFailedLoginsInAudit(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := startPage(ctx, t, 1)
	v := visit(t, browser(t, ""))
	v.web.Transport.(*http.Transport).DisableKeepAlives = false
	defer v.web.CloseIdleConnections()
	const tries = 200
	began := time.Now()
	for range tries {
		text, _, _ := access.NewToken()
		if response, _ := v.ask(ctx, "POST", "https://"+s.at(0)+"/ui/login",
			url.Values{"token": {text}}); response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) > 0 {
			t.Fatalf("%s", response.Status)
		}
	}
	testkit.Until(t, "the refusals", func() bool {
		records, err := s.client.Audit(ctx, protocol.AuditQuery{Limit: 10000})
		if err != nil {
			t.Fatal(err)
		}
		var failed, changes uint64
		most := 0
		for _, r := range records {
			if strings.HasPrefix(r.Refused, "token:") && r.Request == "POST /ui/login" {
				failed += r.Count
				most++
			}
			if r.Refused == "" && strings.HasPrefix(r.Request, "POST /v1/jobs") {
				changes++
			}
		}
		if periods := int(time.Since(began)/(300*time.Millisecond)) + 2; most > 17*periods || changes != 1 {
			t.Fatalf("%d records in %d periods, %d changes", most, periods, changes)
		}
		return failed == tries
	})
}

// TestPageThroughProxy: through a proxy that ends TLS, a browser logs in with a token, and links have the path of the
// public URL. The audit records name the proxy.
func TestPageThroughProxy(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 1)
	tune := s.tune
	s.tune = func(c *coordinator.Config) {
		tune(c)
		c.PublicURL = "https://coppice.example.org/c"
	}
	s.startAll(0)
	s.leader(ctx)
	text, _ := s.token(ctx, protocol.TokenRequest{Role: "admin", Owner: "ana"})
	edge := s.authority.Source(certs.Proxy, "edge")
	v := visit(t, browser(t, ""))
	at := "https://" + s.proxy(edge, 0, "") + "/c"
	if response, body := v.ask(ctx, "GET", at+"/ui/jobs", nil); response.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(body, `action="/c/ui/login"`) {
		t.Errorf("%s %s", response.Status, body)
	}
	if to := v.login(ctx, at, text, "/ui/jobs"); to != "/c/ui/jobs" || v.cookies[0].Path != "/c/ui" {
		t.Errorf("%s %+v", to, v.cookies)
	}
	if response, body := v.ask(ctx, "GET", at+"/ui/jobs", nil); response.StatusCode != http.StatusOK ||
		!strings.Contains(body, "ana (admin)") {
		t.Errorf("%s %s", response.Status, body)
	}
	if response, _ := v.ask(ctx, "GET", at+"/v1/jobs", nil); response.StatusCode != http.StatusForbidden {
		t.Errorf("the API with a cookie: %s", response.Status)
	}
	forged := `{"role":"admin","name":"eve","from":"h:1"}`
	if response, body := visit(t, browser(t, "")).ask(ctx, "GET", "https://"+s.at(0)+"/ui", nil, "Coppice-Caller",
		forged); response.StatusCode != http.StatusUnauthorized || strings.Contains(body, "eve") {
		t.Errorf("a browser names itself: %s %s", response.Status, body)
	}
	response, body := v.ask(ctx, "POST", at+"/ui/jobs/7/cancel", url.Values{}, "Origin", "https://coppice.example.org")
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", response.Status, body)
	}
	named := visit(t, browser(t, ""))
	at = "https://" + s.proxy(edge, 0, `{"role":"submit","name":"bob","from":"192.0.2.7:1"}`) + "/c"
	if response, body := named.ask(ctx, "GET", at+"/ui/jobs", nil); response.StatusCode != http.StatusOK ||
		!strings.Contains(body, "bob (submit)") {
		t.Errorf("%s %s", response.Status, body)
	}
}

// TestPageOfOthers: on the page, nobody reads or changes what is private to another user.
func TestPageOfOthers(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	p := startPrivate(ctx, t)
	for i := range p.peers {
		at := "https://" + p.port(i, 0)
		for who, allowed := range map[string]bool{"sam": true, "root": true, "eve": false, "rita": false} {
			role := map[string]string{"rita": "read", "root": "admin"}[who]
			if role == "" {
				role = "submit"
			}
			text, _ := p.token(ctx, protocol.TokenRequest{Role: role, Owner: who})
			v := visit(t, browser(t, ""))
			v.login(ctx, at, text, "")
			for _, path := range []string{"/ui/download/models/forest",
				"/ui/download/models/" + p.study.Name + "/" + p.study.Models[0].Digest} {
				want := http.StatusForbidden
				if allowed {
					want = http.StatusOK
				}
				if response, body := v.ask(ctx, "GET", at+path, nil); response.StatusCode != want {
					t.Errorf("%s %s: %s %.200s", who, path, response.Status, body)
				}
			}
			if response, body := v.ask(ctx, "POST", at+"/ui/jobs/forest/cancel", url.Values{}); !allowed &&
				response.StatusCode != http.StatusForbidden {
				t.Errorf("%s cancels: %s %.200s", who, response.Status, body)
			}
		}
	}
}
