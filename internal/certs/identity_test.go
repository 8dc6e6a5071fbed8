package certs_test

import (
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/certs"
)

func TestParseIdentity(t *testing.T) {
	for _, text := range []string{
		"coppice://prod/coordinator/a", "coppice://prod/worker/w-1", "coppice://prod/pool/gpu", "coppice://prod/serve/ages",
		"coppice://prod/user/ana?role=admin", "coppice://prod/user/ana?role=read",
	} {
		if i, err := certs.ParseIdentity(text); err != nil || i.String() != text {
			t.Errorf("%s: got %s, error %v", text, i, err)
		}
	}
	for _, text := range []string{
		"", "coppice://", "http://prod/worker/w1", "coppice://prod/worker", "coppice://prod/worker/w1/x",
		"coppice://prod/king/a",
		"coppice://prod/worker/*", "coppice://prod/worker/>", "coppice://prod/worker/a.b", "coppice://pr.od/worker/a",
		"coppice:///worker/a",
		"coppice://prod/worker/a?role=admin", "coppice://prod/user/a", "coppice://prod/user/a?role=",
		"coppice://prod/user/a?role=root",
		"coppice://prod/worker/" + strings.Repeat("a", 65), "COPPICE://prod/worker/a", "coppice://prod/worker/a ",
		"coppice://u@prod/worker/a",
	} {
		if i, err := certs.ParseIdentity(text); !errors.Is(err, certs.ErrIdentity) {
			t.Errorf("%q is accepted as %+v, error %v", text, i, err)
		}
	}
}

// TestIdentityOf: a certificate names one identity.
func TestIdentityOf(t *testing.T) {
	uri := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	a, b, other := uri("coppice://prod/worker/a"), uri("coppice://prod/worker/b"), uri("spiffe://prod/worker/a")
	if i, err := certs.IdentityOf(&x509.Certificate{URIs: []*url.URL{other, a}}); err != nil || i.Name != "a" {
		t.Errorf("got %v, error %v", i, err)
	}
	for _, list := range [][]*url.URL{nil, {other}, {a, b}, {a, a}} {
		if i, err := certs.IdentityOf(&x509.Certificate{URIs: list}); !errors.Is(err, certs.ErrIdentity) {
			t.Errorf("%v: got %v, error %v", list, i, err)
		}
	}
}

// FuzzParseIdentity: what is accepted has one spelling, and no character of a wildcard.
func FuzzParseIdentity(f *testing.F) {
	for _, text := range []string{"coppice://prod/worker/w1", "coppice://prod/user/a?role=read", "coppice://a/b/c",
		"coppice://prod/user/a?role=admin?role=read", "coppice://prod/user/a?role=submit&quota=10",
		"coppice://prod/user/a?role=submit&quota=010", "coppice://prod/user/a?role=read&quota=1",
		"coppice://prod/worker/a?role=submit&quota=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := certs.ParseIdentity(text)
		if err != nil {
			return
		}
		if i.Check() != nil || i.String() != text || strings.ContainsAny(i.Cluster+i.Name, "*>. /") {
			t.Errorf("%q is accepted as %+v", text, i)
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q is accepted, but is no URL: %v", text, err)
		}
		if again, err := certs.IdentityOf(&x509.Certificate{URIs: []*url.URL{u}}); err != nil || again != i {
			t.Errorf("%q: in a certificate it is %+v, error %v", text, again, err)
		}
	})
}
