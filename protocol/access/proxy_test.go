package access_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestProxy: a proxy names users with at most the role submit, or passes on their tokens. It makes no request of its
// own, and no text of a client gets another name or role.
func TestProxy(t *testing.T) {
	s := newSite(t)
	text, id, hash := access.NewToken()
	s.known.tokens[id] = access.Token{Owner: "ana", Role: rights.Admin, Hash: hash}
	s.known.revoked = "abc"
	edge := s.Source(certs.Proxy, "edge")
	proxy := s.as(edge)
	const header = "Coppice-Caller"
	named := []string{header, `{"role":"submit","name":"ana","from":"192.0.2.7:1"}`}
	for _, c := range []struct {
		name   string
		header []string
		status int
		body   string
	}{
		{"a user", named, 200, `{"role":"submit","name":"ana","via":"edge","from":"192.0.2.7:1"}`},
		{"without an address", []string{header, `{"role":"read","name":"ana"}`}, 200, `"from":"127.0.0.1:`},
		{"a certificate", []string{header, `{"role":"read","name":"ana","serial":"0ABD"}`}, 200, `"serial":"abd"`},
		{"a revoked certificate", []string{header, `{"role":"read","name":"ana","serial":"00ABC"}`}, 403, "revoked"},
		{"a token", []string{"Authorization", "Bearer " + text}, 200, `{"role":"admin","name":"ana","token":"` + id +
			`","via":"edge"`},
		{"an unknown token", []string{"Authorization", "Bearer x"}, 401, "token"},
		{"nobody", nil, 403, "names no user"},
		{"a password", []string{"Authorization", "Basic YTpi"}, 403, "names no user"},
		{"both", append([]string{"Authorization", "Bearer " + text}, named...), 403, "two users"},
		{"an admin", []string{header, `{"role":"admin","name":"ana"}`}, 403, "read or submit only"},
		{"a coordinator", []string{header, `{"role":"coordinator","name":"a"}`}, 403, "want one of"},
		{"no role", []string{header, `{"name":"ana"}`}, 403, "want one of"},
		{"no name", []string{header, `{"role":"read"}`}, 403, "name"},
		{"a bad name", []string{header, `{"role":"read","name":"a/b"}`}, 403, "name"},
		{"the name of nobody", []string{header, `{"role":"read","name":"-"}`}, 403, "unknown caller"},
		{"a name twice", []string{header, `{"role":"submit","name":"x","name":"ana"}`}, 403, "twice"},
		{"a name in capitals", []string{header, `{"role":"submit","name":"x","Name":"ana"}`}, 403, `"Name" is unknown`},
		{"the id of a token", []string{header, `{"role":"read","name":"x","token":"` + id + `"}`}, 403, `"token" is unknown`},
		{"another proxy", []string{header, `{"role":"read","name":"x","via":"y"}`}, 403, `"via" is unknown`},
		{"a bad serial number", []string{header, `{"role":"read","name":"x","serial":"xyz"}`}, 403, "hexadecimal"},
		{"no JSON", []string{header, `ana`}, 403, "want an object"},
		{"a number", []string{header, `{"role":"read","name":1}`}, 403, "want an object"},
		{"a list", []string{header, `[]`}, 403, "want an object"},
		{"half an object", []string{header, `{"role":"read","name":"x"`}, 403, "want an object"},
		{"two objects", []string{header, `{"role":"read","name":"x"} {}`}, 403, "want an object"},
	} {
		if status, body := s.ask(proxy, "GET", "/who", c.header...); status != c.status ||
			!strings.Contains(strings.ReplaceAll(body, `\"`, `"`), c.body) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	if status, body := s.ask(proxy, "GET", "/v1/backup", named...); status != 403 ||
		!strings.Contains(body, "role admin") {
		t.Errorf("a request of admins: %d %s", status, body)
	}
	if status, _ := s.ask(proxy, "GET", "/readyz"); status != 200 {
		t.Errorf("a request that is open to everybody: %d", status)
	}
	s.known.revoked = certs.Serial(edge.Own())
	if status, body := s.ask(s.as(edge), "GET", "/who", named...); status != 403 ||
		!strings.Contains(body, "certificate of the proxy") {
		t.Errorf("a revoked proxy: %d %s", status, body)
	}
}

// TestRepeatedCaller: a request with two headers, one of a client and one of its proxy, is refused.
func TestRepeatedCaller(t *testing.T) {
	s := newSite(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.address+"/who", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Coppice-Caller"] = []string{`{"role":"submit","name":"eve"}`, `{"role":"submit","name":"ana"}`}
	response, err := s.as(s.Source(certs.Proxy, "edge")).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if b, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 403 ||
		!strings.Contains(string(b), "2 times") {
		t.Errorf("%d %s %v", response.StatusCode, b, err)
	}
}

// TestRevokedProxy: a request under way ends if the certificate of its proxy is revoked.
func TestRevokedProxy(t *testing.T) {
	s := newSite(t)
	known, edge := new(changing), s.Source(certs.Proxy, "edge")
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	gate := &access.Gate{TLS: s.Source(certs.Coordinator, "a"), Registry: func() access.Registry { return known }}
	s.address = serve(t, gate, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Coppice-Caller", `{"role":"read","name":"ana"}`)
	go func() {
		if response, err := s.as(edge).Do(r); err == nil {
			response.Body.Close()
		}
	}()
	testkit.Receive(t, "a request", begun)
	known.change(func(r *registry) { r.revoked = certs.Serial(edge.Own()) })
	testkit.Receive(t, "the end of the request", ended)
}
