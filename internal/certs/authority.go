package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/internal/files"
)

// The files of a folder of certificates. The names are the ones of TLS secrets in Kubernetes.
const (
	AuthorityFile = "ca.crt"  // certificates of the authorities; several are allowed
	CertFile      = "tls.crt" // certificate of the process, and intermediate authorities
	KeyFile       = "tls.key"
	// AuthorityKey is the key of the authority. It stays in the folder of NewAuthority.
	AuthorityKey = "ca.key"
)

const (
	// LeafLife is how long a certificate of a process is valid, unless its issuer says otherwise.
	LeafLife = 90 * 24 * time.Hour
	// AuthorityLife is how long a certificate of an authority is valid.
	AuthorityLife = 10 * 365 * 24 * time.Hour
	// early is how far in the past a certificate begins: clocks differ.
	early = 5 * time.Minute
	// private is the mode of all files.
	private = 0o600
)

// Authority issues the certificates of one cluster.
type Authority struct {
	Cluster string // name of the cluster, in every identity
	Cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	all     []byte // ca.crt, which may have more authorities
}

// NewAuthority makes an authority in a folder. It never overwrites a file.
func NewAuthority(dir, cluster string) (*Authority, error) {
	if !namePattern.MatchString(cluster) {
		return nil, fmt.Errorf("%w: the cluster %.80q: want 1 to 64 letters, digits, - or _", ErrIdentity, cluster)
	}
	for _, name := range []string{AuthorityFile, AuthorityKey} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			if err == nil {
				err = fmt.Errorf("%s exists, and an authority is never overwritten; use it, or choose another folder",
					filepath.Join(dir, name))
			}
			return nil, err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Coppice CA of " + cluster, Organization: []string{cluster}},
		NotBefore: now.Add(-early), NotAfter: now.Add(AuthorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		URIs:     []*url.URL{{Scheme: scheme, Host: cluster}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	secret, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		b    []byte
	}{{AuthorityKey, secret}, {AuthorityFile, certPEM(der)}} {
		if err := files.WriteSynced(filepath.Join(dir, f.name), f.b, private); err != nil {
			return nil, err
		}
	}
	return OpenAuthority(dir)
}

// checkPrivate refuses the file of a key that users may use who are neither its owner nor in its group.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("%[1]s: the mode is %04[2]o, but other users must not use the key; run: chmod 600 %[1]s",
			path, mode)
	}
	return nil
}

// OpenAuthority opens the authority in a folder: the certificate in ca.crt that belongs to
// ca.key.
func OpenAuthority(dir string) (*Authority, error) {
	secret, err := os.ReadFile(filepath.Join(dir, AuthorityKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; make an authority with: coppice certs init --ca-dir %s", err, dir)
	}
	if err == nil {
		err = checkPrivate(filepath.Join(dir, AuthorityKey))
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(secret)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM", filepath.Join(dir, AuthorityKey))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, AuthorityKey), err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: want a key of ECDSA, got %T", filepath.Join(dir, AuthorityKey), parsed)
	}
	a := &Authority{key: key}
	if a.all, err = os.ReadFile(filepath.Join(dir, AuthorityFile)); err != nil {
		return nil, err
	}
	list, err := parseCerts(filepath.Join(dir, AuthorityFile), a.all)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
	if at < 0 {
		return nil, fmt.Errorf("no certificate in %s belongs to the key in %s", filepath.Join(dir, AuthorityFile),
			AuthorityKey)
	}
	a.Cert = list[at]
	if a.Cluster = clusterOf(a.Cert); a.Cluster == "" {
		return nil, fmt.Errorf("the certificate in %s names no cluster; make an authority with coppice certs init",
			filepath.Join(dir, AuthorityFile))
	}
	return a, nil
}

// clusterOf returns the cluster that the certificate of an authority names, or an empty text.
func clusterOf(authority *x509.Certificate) string {
	for _, u := range authority.URIs {
		if u.Scheme == scheme && authority.IsCA {
			return u.Host
		}
	}
	return ""
}

// Issue issues a certificate and writes the files of a process to a folder. It replaces an
// earlier certificate there only if that one has the same identity. hosts are names and
// addresses for programs that verify them, such as browsers. The name of a pool is one of its
// hosts: workers of a pool have no other host in common. Without hosts, the ones of the earlier
// certificate stay.
func (a *Authority) Issue(dir string, i Identity, hosts []string, life time.Duration) (*x509.Certificate, error) {
	i.Cluster = a.Cluster
	if err := i.Check(); err != nil {
		return nil, err
	}
	old, err := replaceable(filepath.Join(dir, CertFile), i)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 && old != nil {
		hosts = hostsOf(old)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: string(i.Role) + " " + i.Name,
			Organization: []string{i.Cluster}},
		NotBefore: now.Add(-early), NotAfter: now.Add(life), BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{i.url()},
	}
	if template.NotAfter.After(a.Cert.NotAfter) {
		template.NotAfter = a.Cert.NotAfter
	}
	if i.Role == Pool && !slices.Contains(hosts, i.Name) {
		hosts = append(slices.Clone(hosts), i.Name)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	secret, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		b    []byte
	}{{AuthorityFile, a.all}, {KeyFile, secret}, {CertFile, certPEM(der)}} {
		if err := files.Replace(filepath.Join(dir, f.name), f.b, private); err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, f.name), private); err != nil {
			return nil, err
		}
	}
	return x509.ParseCertificate(der)
}

// replaceable returns the certificate in a file, or nil if there is no file. It returns an error if the
// certificate has another identity.
func replaceable(path string, i Identity) (*x509.Certificate, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	old, err := parseCerts(path, b)
	if err != nil {
		return nil, err
	}
	was, err := IdentityOf(old[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another folder", path, err)
	}
	same := was
	if same.Rights, same.Quota = i.Rights, i.Quota; same != i {
		return nil, fmt.Errorf("%s is a certificate of %s, not of %s; choose another folder with --out", path, was, i)
	}
	return old[0], nil
}

// hostsOf lists the names and addresses of machines in a certificate.
func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// serial draws a serial number of 127 bits.
func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return n.Add(n, big.NewInt(1))
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseCerts parses the certificates of a file. There is at least one.
func parseCerts(path string, b []byte) (list []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", path, len(list)+1, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return list, nil
}

// pairOf parses a certificate and its key, which must belong together.
func pairOf(dir string, cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s in %s: %w", CertFile, KeyFile, dir, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, CertFile), err)
		}
	}
	return &pair, nil
}
