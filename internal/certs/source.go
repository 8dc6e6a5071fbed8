package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/wait"
)

const (
	// lookEvery is the time between two looks at the files.
	lookEvery = time.Second
	// checkEvery is the time between two checks of the open connections.
	checkEvery = 250 * time.Millisecond
	// warnBefore is how long before its end a certificate is warned of.
	warnBefore = 14 * 24 * time.Hour
)

// Source is the certificates in a folder: ca.crt, tls.crt and tls.key. It reads them again
// when they change. A nil Source means connections in the clear.
//
// A Source of Trust has only authorities: its process verifies servers, and shows no certificate.
type Source struct {
	dir      string // empty: the process has no certificate
	ca       string // file of the authorities
	log      *slog.Logger
	current  atomic.Pointer[material]
	failures atomic.Uint64 // looks that found files that cannot be used
	open     connections
	drop     atomic.Pointer[func()] // see OnDrop

	mu      sync.Mutex        // guards the fields below
	seen    string            // stamp of the files that are in use
	said    string            // the last failure that was logged
	warned  *x509.Certificate // the last certificate that was warned of because it ends soon
	expired *x509.Certificate // the last certificate that was reported because it has expired
	changed []func()
}

// Open reads the certificates in a folder. It refuses a certificate that has expired, or that
// no authority in ca.crt has signed.
func Open(dir string, log *slog.Logger) (*Source, error) {
	return open(&Source{dir: dir, ca: filepath.Join(dir, AuthorityFile), log: log})
}

// Trust reads a file with the authorities of a cluster, such as ca.crt. The process of the source
// shows no certificate. The first authority must name the cluster, as coppice certs init makes it.
func Trust(file string) (*Source, error) { return open(&Source{ca: file}) }

// open reads the files of a source.
func open(s *Source) (*Source, error) {
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.seen = s.stamp()
	m, err := s.read()
	if err != nil {
		return nil, err
	}
	s.current.Store(m)
	return s, nil
}

// Dir returns the folder, or an empty text if the process has no certificate.
func (s *Source) Dir() string { return s.dir }

// Identity returns who this process is.
func (s *Source) Identity() Identity { return s.current.Load().id }

// Expires returns when the certificate of this process ends.
func (s *Source) Expires() time.Time { return s.current.Load().pair.Leaf.NotAfter }

// Own returns the certificate of this process.
func (s *Source) Own() *x509.Certificate { return s.current.Load().pair.Leaf }

// Failures returns how many looks found files that cannot be used.
func (s *Source) Failures() uint64 { return s.failures.Load() }

// OnChange adds a function that is called after new certificates are in use. With a nil
// source it does nothing.
func (s *Source) OnChange(f func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, f)
}

// Watch looks at the files again and again until ctx is done, and calls CutInvalid. With a nil
// source it returns.
func (s *Source) Watch(ctx context.Context) {
	if s == nil {
		return
	}
	s.Look()
	for looked := time.Now(); wait.For(ctx, checkEvery) == nil; s.CutInvalid() {
		if time.Since(looked) >= lookEvery {
			s.Look()
			looked = time.Now()
		}
	}
}

// Look reads the files again if they have changed. If the new ones cannot be used, the old
// ones stay in use.
func (s *Source) Look() {
	s.mu.Lock()
	stamp := s.stamp()
	var changed []func()
	if stamp != s.seen {
		m, err := s.read()
		if now := s.current.Load(); err == nil && m.id != now.id {
			err = fmt.Errorf("the new certificate is of %s, but this process is %s", m.id, now.id)
		}
		if err != nil {
			s.failures.Add(1)
			if s.said != err.Error() {
				s.said = err.Error()
				s.log.Warn("the new certificates cannot be used; the old ones stay in use", "folder", s.dir, "error", err)
			}
		} else {
			s.current.Store(m)
			s.seen, s.said = stamp, ""
			changed = slices.Clone(s.changed)
			if s.dir != "" {
				s.log.Info("new certificates are in use", "folder", s.dir, "identity", m.id.String(), "until", m.pair.Leaf.NotAfter)
			}
		}
	}
	s.warn()
	s.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

// warn warns once of a certificate that ends soon, and once more after its end. s.mu is held.
func (s *Source) warn() {
	if s.dir == "" {
		return
	}
	leaf := s.current.Load().pair.Leaf
	left := time.Until(leaf.NotAfter)
	switch {
	case left <= 0 && s.expired != leaf:
		s.expired = leaf
		s.log.Error("the certificate of this process has expired; coordinators cut its connections and refuse new ones",
			"folder", s.dir, "until", leaf.NotAfter)
	case left > 0 && left < warnBefore && s.warned != leaf:
		s.warned = leaf
		s.log.Warn("the certificate of this process ends soon; replace its files in the folder", "folder", s.dir, "until",
			leaf.NotAfter)
	}
}

// stamp describes the files without reading them.
func (s *Source) stamp() string {
	var b strings.Builder
	for _, path := range s.files() {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%v;", err)
			continue
		}
		fmt.Fprintf(&b, "%d %d;", info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

// files lists the files of a source. The first one has the authorities.
func (s *Source) files() []string {
	if s.dir == "" {
		return []string{s.ca}
	}
	return []string{s.ca, filepath.Join(s.dir, CertFile), filepath.Join(s.dir, KeyFile)}
}

// read reads the files and checks that they belong together.
func (s *Source) read() (*material, error) {
	var b [3][]byte
	for i, path := range s.files() {
		var err error
		if b[i], err = os.ReadFile(path); err != nil {
			if s.dir != "" && errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("%w; a folder of certificates has %s, %s and %s; make one with coppice certs node or coppice "+
					"certs client", err, AuthorityFile, CertFile, KeyFile)
			}
			return nil, err
		}
	}
	authorities, err := parseCerts(s.ca, b[0])
	if err != nil {
		return nil, err
	}
	m := &material{roots: x509.NewCertPool()}
	for _, a := range authorities {
		m.roots.AddCert(a)
	}
	if s.dir == "" {
		if m.id.Cluster = clusterOf(authorities[0]); m.id.Cluster == "" {
			return nil, errtext.Errorf(errtext.NoAccess, "%s: the first authority names no cluster, so a server of another "+
				"cluster would be trusted; give {tls-dir} with a certificate", s.ca)
		}
		return m, nil
	}
	if err := checkPrivate(filepath.Join(s.dir, KeyFile)); err != nil {
		return nil, err
	}
	if m.pair, err = pairOf(s.dir, b[1], b[2]); err != nil {
		return nil, err
	}
	if m.id, err = IdentityOf(m.pair.Leaf); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, CertFile), err)
	}
	chain := []*x509.Certificate{m.pair.Leaf}
	for _, der := range m.pair.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, CertFile), err)
		}
		chain = append(chain, c)
	}
	if _, err := m.chain(chain, x509.ExtKeyUsageAny); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, CertFile), s.reason(err))
	}
	return m, nil
}

// reason says in plain words why a certificate was refused.
func (s *Source) reason(err error) error {
	var unknown x509.UnknownAuthorityError
	var bad x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("no authority in %s has signed it", absolute(s.ca))
	case errors.As(err, &bad) && bad.Reason == x509.Expired && time.Now().After(bad.Cert.NotAfter):
		return fmt.Errorf("%w at %s; issue another one with coppice certs", ErrExpired,
			bad.Cert.NotAfter.Format(time.RFC3339))
	case errors.As(err, &bad) && bad.Reason == x509.Expired:
		return fmt.Errorf("it is not valid before %s; check the clocks", bad.Cert.NotBefore.Format(time.RFC3339))
	}
	return err
}

// absolute returns a path that is right in the folder of another process, too.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// PeerError is the error about the certificate of the other side.
type PeerError struct {
	Expected string // identity
	Found    string // identity, or what was found instead
	Fits     bool   // true if the identity is as expected
	Err      error  // nil if only the identity differs
}

// Error says what is wrong. What is right is left out: if the identity is as expected, the reason has nothing to do
// with it.
func (e *PeerError) Error() string {
	const refused = "the certificate of the other side is refused"
	switch {
	case e.Err == nil:
		return fmt.Sprintf("%s: expected %s, found %s", refused, e.Expected, e.Found)
	case e.Fits:
		return fmt.Sprintf("%s: %s: %v", refused, e.Found, e.Err)
	}
	return fmt.Sprintf("%s: expected %s, found %s: %v", refused, e.Expected, e.Found, e.Err)
}

// Unwrap returns why the certificate is not valid.
func (e *PeerError) Unwrap() error { return e.Err }

// ErrNoCertificate is wrapped by the error about a peer that shows no certificate.
var ErrNoCertificate = errors.New("no certificate was shown")

// verify returns the identity of the other side of a connection if it is trusted now. A later call
// costs little: chains are verified again if the files have changed. If the certificate has expired
// or is revoked, verify returns the identity with the error.
func (s *Source) verify(p *shown) (Identity, error) {
	m := s.current.Load()
	refused := &PeerError{Expected: expected(m.id.Cluster, p.roles)}
	if len(p.list) == 0 {
		refused.Found, refused.Err = "nothing", ErrNoCertificate
		return Identity{}, refused
	}
	id, err := IdentityOf(p.list[0])
	if refused.Found = id.String(); err != nil {
		refused.Found, refused.Err = fmt.Sprintf("%q", p.list[0].Subject.String()), err
		return Identity{}, refused
	}
	if refused.Fits = id.Cluster == m.id.Cluster && slices.Contains(p.roles, id.Role); !refused.Fits {
		id = Identity{}
	}
	if t := p.trusted.Load(); t == nil || t.by != m || time.Now().After(t.until) {
		until, err := m.chain(p.list, p.use)
		if err != nil {
			if refused.Err = s.reason(err); t == nil || !errors.Is(refused.Err, ErrExpired) {
				id = Identity{}
			}
			return id, refused
		}
		p.trusted.Store(&trust{m, until})
		s.open.meet(id, p.list[0])
	}
	switch {
	case id.Name == "":
		return id, refused
	case s.open.isRevoked(p.list[0]):
		refused.Err = ErrRevoked
		return id, refused // who it was is known
	}
	return id, nil
}

// expected describes the identities with one of the roles.
func expected(cluster string, roles []Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	which := strings.Join(names, "|")
	if len(roles) == len(Every) {
		which = "*"
	}
	return fmt.Sprintf("%s://%s/%s/*", scheme, cluster, which)
}

// config returns the configuration of one side of a connection, or of both. It verifies the
// other side, unless verify is false.
func (s *Source) config(use x509.ExtKeyUsage, roles []Role, verify bool) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.current.Load().pair, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if pair := s.current.Load().pair; pair != nil {
				return pair, nil
			}
			return new(tls.Certificate), nil // no certificate is shown
		},
		ClientAuth:             tls.RequestClientCert,
		InsecureSkipVerify:     true, // VerifyConnection verifies the chain and the identity
		SessionTicketsDisabled: true, // each connection is verified
	}
	if verify {
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = func(state tls.ConnectionState) error {
			_, err := s.verify(&shown{list: state.PeerCertificates, use: use, roles: roles})
			return err
		}
	}
	return c
}

// Summary describes a certificate of a file.
type Summary struct {
	File     string    `json:"file"`
	Identity string    `json:"identity"` // or the subject, if there is no identity
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Hosts    []string  `json:"hosts,omitempty"`
	Issuer   string    `json:"signed_by"`
	Serial   string    `json:"serial"`
}

// Read describes the certificates of a file.
func Read(path string) ([]Summary, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parseCerts(path, b)
	var all []Summary
	for _, c := range list {
		s := Summary{File: path, Identity: c.Subject.CommonName, From: c.NotBefore, Until: c.NotAfter, Hosts: hostsOf(c),
			Issuer: c.Issuer.CommonName, Serial: c.SerialNumber.Text(16)}
		if id, err := IdentityOf(c); err == nil {
			s.Identity = id.String()
		}
		all = append(all, s)
	}
	return all, err
}

// Belongs returns an error if the certificate of this process is not of the role and the name
// id. Workers of a pool have names that begin with the name of the pool and a dash.
func (s *Source) Belongs(id string, roles ...Role) error {
	if s == nil {
		return nil
	}
	own := s.Identity()
	pooled := own.Role == Pool && strings.HasPrefix(id, own.Name+"-")
	if slices.Contains(roles, own.Role) && (own.Name == id || pooled) {
		return nil
	}
	return fmt.Errorf("the certificate in %s is of %s, but this process is %s://%s/%s/%s", s.dir, own, scheme, own.Cluster,
		roles[0], id)
}

// Revoked has the source refuse the certificates for which revoked returns true. CutInvalid ends the
// connections that they have. With a nil source it does nothing.
func (s *Source) Revoked(revoked func(serial string) bool) {
	if s != nil {
		s.open.revoked.Store(&revoked)
	}
}

// CutInvalid ends the connections to others that are not trusted any more: no authority in ca.crt has
// signed their certificate, or it has expired, or it is revoked.
func (s *Source) CutInvalid() {
	for _, c := range s.open.list() {
		if c.over != nil && c.over() {
			s.open.remove(c)
			continue
		}
		_, err := s.verify(c.shown)
		if err == nil {
			continue
		}
		s.open.remove(c)
		var why *PeerError
		errors.As(err, &why)
		s.log.Warn("a connection was cut", "identity", why.Found, "serial", Serial(c.list[0]), "reason", cmp.Or(why.Err, err))
		c.end()
	}
}

// Met returns the certificates that a coordinator has shown since this process started, ordered by their
// ends.
func (s *Source) Met(name string) []*x509.Certificate {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	return certificates(s.open.met[name])
}
