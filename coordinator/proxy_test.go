package coordinator_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestProxy: users reach a cluster through a proxy with a certificate, with tokens or as the proxy names them. The
// audit records name the proxy, whichever coordinator it asks.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := secure(t, 3)
	s.startAll(0)
	ctx := deadline(t)
	s.leader(ctx)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art", Shared: true},
		generate.Artificial(600, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	text, token := s.token(ctx, protocol.TokenRequest{Owner: "tom", Role: "submit"})
	edge := s.authority.Source(certs.Proxy, "edge")
	want := make(map[string]protocol.AuditRecord)
	for i := range s.peers {
		c, err := client.NewWithToken(s.proxy(edge, i, ""), s.trust(), text)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		name := fmt.Sprint("token", i)
		if j, err := c.Jobs().Submit(ctx, submission(name)); err != nil || j.Owner != "tom" {
			t.Errorf("%s: %+v %v", name, j, err)
		}
		want[name] = protocol.AuditRecord{Caller: "tom", Token: token.ID, Via: "edge"}
		named := s.proxy(edge, i, `{"role":"submit","name":"ana","from":"192.0.2.7:1"}`)
		if c, err = client.NewWith(named, s.trust()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		name = fmt.Sprint("named", i)
		if j, err := c.Jobs().Submit(ctx, submission(name)); err != nil || j.Owner != "ana" {
			t.Errorf("%s: %+v %v", name, j, err)
		}
		want[name] = protocol.AuditRecord{Caller: "ana", From: "192.0.2.7:1", Via: "edge"}
		if _, err := c.Audit(ctx, protocol.AuditQuery{}); status(err) != 403 {
			t.Errorf("a submitter reads audit records: %v", err)
		}
	}
	list, err := s.client.Audit(ctx, protocol.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range list {
		for name, w := range want {
			if strings.Contains(r.About, name) {
				found++
				if r.Caller != w.Caller || r.Token != w.Token || r.Via != w.Via || w.From != "" && r.From != w.From {
					t.Errorf("%+v, want %+v", r, w)
				}
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d records of %d submissions: %+v", found, len(want), list)
	}
}

// proxy starts a proxy for coordinator i that names a caller, and returns its address.
func (s *secured) proxy(edge *certs.Source, i int, caller string) string {
	s.t.Helper()
	to := &url.URL{Scheme: "https", Host: s.port(i, 0)}
	web := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1,
		Transport: edge.Transport(new(http.Transport)), Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.Header.Del("Coppice-Caller"); caller != "" {
				r.Out.Header.Set("Coppice-Caller", caller)
			}
		}})
	dir := edge.Dir()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
	if err != nil {
		s.t.Fatal(err)
	}
	web.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	web.StartTLS()
	s.t.Cleanup(web.Close)
	return strings.TrimPrefix(web.URL, "https://")
}
