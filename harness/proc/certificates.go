package proc

import (
	"path/filepath"
	"sync"

	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// Certificates issues the certificates of clusters on this machine. A nil *Certificates means
// that all connections are in the clear.
type Certificates struct {
	authority *certs.Authority
	dir       string
	source    *certs.Source // of this process

	mu     sync.Mutex
	issued map[string]bool // folders
}

// certsCluster is the name of the cluster in the certificates.
const certsCluster = "test"

// NewCertificates makes an authority in a folder, and the certificate of this process, which is
// an admin.
func NewCertificates(dir string) (*Certificates, error) {
	authority, err := certs.NewAuthority(dir, certsCluster)
	if err != nil {
		return nil, err
	}
	admin := filepath.Join(dir, certs.Rights[0])
	id := certs.Identity{Role: certs.User, Name: certs.Rights[0], Rights: certs.Rights[0]}
	if _, err := authority.Issue(admin, id, nil, certs.LeafLife); err != nil {
		return nil, err
	}
	source, err := certs.Open(admin, nil)
	if err != nil {
		return nil, err
	}
	return &Certificates{authority: authority, dir: dir, source: source, issued: make(map[string]bool)}, nil
}

// Source returns the certificates of this process, which is an admin.
func (c *Certificates) Source() *certs.Source {
	if c == nil {
		return nil
	}
	return c.source
}

// folder returns the folder with the certificate of another process, for its loopback address.
func (c *Certificates) folder(role certs.Role, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := filepath.Join(c.dir, string(role)+"-"+name)
	if c.issued[dir] {
		return dir, nil
	}
	_, err := c.authority.Issue(dir, certs.Identity{Role: role, Name: name}, []string{freeport.Host}, certs.LeafLife)
	c.issued[dir] = err == nil
	return dir, err
}

// Flags returns the flags of a process for its certificate.
func (c *Certificates) Flags(role certs.Role, name string) ([]string, error) {
	if c == nil {
		return nil, nil
	}
	dir, err := c.folder(role, name)
	return []string{"--tls-dir", dir}, err
}

// ClientFlags returns the flags of commands that use a cluster.
func (c *Certificates) ClientFlags() []string {
	if c == nil {
		return nil
	}
	return []string{"--tls-dir", c.source.Dir()}
}
