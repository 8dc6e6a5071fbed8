package certs_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestIssue: what an issued certificate says, and how its files are kept.
func TestIssue(t *testing.T) {
	dir := t.TempDir()
	a, err := certs.NewAuthority(dir, "prod")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "a")
	c, err := a.Issue(out, certs.Identity{Role: certs.Coordinator, Name: "a"}, []string{"10.0.0.1", "node-a"},
		certs.LeafLife)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if past := now.Sub(c.NotBefore); past < 4*time.Minute || past > 7*time.Minute {
		t.Errorf("the certificate begins %v ago", past)
	}
	if left := c.NotAfter.Sub(now); left < 89*24*time.Hour || left > 91*24*time.Hour {
		t.Errorf("the certificate ends in %v", left)
	}
	if c.SerialNumber.BitLen() < 64 || c.VerifyHostname("10.0.0.1") != nil || c.VerifyHostname("node-a") != nil ||
		c.PublicKeyAlgorithm != x509.ECDSA {
		t.Errorf("serial %v, hosts %v %v, %v", c.SerialNumber, c.DNSNames, c.IPAddresses, c.PublicKeyAlgorithm)
	}
	for _, name := range []string{certs.AuthorityFile, certs.CertFile, certs.KeyFile} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(out, certs.AuthorityKey)); !os.IsNotExist(err) {
		t.Errorf("the key of the authority: %v", err)
	}
	if _, err := certs.NewAuthority(dir, "prod"); err == nil || !strings.Contains(err.Error(), "never overwritten") {
		t.Errorf("a second authority: %v", err)
	}
	if _, err := a.Issue(out, certs.Identity{Role: certs.Worker, Name: "w"}, nil, certs.LeafLife); err == nil ||
		!strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("another identity in the same folder: %v", err)
	}
	if _, err := a.Issue(filepath.Join(dir, "x"), certs.Identity{Role: certs.Worker, Name: "*"}, nil,
		certs.LeafLife); err == nil {
		t.Error("a wildcard as a name is accepted")
	}
	if again, err := a.Issue(out, certs.Identity{Role: certs.Coordinator, Name: "a"}, nil, certs.LeafLife); err != nil ||
		again.SerialNumber.Cmp(c.SerialNumber) == 0 {
		t.Errorf("a second certificate: %v", err)
	}
}

// TestOpen: files that do not belong together are refused.
func TestOpen(t *testing.T) {
	a, b := certtest.New(t), certtest.New(t)
	for name, spoil := range map[string]func(dir string){
		certs.CertFile:   func(dir string) { os.Remove(filepath.Join(dir, certs.CertFile)) },
		"no certificate": func(dir string) { write(t, filepath.Join(dir, certs.AuthorityFile), nil) },
		"private key does": func(dir string) {
			write(t, filepath.Join(dir, certs.KeyFile), contents(t, b.Folder(certs.Worker, "w")+"/tls.key"))
		},
		"no authority in": func(dir string) {
			write(t, filepath.Join(dir, certs.AuthorityFile), contents(t, b.Folder(certs.Worker, "w")+"/ca.crt"))
		},
		"coppice certs node": func(dir string) { os.RemoveAll(dir) },
	} {
		dir := a.Folder(certs.Worker, "x")
		spoil(dir)
		if _, err := certs.Open(dir, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		os.RemoveAll(dir)
	}
	dir := filepath.Join(t.TempDir(), "old")
	if _, err := a.Issue(dir, certs.Identity{Role: certs.Worker, Name: "old"}, nil, -time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a certificate that has expired: %v", err)
	}
}

// TestRotation: new files are used from the next connection on, and a pair that does not
// match is not.
func TestRotation(t *testing.T) {
	old, next := certtest.New(t), certtest.New(t)
	server, client := old.Source(certs.Coordinator, "a"), old.Source(certs.Worker, "w")
	address := serve(t, server, certs.Terms{Port: certs.PortHTTP})
	changes := 0
	server.OnChange(func() { changes++ })
	works := func(what string) {
		t.Helper()
		if err := echo(t, client, certs.Coordinator, address); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	works("at first")
	serial := server.Own().SerialNumber
	newer := next.Folder(certs.Coordinator, "a")
	write(t, server.Dir()+"/tls.crt", contents(t, newer+"/tls.crt"))
	server.Look()
	if server.Own().SerialNumber.Cmp(serial) != 0 || server.Failures() == 0 || changes != 0 {
		t.Errorf("half of a pair is used; %d failures, %d changes", server.Failures(), changes)
	}
	works("with half of a pair")
	both := append(contents(t, server.Dir()+"/ca.crt"), contents(t, newer+"/ca.crt")...)
	for _, dir := range []string{server.Dir(), client.Dir()} {
		write(t, dir+"/ca.crt", both)
	}
	write(t, server.Dir()+"/tls.key", contents(t, newer+"/tls.key"))
	server.Look()
	client.Look()
	if server.Own().SerialNumber.Cmp(serial) == 0 || changes != 1 {
		t.Errorf("the new certificate is not used; %d changes", changes)
	}
	works("with the new certificate of the server")
	newer = next.Folder(certs.Worker, "w")
	for _, name := range []string{"tls.key", "tls.crt", "ca.crt"} {
		write(t, client.Dir()+"/"+name, contents(t, newer+"/"+name))
	}
	client.Look()
	works("with the new certificate of the client")
	write(t, server.Dir()+"/ca.crt", contents(t, newer+"/ca.crt"))
	server.Look()
	works("without the old authority")
	if err := echo(t, old.Source(certs.Worker, "v"), certs.Coordinator, address); err == nil {
		t.Error("the old authority still counts")
	}
	for _, name := range []string{"tls.key", "tls.crt"} {
		write(t, client.Dir()+"/"+name, contents(t, next.Folder(certs.Worker, "thief")+"/"+name))
	}
	client.Look()
	if client.Identity().Name != "w" || client.Failures() == 0 {
		t.Errorf("the identity changes to %v", client.Identity())
	}
}

// TestTrust: a source without a certificate verifies the other side, has the cluster's name from the
// authority, and reads new authorities.
func TestTrust(t *testing.T) {
	a := certtest.New(t)
	file := filepath.Join(t.TempDir(), "authorities.pem")
	write(t, file, contents(t, filepath.Join(a.Folder(certs.User, "x"), certs.AuthorityFile)))
	s, err := certs.Trust(file)
	if err != nil {
		t.Fatal(err)
	}
	if id := s.Identity(); id.Cluster != certtest.Cluster || id.Name != "" || s.Dir() != "" || s.URLScheme() != "https" {
		t.Errorf("%+v, %q", id, s.Dir())
	}
	b := certtest.New(t)
	write(t, file, append(contents(t, file),
		contents(t, filepath.Join(b.Folder(certs.User, "x"), certs.AuthorityFile))...))
	changed := 0
	s.OnChange(func() { changed++ })
	if s.Look(); changed != 1 || s.Failures() != 0 {
		t.Errorf("%d changes, %d failures", changed, s.Failures())
	}
	foreign := certtest.Of(t, "other")
	write(t, file, contents(t, filepath.Join(foreign.Folder(certs.User, "x"), certs.AuthorityFile)))
	if s.Look(); changed != 1 || s.Failures() != 1 {
		t.Errorf("the authority of another cluster: %d changes, %d failures", changed, s.Failures())
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"):                       "no such file",
		filepath.Join(a.Folder(certs.User, "x"), certs.KeyFile):  "no certificate in PEM",
		filepath.Join(a.Folder(certs.User, "x"), certs.CertFile): "names no cluster",
	} {
		if _, err := certs.Trust(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// TestPeerError: the text names what is wrong, and no file of authorities if it is not about them.
func TestPeerError(t *testing.T) {
	expected, c := "coppice://prod/coordinator/*", "coppice://prod/coordinator/c"
	for want, e := range map[string]certs.PeerError{
		"the certificate of the other side is refused: expected coppice://prod/coordinator/*, found coppice://prod/worker/w": {Expected: expected, Found: "coppice://prod/worker/w"},
		"the certificate of the other side is refused: coppice://prod/coordinator/c: it is revoked; issue another one with " +
			"coppice certs": {Expected: expected, Found: c, Fits: true, Err: certs.ErrRevoked},
		"the certificate of the other side is refused: expected coppice://prod/coordinator/*, found nothing: no " +
			"certificate was shown": {Expected: expected, Found: "nothing", Err: certs.ErrNoCertificate},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
