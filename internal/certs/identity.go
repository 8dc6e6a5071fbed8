// Package certs has the certificates of the processes of a cluster: who a process is, the
// authority that says so, the files of a process, and TLS over connections.
//
// An identity is a URI in a certificate. Connections are verified by this URI and by the
// chain to the authorities in ca.crt. The address of the other side does not matter, so
// proxies and address translation do not matter either. Only TLS 1.3 is spoken.
package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Role is what the owner of a certificate is in a cluster.
type Role string

// The roles.
const (
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
	Pool        Role = "pool"  // workers that share a certificate
	Serve       Role = "serve" // a model server
	Proxy       Role = "proxy" // a reverse proxy, which sends requests of users
	User        Role = "user"
)

// NodeRoles are the roles of processes that run all the time.
var NodeRoles = []Role{Coordinator, Worker, Pool, Serve, Proxy}

// Every is the list of all roles.
var Every = append(slices.Clone(NodeRoles), User)

// Port is a kind of port, with the roles of the processes that may connect.
type Port struct {
	Name  string
	Roles []Role
}

// The ports of a coordinator. PortHTTP is also the port of a worker.
var (
	PortHTTP    = Port{"HTTP", Every}
	PortRaft    = Port{"Raft", []Role{Coordinator}}
	PortClients = Port{"NATS clients", []Role{Coordinator, Worker, Pool}}
	PortRoutes  = Port{"NATS routes", []Role{Coordinator}}
)

// Ports lists the ports of a coordinator.
var Ports = []Port{PortHTTP, PortRaft, PortClients, PortRoutes}

// Rights are the rights of a user, the greatest first.
var Rights = []string{"admin", "submit", "read"}

// Identity is the owner of a certificate.
type Identity struct {
	Cluster string // name of the cluster; certificates of another cluster are refused
	Role    Role
	Name    string
	Rights  string // of a user: one of Rights; empty for other roles
	// Quota is the most jobs of a user that may not have ended when the certificate submits another one; 0: no bound.
	Quota uint32
}

// ErrIdentity is wrapped by errors about an identity that is not valid.
var ErrIdentity = errors.New("the identity is not valid")

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// scheme begins the URI of an identity.
const scheme = "coppice"

// Check reports why an identity is not valid.
func (i Identity) Check() error {
	switch {
	case !namePattern.MatchString(i.Cluster):
		return fmt.Errorf("%w: the cluster %.80q: want 1 to 64 letters, digits, - or _", ErrIdentity, i.Cluster)
	case !slices.Contains(Every, i.Role):
		return fmt.Errorf("%w: the role %.80q: want one of %v", ErrIdentity, i.Role, Every)
	case !namePattern.MatchString(i.Name):
		return fmt.Errorf("%w: the name %.80q: want 1 to 64 letters, digits, - or _", ErrIdentity, i.Name)
	case i.Role == User && i.Name == "-":
		return fmt.Errorf("%w: the name %q of a user stands for an unknown caller", ErrIdentity, i.Name)
	case i.Role == User && !slices.Contains(Rights, i.Rights):
		return fmt.Errorf("%w: the rights of a user %.80q: want one of %v", ErrIdentity, i.Rights, Rights)
	case i.Role != User && i.Rights != "":
		return fmt.Errorf("%w: only a user has rights, not the role %s", ErrIdentity, i.Role)
	case i.Quota > 0 && (i.Role != User || i.Rights == "read"):
		return fmt.Errorf("%w: it has a quota of %d jobs, but only users with the role submit or admin submit jobs",
			ErrIdentity, i.Quota)
	}
	return nil
}

// String returns the URI of an identity.
func (i Identity) String() string {
	text := scheme + "://" + i.Cluster + "/" + string(i.Role) + "/" + i.Name
	if query := i.query(); query != "" {
		text += "?" + query
	}
	return text
}

// query returns what follows the ? of a URI.
func (i Identity) query() string {
	switch {
	case i.Rights == "":
		return ""
	case i.Quota == 0:
		return "role=" + i.Rights
	}
	return fmt.Sprintf("role=%s&quota=%d", i.Rights, i.Quota)
}

// ParseIdentity parses a URI, such as coppice://prod/worker/w1. It accepts only what String
// returns.
func ParseIdentity(text string) (i Identity, err error) {
	rest, ok := strings.CutPrefix(text, scheme+"://")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return i, fmt.Errorf("%w: %.200q: want %s://CLUSTER/ROLE/NAME", ErrIdentity, text, scheme)
	}
	i = Identity{Cluster: parts[0], Role: Role(parts[1]), Name: parts[2]}
	i.Name, i.Rights, ok = strings.Cut(i.Name, "?role=")
	if ok && i.Rights == "" {
		return Identity{}, fmt.Errorf("%w: %.200q has empty rights", ErrIdentity, text)
	}
	if rights, quota, ok := strings.Cut(i.Rights, "&quota="); ok {
		n, err := strconv.ParseUint(quota, 10, 32)
		if err != nil || n == 0 || quota != strconv.FormatUint(n, 10) {
			return Identity{}, fmt.Errorf("%w: %.200q: the quota: want a number from 1 to %d", ErrIdentity, text,
				uint32(math.MaxUint32))
		}
		i.Rights, i.Quota = rights, uint32(n)
	}
	if err := i.Check(); err != nil {
		return Identity{}, fmt.Errorf("%.200q: %w", text, err)
	}
	return i, nil
}

// IdentityOf returns the identity in a certificate. It must have exactly one.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	var found []string
	for _, u := range c.URIs {
		if u.Scheme == scheme {
			found = append(found, u.String())
		}
	}
	switch len(found) {
	case 0:
		return Identity{}, fmt.Errorf("%w: the certificate has no URI %s://CLUSTER/ROLE/NAME", ErrIdentity, scheme)
	case 1:
		return ParseIdentity(found[0])
	}
	return Identity{}, fmt.Errorf("%w: the certificate has %d URIs of %s, want 1", ErrIdentity, len(found), scheme)
}

// url returns the identity as a URI of a certificate.
func (i Identity) url() *url.URL {
	u := &url.URL{Scheme: scheme, Host: i.Cluster, Path: "/" + string(i.Role) + "/" + i.Name}
	u.RawQuery = i.query()
	return u
}

// Serial returns the serial number of a certificate in hexadecimal digits.
func Serial(c *x509.Certificate) string { return c.SerialNumber.Text(16) }
