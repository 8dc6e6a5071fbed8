package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Caller is who sends a request.
type Caller struct {
	Role   rights.Role `json:"role"`
	Name   string      `json:"name,omitempty"`   // of the user or the process; empty in the clear
	Serial string      `json:"serial,omitempty"` // of the caller's certificate
	Token  string      `json:"token,omitempty"`  // id of the caller's token
	Via    string      `json:"via,omitempty"`    // name of the proxy that has sent the request
	From   string      `json:"from"`             // address, host:port
	Quota  uint32      `json:"quota,omitempty"`  // of the caller's certificate; see certs.Identity

	until time.Time // when the session of the caller's browser ends; zero: it has none
}

// String names a caller, such as "user ana".
func (c *Caller) String() string {
	if c.Name == "" {
		return "a caller without a name"
	}
	switch c.Role {
	case rights.Read, rights.Submit, rights.Admin:
		return fmt.Sprintf("user %s (role %s)", c.Name, c.Role)
	}
	return fmt.Sprintf("%s %s", c.Role, c.Name)
}

// Registry is what a cluster knows of tokens and revoked certificates.
type Registry interface {
	// Token returns the token with an id. It may have expired. A revoked token is none.
	Token(id string) (Token, bool)
	// Revoked reports whether the certificate with a serial number is revoked.
	Revoked(serial string) bool
	// Member reports whether a coordinator is a member of the cluster.
	Member(name string) bool
	// ClusterID returns the id of the cluster.
	ClusterID() string
	// CatchUp waits until done reports true, at most as long as this server may lack what the
	// cluster has just accepted.
	CatchUp(ctx context.Context, done func() bool)
}

// Token is what a cluster knows of a token. The secret is not among it.
type Token struct {
	Owner string
	Role  rights.Role
	Hash  [sha256.Size]byte // of the secret
	Ends  time.Time         // zero: never
}

// Host returns the address of a caller without its port.
func (c *Caller) Host() string {
	if host, _, err := net.SplitHostPort(c.From); err == nil {
		return host
	}
	return c.From
}

// secretBytes is the length of the secret of a token. A token is text such as
// coppice_0123456789abcdef_SECRET. Its id is public.
const secretBytes = 32

var tokenPattern = regexp.MustCompile(`^coppice_([0-9a-f]{16})_([0-9a-f]{64})$`)

// NewToken draws a token. A cluster gets only the id and the hash.
func NewToken() (text, id string, hash [sha256.Size]byte) {
	b := make([]byte, protocol.TokenIDBytes+secretBytes)
	rand.Read(b) // never fails
	id = hex.EncodeToString(b[:protocol.TokenIDBytes])
	secret := hex.EncodeToString(b[protocol.TokenIDBytes:])
	return "coppice_" + id + "_" + secret, id, sha256.Sum256([]byte(secret))
}

// errTokenForm does not repeat the text, which may be a secret.
var errTokenForm = errors.New("the text is not a token, want coppice_ID_SECRET as coppice token create printed it")

var tokenInText = regexp.MustCompile(`coppice_([0-9a-f]{16})_[0-9a-zA-Z]*`)

// HasToken reports whether a text has a token, or the beginning of one.
func HasToken(text string) bool { return tokenInText.MatchString(text) }

// HideTokens replaces the secrets of tokens in a text.
func HideTokens(text string) string { return tokenInText.ReplaceAllString(text, "coppice_${1}_SECRET") }

// ParseToken takes a token apart.
func ParseToken(text string) (id, secret string, err error) {
	m := tokenPattern.FindStringSubmatch(text)
	if m == nil {
		return "", "", errTokenForm
	}
	return m[1], m[2], nil
}

// user is who a proxy says that it asks for.
type user struct {
	role, name   string
	serial, from string // may be empty
}

// parseUser reads the user that a proxy names: an object with the texts role, name, serial and from. The last two
// may be missing. The text of a client may be in it, so nothing else is accepted, and nothing twice.
func parseUser(text string) (u user, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	wrong := func() (user, error) {
		return user{}, errors.New(`want an object of texts, such as {"role":"submit","name":"ana","from":"192.0.2.7:1234"}`)
	}
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return wrong()
	}
	fields := map[string]*string{"role": &u.role, "name": &u.name, "serial": &u.serial, "from": &u.from}
	for d.More() {
		key, _ := d.Token() // an error also ends the next token
		value, err := d.Token()
		text, ok := value.(string)
		if err != nil || !ok {
			return wrong()
		}
		name, _ := key.(string)
		into := fields[name]
		if into == nil {
			return user{}, fmt.Errorf("the key %.80q is unknown or occurs twice: want each of role, name, serial and from at "+
				"most once", name)
		}
		*into = text
		delete(fields, name)
	}
	if _, err := d.Token(); err != nil || d.InputOffset() != int64(len(strings.TrimRight(text, " \t"))) {
		return wrong()
	}
	if u.role == string(rights.Admin) {
		return user{}, errors.New("a proxy names users with the role read or submit only; an admin connects with a " +
			"certificate or a token")
	}
	identity := certs.Identity{Cluster: "c", Role: certs.User, Name: u.name, Rights: u.role} // any cluster
	if err := identity.Check(); err != nil {
		return user{}, err
	}
	if u.serial = strings.TrimLeft(strings.ToLower(u.serial), "0"); u.serial != "" && !protocol.CheckSerial(u.serial) {
		return user{}, fmt.Errorf("the serial number %.80q: want at most %d hexadecimal digits", u.serial, protocol.MaxSerial)
	}
	return u, nil
}

// StatusRemoved answers a coordinator that was removed from the cluster, if its certificate is revoked.
const StatusRemoved = http.StatusGone

// callerHeader has the caller of a request that a coordinator or a proxy forwards.
const callerHeader = "Coppice-Caller"

// Errors of callers without a valid identity.
var (
	errNoIdentity = errtext.Errorf(errtext.NoAccess, "this server answers only callers with an identity; give {tls-dir} "+
		"with a folder from coppice certs client, or a token with {token-file} or COPPICE_TOKEN_FILE: %w",
		certs.ErrNoCertificate)
	errToken = errors.New("the token is not valid here: it does not exist, has expired or was revoked; an admin " +
		"makes another one with coppice token create NAME --role ROLE")
	errRevoked   = errors.New("the certificate of the caller is revoked; an admin issues another one with coppice certs")
	errProxy     = fmt.Errorf("the certificate of the proxy: %w", errRevoked)
	errExpired   = errors.New("the certificate of the caller has expired; an admin issues another one with coppice certs")
	errUntrusted = errors.New("the certificate of the caller is not trusted here: another authority has signed it, or " +
		"it is of another cluster, or of a role that this port refuses")
	errRemoved = errors.New("the certificate of the caller is revoked, and its coordinator is not a member of the " +
		"cluster")
	errStarting  = errors.New("this coordinator is starting and does not know the tokens of its cluster yet; try again")
	errForwarder = errors.New("the coordinator or the proxy that forwards the request is not trusted any more; ask " +
		"another coordinator")
	errForged  = errors.New("only a coordinator or a proxy forwards requests of other callers")
	errUnnamed = fmt.Errorf("a proxy has sent the request and names no user: have it set the header %s, or pass on "+
		"the header Authorization with a token", callerHeader)
	errTwoCallers = fmt.Errorf("a proxy has sent the request with the header %s and a token, which may name two users: "+
		"have it remove one of them", callerHeader)
	errSession = errors.New("this login has ended: log in again")
	errCookies = errors.New("the browser has sent several cookies of the same name, and it is not known which one is " +
		"yours: delete the cookies of this host")
	errClear  = errors.New("a cluster without TLS has no login: every caller may do everything")
	errWorker = fmt.Errorf("this process takes a certificate of a user, or for /metrics the token of its "+
		"--metrics-token-file: %w", certs.ErrNoCertificate)
)

// StatusOf returns the status of an answer to a caller without a valid identity. ok is false if the error
// is another one. The identity may have ended while the request was answered: it is then the cause of the
// request's context.
func StatusOf(err error) (status int, ok bool) {
	var untrusted *certificateError
	switch {
	case errors.Is(err, errStarting), errors.Is(err, errForwarder):
		return http.StatusServiceUnavailable, true // the client asks again
	case errors.Is(err, errRemoved):
		return StatusRemoved, true
	case errors.Is(err, certs.ErrNoCertificate), errors.Is(err, errToken), errors.Is(err, errSession),
		errors.Is(err, errCookies):
		return http.StatusUnauthorized, true
	case errors.As(err, &untrusted), errors.Is(err, errExpired), errors.Is(err, errRevoked):
		return http.StatusForbidden, true
	}
	return 0, false
}

// untrusted returns the error about a certificate that certs refuses. Its text names neither this
// cluster nor its files, since the caller may be a stranger.
func untrusted(err error) error {
	text := errUntrusted
	switch {
	case errors.Is(err, certs.ErrExpired):
		text = errExpired
	case errors.Is(err, certs.ErrRevoked):
		text = errRevoked
	}
	return &certificateError{text, err}
}

// certificateError is an error about the certificate of a caller.
type certificateError struct {
	error        // for the caller
	reason error // for the audit records
}

// Unwrap returns the reason.
func (e *certificateError) Unwrap() error { return e.reason }

// ownerError is an error about an owner.
type ownerError string

func (e ownerError) Error() string { return string(e) }

// Is makes each of them equal to ErrOwner.
func (ownerError) Is(target error) bool { return target == ErrOwner }

var (
	// ErrOwner is wrapped by the error about something that the caller may not change, because of its owner.
	ErrOwner error = ownerError("another user has made it")
	// ErrPrivate is wrapped by the error about something that the caller may not read.
	ErrPrivate error = ownerError("it is private")
	errNobody        = ownerError("it has no owner, so only an admin may change it")
)
