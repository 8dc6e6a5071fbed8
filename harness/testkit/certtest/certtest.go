// Package certtest makes certificates for tests.
package certtest

import (
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// Cluster is the name of the cluster in the certificates of New.
const Cluster = "test"

// Authority issues certificates to folders of a test.
type Authority struct {
	*certs.Authority
	t   testing.TB
	dir string
}

// New makes an authority of the cluster Cluster.
func New(t testing.TB) *Authority { return Of(t, Cluster) }

// Of makes an authority of a cluster.
func Of(t testing.TB, cluster string) *Authority {
	t.Helper()
	dir := t.TempDir()
	a, err := certs.NewAuthority(filepath.Join(dir, "ca"), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{a, t, dir}
}

// Folder issues a certificate, and returns the folder of its files. The same identity has the
// same folder, so a second call replaces the certificate.
func (a *Authority) Folder(role certs.Role, name string) string {
	a.t.Helper()
	id := certs.Identity{Role: role, Name: name}
	if role == certs.User {
		id.Rights = certs.Rights[0]
	}
	return a.issue(id)
}

// User issues a certificate to a user with rights, and opens it.
func (a *Authority) User(name, rights string) *certs.Source {
	a.t.Helper()
	return a.open(a.issue(certs.Identity{Role: certs.User, Name: name, Rights: rights}))
}

// Limited is User with a quota of jobs.
func (a *Authority) Limited(name, rights string, quota uint32) *certs.Source {
	a.t.Helper()
	return a.open(a.issue(certs.Identity{Role: certs.User, Name: name, Rights: rights, Quota: quota}))
}

// FolderOf returns the folder of an identity that has a certificate.
func (a *Authority) FolderOf(role certs.Role, name string) string {
	return filepath.Join(a.dir, string(role)+"-"+name)
}

func (a *Authority) issue(id certs.Identity) (dir string) {
	a.t.Helper()
	dir = a.FolderOf(id.Role, id.Name)
	if _, err := a.Issue(dir, id, []string{"127.0.0.1"}, certs.LeafLife); err != nil {
		a.t.Fatal(err)
	}
	return dir
}

// Source issues a certificate and opens it.
func (a *Authority) Source(role certs.Role, name string) *certs.Source {
	a.t.Helper()
	return a.open(a.Folder(role, name))
}

func (a *Authority) open(dir string) *certs.Source {
	a.t.Helper()
	s, err := certs.Open(dir, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}
