// Package access says who sends a request of HTTP, and refuses requests that the caller may
// not make. Package rights has the table of requests and roles.
//
// Gate.Identify finds the caller of each request, by the certificate of the connection or by
// a token. Route then allows or refuses the request by the caller's role. If a role may change
// only what its caller has made, the handler asks Own, and Settled tells whether it has.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Caller is who sends a request.
type Caller struct {
	Role   rights.Role `json:"role"`
	Name   string      `json:"name,omitempty"`   // of the user or the process; empty in the clear
	Serial string      `json:"serial,omitempty"` // of the caller's certificate
	Token  string      `json:"token,omitempty"`  // id of the caller's token
	From   string      `json:"from"`             // address, host:port
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
	// Token returns the token with an id. It may have expired.
	Token(id string) (Token, bool)
	// Revoked reports whether the certificate with a serial number is revoked.
	Revoked(serial string) bool
}

// Token is what a cluster knows of a token. The secret is not among it.
type Token struct {
	Owner string
	Role  rights.Role
	Hash  [sha256.Size]byte // of the secret
	Ends  time.Time         // zero: never
}

// Gate finds the callers of a server.
type Gate struct {
	TLS *certs.Source // nil: in the clear, every caller may do everything
	// Registry returns what the cluster knows; nil, or a nil result: nothing yet. A server
	// that knows no tokens refuses all.
	Registry func() Registry
	// OpenMetrics is true if callers without an identity may read /metrics.
	OpenMetrics bool
}

// callerHeader has the caller of a request that a coordinator forwards.
const callerHeader = "Coppice-Caller"

// Errors of callers without a valid identity.
var (
	errNoIdentity = fmt.Errorf("this server answers only callers with an identity; give --tls-dir with a folder from coppice certs client, or a token with COPPICE_TOKEN_FILE: %w", certs.ErrNoCertificate)
	errToken      = errors.New("the token is not valid here: it does not exist, has expired or was revoked; an admin makes another one with coppice token create")
	errRevoked    = errors.New("the certificate of the caller is revoked; an admin issues another one with coppice certs")
	errExpired    = errors.New("the certificate of the caller has expired; an admin issues another one with coppice certs")
	errForged     = errors.New("only a coordinator forwards requests of other callers")
)

// Identify returns a handler that finds the caller of each request before next. Callers
// without an identity reach only the requests that everybody may make.
func (g *Gate) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := g.caller(r)
		switch open := rights.OnHTTP(rights.Anonymous, r.Method, r.URL.Path) != rights.None; {
		case err == nil:
		case open:
			caller = Caller{Role: rights.Anonymous, From: r.RemoteAddr}
		case g.OpenMetrics && r.URL.Path == "/metrics":
			caller = Caller{Role: rights.Read, From: r.RemoteAddr}
		default:
			status := http.StatusForbidden
			if errors.Is(err, certs.ErrNoCertificate) || errors.Is(err, errToken) {
				status = http.StatusUnauthorized
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refuse(w, status, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), caller)))
	})
}

// caller finds who sends a request.
func (g *Gate) caller(r *http.Request) (Caller, error) {
	if g.TLS == nil {
		return Caller{Role: rights.Admin, From: r.RemoteAddr}, nil
	}
	peer := certs.PeerOf(r)
	var known Registry
	if g.Registry != nil {
		known = g.Registry()
	}
	switch {
	case peer == nil:
		return Caller{}, errNoIdentity
	case errors.Is(peer.Err, certs.ErrNoCertificate):
		return byToken(r, known)
	case peer.Err != nil:
		return Caller{}, peer.Err
	case time.Now().After(peer.Ends):
		return Caller{}, errExpired
	case known != nil && known.Revoked(peer.Serial):
		return Caller{}, errRevoked
	}
	c := Caller{Role: rights.Role(peer.Role), Name: peer.Name, Serial: peer.Serial, From: r.RemoteAddr}
	if peer.Role == certs.User {
		c.Role = rights.Role(peer.Rights)
	}
	text := r.Header.Get(callerHeader)
	if text == "" {
		return c, nil
	}
	if c.Role != rights.Coordinator {
		return Caller{}, errForged
	}
	return Forwarded(text, known)
}

// byToken finds the caller by the token of a request.
func byToken(r *http.Request, known Registry) (Caller, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return Caller{}, errNoIdentity
	}
	text, _ := strings.CutPrefix(header, "Bearer ")
	id, secret, err := ParseToken(text)
	if err != nil || known == nil {
		return Caller{}, errToken
	}
	token, ok := known.Token(id) // an unknown token has a hash that no secret has
	hash := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(hash[:], token.Hash[:]) == 1; !same || !ok || token.expired() {
		return Caller{}, errToken
	}
	return Caller{Role: token.Role, Name: token.Owner, Token: id, From: r.RemoteAddr}, nil
}

func (t *Token) expired() bool { return !t.Ends.IsZero() && time.Now().After(t.Ends) }

// Forwarded reads the caller of a request that a coordinator forwards. What this coordinator
// knows of the caller's token and certificate counts.
func Forwarded(text string, known Registry) (c Caller, err error) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Caller{}, fmt.Errorf("header %s: %w", callerHeader, err)
	}
	if known == nil {
		return c, nil
	}
	if c.Serial != "" && known.Revoked(c.Serial) {
		return Caller{}, errRevoked
	}
	if c.Token != "" {
		token, ok := known.Token(c.Token)
		if !ok || token.expired() {
			return Caller{}, errToken
		}
		c.Role, c.Name = token.Role, token.Owner
	}
	return c, nil
}

// Forward puts the caller of a request into the request that forwards it.
func Forward(out *http.Request, ctx context.Context) {
	out.Header.Del("Authorization")
	out.Header.Del(callerHeader)
	if g, ok := ctx.Value(grantKey{}).(*grant); ok {
		if b, err := json.Marshal(g.Caller); err == nil { // text only: it cannot fail
			out.Header.Set(callerHeader, string(b))
		}
	}
}

// grant is what is known of a request and its caller.
type grant struct {
	Caller
	access  rights.Access
	settled bool // true if Own was asked
}

type grantKey struct{}

// With returns a context of a request with its caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, grantKey{}, &grant{Caller: c})
}

// Of returns the caller of a request. Without Gate.Identify it is anonymous.
func Of(ctx context.Context) *Caller {
	if g, ok := ctx.Value(grantKey{}).(*grant); ok {
		return &g.Caller
	}
	return &Caller{Role: rights.Anonymous}
}

// Route returns a handler that answers the callers with a right to a request. pattern is a
// method and a path, as http.ServeMux reads them.
func Route(pattern string, next http.HandlerFunc) http.HandlerFunc {
	method, path, _ := strings.Cut(pattern, " ")
	return func(w http.ResponseWriter, r *http.Request) {
		g, ok := r.Context().Value(grantKey{}).(*grant)
		if !ok {
			g = &grant{Caller: Caller{Role: rights.Anonymous}}
		}
		switch g.access = rights.OnHTTP(g.Role, method, path); {
		case g.access == rights.None:
			refuse(w, http.StatusForbidden, g.refusal(method+" "+path, rights.Least(method, path)))
			return
		case g.access == rights.Local && r.URL.Query().Get("local") != "true":
			refuse(w, http.StatusForbidden, fmt.Errorf("%s may ask %s %s only with local=true", &g.Caller, method, path))
			return
		case g.access == rights.Status:
			w = statusOnly{w}
		}
		next(w, r)
	}
}

// refusal says which role a request needs, and who can grant it.
func (g *grant) refusal(request string, least rights.Role) error {
	if g.Role == rights.Anonymous {
		return errNoIdentity
	}
	advice := fmt.Sprintf("an admin grants it with coppice certs client NAME --role %[1]s or coppice token create --role %[1]s", least)
	return fmt.Errorf("%s may not make the request %s, which needs the role %s; %s", &g.Caller, request, least, advice)
}

// ErrOwner is wrapped by the error about something that another user has made.
var ErrOwner = errors.New("another user has made it")

// Own returns nil if the caller of a request may change what owner has made. what names it.
func Own(ctx context.Context, what, owner string) error {
	g, ok := ctx.Value(grantKey{}).(*grant)
	if !ok {
		return fmt.Errorf("%s: %w", what, ErrOwner)
	}
	g.settled = true
	if g.Role == rights.Admin || owner != "" && g.Name == owner {
		return nil
	}
	by := "it belongs to nobody"
	if owner != "" {
		by = "it belongs to " + owner
	}
	return fmt.Errorf("%s: %w: %s; %s may change only its own; ask the owner or an admin", what, ErrOwner, by, &g.Caller)
}

// Settled reports whether a request may change the state: its caller may change everything,
// or Own was asked.
func Settled(ctx context.Context) bool {
	g, ok := ctx.Value(grantKey{}).(*grant)
	return ok && (g.access == rights.Full || g.access == rights.Own && g.settled)
}

// refuse answers a caller without a right.
func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(protocol.Problem{Error: err.Error()}) // an error: the caller has ended the connection
}

// statusOnly writes the status of a response without its body.
type statusOnly struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// Host returns the address of a caller without its port.
func (c *Caller) Host() string {
	if host, _, err := net.SplitHostPort(c.From); err == nil {
		return host
	}
	return c.From
}
