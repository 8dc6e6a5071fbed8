// Package access says who sends a request of HTTP, and refuses requests that the caller may
// not make. Package rights has the table of requests and roles.
//
// Gate.Identify finds the caller of each request, by the certificate of the connection or by
// a token. Route then allows or refuses the request by the caller's role. If a role may change
// only what its caller has made, the handler asks Own, and Settled tells whether it has. Before a
// handler shows what may be private, it asks Read.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Gate finds the callers of a server.
type Gate struct {
	TLS *certs.Source // nil: in the clear, every caller may do everything
	// Registry returns what the cluster knows; a nil result: nothing yet. If Registry is nil, the
	// server takes no tokens of the cluster.
	Registry func() Registry
	// Hosts are the names by which callers reach this server in the clear. Addresses and names without a dot
	// are always accepted. If a page of another site has its own name resolve to this server, its browser
	// sends that name, and is refused.
	Hosts []string
	// Origin is the scheme and the host by which browsers reach the page through a proxy, such as https://example.org, and
	// Prefix the path below which the proxy has it. Both may be empty.
	Origin, Prefix string
	// OpenMetrics is true if callers without an identity may read /metrics.
	OpenMetrics bool
	// MetricsToken, if set, returns the SHA-256 of the token with which a caller may read /metrics now, and
	// nothing else. ok is false if there is none.
	MetricsToken func() (hash [sha256.Size]byte, ok bool)
	// Refused, if set, is called for each request that is refused, such as GET /v1/jobs. The name of
	// the caller is empty if it is not known.
	Refused func(c *Caller, request string, reason Reason, err error)
}

// tell tells of a request that is refused before its caller has a grant.
func (g *Gate) tell(r *http.Request, c Caller, err error) {
	if g.Refused == nil {
		return
	}
	if c.Role == "" {
		c.Role = rights.Anonymous
	}
	if c.From == "" {
		c.From = r.RemoteAddr
	}
	reason := ReasonCertificate
	var untrusted *certificateError
	switch {
	case errors.As(err, &untrusted):
		err = untrusted.reason
	case errors.Is(err, errToken), errors.Is(err, errSession), errors.Is(err, errCookies):
		reason = ReasonToken
	case errors.Is(err, certs.ErrNoCertificate):
		reason = ReasonIdentity
	}
	g.Refused(&c, r.Method+" "+r.URL.Path, reason, err)
}

// mayScrape reports whether a caller without an identity may make a request, because it is for /metrics.
func (g *Gate) mayScrape(r *http.Request) bool {
	if r.URL.Path != "/metrics" || g.MetricsToken == nil {
		return r.URL.Path == "/metrics" && g.OpenMetrics
	}
	text, ok := bearer(r)
	hash := sha256.Sum256([]byte(text))
	want, valid := g.MetricsToken()
	return g.OpenMetrics || ok && valid && subtle.ConstantTimeCompare(hash[:], want[:]) == 1
}

// bearer returns the token of a request.
func bearer(r *http.Request) (string, bool) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

// The time of a caller without an identity to send the rest of a request, and to read the answer.
const (
	restWithin   = time.Second
	answerWithin = 10 * time.Second
)

// Identify returns a handler that finds the caller of each request before next. Callers
// without an identity reach only the requests that everybody may make. In place of the page, their browsers get its
// login.
func (g *Gate) Identify(next http.Handler) http.Handler {
	sites := crossSite(g.Origin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := rights.OfPage(r.URL.Path)
		if page || r.URL.Path == "/" {
			Protect(w.Header())
		}
		if g.TLS == nil && !g.isHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, fmt.Errorf("the request is for the host %.80q, which is not a name of "+
				"this server; to accept it, start the server with --allow-host", r.Host))
			return
		}
		caller, err := g.caller(r)
		foreign := sites.Check(r)
		switch {
		case foreign != nil:
			err = fmt.Errorf("a page of another site asks for a change: %w", foreign)
		case err == nil:
		case rights.Open(r):
			caller, err = Caller{Role: rights.Anonymous, From: r.RemoteAddr, Via: viaOf(r)}, nil
		case g.mayScrape(r):
			caller, err = Caller{Role: rights.Read, From: r.RemoteAddr}, nil
		}
		if err != nil {
			status, login := g.statusOf(r, err), page && g.Registry != nil
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			if !page || r.Method != http.MethodGet || !errors.Is(err, certs.ErrNoCertificate) {
				g.tell(r, caller, err)
			}
			if !login || r.Method != http.MethodGet && r.Method != http.MethodHead {
				conn := http.NewResponseController(w) // its errors say that r has no connection, as in tests
				_ = conn.SetReadDeadline(time.Now().Add(restWithin))
				_ = conn.SetWriteDeadline(time.Now().Add(answerWithin))
				w.Header().Set("Connection", "close")
			}
			if !login {
				refuse(w, status, err)
				return
			}
			if r = toLogin(w, r, g.Prefix, status, err); r == nil {
				return
			}
			caller = Caller{Role: rights.Anonymous, From: r.RemoteAddr, Via: viaOf(r)}
		}
		ctx, end := g.whileValid(r, &caller)
		defer end()
		known := &grant{Caller: caller}
		if g.Refused != nil {
			known.refused = func(reason Reason, err error) { g.Refused(&caller, r.Method+" "+r.URL.Path, reason, err) }
		}
		ctx = context.WithValue(context.WithValue(ctx, gateKey{}, g), grantKey{}, known)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// statusOf returns the status of the answer to a caller that is not known.
func (g *Gate) statusOf(r *http.Request, err error) int {
	if peer := certs.PeerOf(r); r.Header.Get(callerHeader) != "" && g.badPeer(peer) && peer.Role != certs.Proxy {
		return http.StatusServiceUnavailable // the caller may be valid, and asks another coordinator
	}
	if status, known := StatusOf(err); known {
		return status
	}
	return http.StatusForbidden
}

// isHost reports whether a request in the clear may be for a host.
func (g *Gate) isHost(given string) bool {
	host := given
	if name, _, err := net.SplitHostPort(given); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(g.Hosts, func(own string) bool {
		return strings.EqualFold(strings.TrimSuffix(own, "."), host)
	})
}

// checkEvery is the time between two checks of the caller of a request that takes long.
const checkEvery = 500 * time.Millisecond

// whileValid returns a context of a request that ends when its caller is not valid any more. The
// server of the request calls end at its end.
func (g *Gate) whileValid(r *http.Request, c *Caller) (ctx context.Context, end func()) {
	if c.Token == "" && c.Serial == "" && c.Via == "" {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var check *time.Timer
	set := make(chan struct{})
	check = time.AfterFunc(checkEvery, func() {
		<-set
		if ctx.Err() != nil {
			return
		}
		if err := g.check(r, c); err != nil {
			cancel(err)
			return
		}
		check.Reset(checkEvery)
	})
	close(set)
	return ctx, func() {
		cancel(nil)
		check.Stop()
	}
}

// check returns an error if the caller of a request is not valid any more.
func (g *Gate) check(r *http.Request, c *Caller) error {
	if peer := certs.PeerOf(r); peer != nil && (peer.Serial != "" || c.Token == "") {
		switch err := peer.Refused(); {
		case c.Via != "" && g.badPeer(peer), err != nil && r.Header.Get(callerHeader) != "":
			return errForwarder // the caller may be valid, and asks another coordinator
		case err != nil:
			return untrusted(err)
		}
	}
	known := g.known()
	if known == nil {
		return nil
	}
	if c.Serial != "" && known.Revoked(c.Serial) {
		return errRevoked
	}
	if c.Token != "" {
		if token, ok := known.Token(c.Token); !ok || token.expired() {
			return errToken
		}
	}
	if !c.until.IsZero() && time.Now().After(c.until) {
		return errSession
	}
	return nil
}

// known returns what the cluster knows of callers, or nil.
func (g *Gate) known() Registry {
	if g.Registry == nil {
		return nil
	}
	return g.Registry()
}

// badPeer reports whether the certificate of a connection is refused.
func (g *Gate) badPeer(peer *certs.Peer) bool {
	if peer == nil {
		return false
	}
	err, known := peer.Refused(), g.known()
	return err != nil && !errors.Is(err, certs.ErrNoCertificate) || known != nil && known.Revoked(peer.Serial)
}

// caller finds who sends a request.
func (g *Gate) caller(r *http.Request) (Caller, error) {
	if g.TLS == nil {
		c := Caller{Role: rights.Admin, From: r.RemoteAddr}
		if stated := new(Caller); json.Unmarshal([]byte(r.Header.Get(callerHeader)), stated) == nil && stated.From != "" {
			c.From = stated.From // of a request that a coordinator forwards
		}
		return c, nil
	}
	peer := certs.PeerOf(r)
	if peer == nil {
		return Caller{}, g.unknown()
	}
	known, refused := g.known(), peer.Refused()
	if errors.Is(refused, certs.ErrNoCertificate) {
		return g.byToken(r, known)
	}
	c := Caller{From: r.RemoteAddr}
	if peer.Identity != (certs.Identity{}) {
		c = Caller{Role: rights.Role(peer.Role), Name: peer.Name, Serial: peer.Serial, From: r.RemoteAddr}
	}
	if peer.Role == certs.User {
		c.Role, c.Quota = rights.Role(peer.Rights), peer.Quota
	}
	switch {
	case errors.Is(refused, certs.ErrRevoked), refused == nil && known != nil && known.Revoked(peer.Serial):
		if peer.Role == certs.Coordinator && known != nil && !known.Member(peer.Name) {
			return c, errRemoved
		}
		if peer.Role == certs.Proxy {
			return c, errProxy
		}
		return c, errRevoked
	case refused != nil:
		return c, untrusted(refused)
	}
	if c.Role == rights.Proxy {
		return g.byProxy(r, c, known)
	}
	text := r.Header.Get(callerHeader)
	if text == "" {
		return c, nil
	}
	if c.Role != rights.Coordinator {
		return c, errForged
	}
	return Forwarded(text, known)
}

// byToken finds the caller by the token of a request, or by the session of a browser that shows the page.
func (g *Gate) byToken(r *http.Request, known Registry) (Caller, error) {
	text, ok := bearer(r)
	page := rights.OfPage(r.URL.Path)
	switch {
	case g.Registry == nil:
		return Caller{}, g.unknown()
	case ok:
		return g.byClaim(r, known, claimOf(text), errToken)
	case r.Header.Get("Authorization") != "" && !page: // a browser has a password for a proxy, perhaps
		return Caller{}, errToken
	case known == nil || !page:
		return Caller{}, g.unknown()
	}
	switch cookies := r.CookiesNamed(cookiePrefix + known.ClusterID()); len(cookies) {
	case 0:
		return Caller{}, g.unknown()
	case 1:
		return g.byClaim(r, known, openSession(cookies[0].Value, known.ClusterID()), errSession)
	}
	return Caller{From: r.RemoteAddr}, errCookies
}

// byClaim finds the caller by a claim. refused is the error about a claim that does not hold.
func (g *Gate) byClaim(r *http.Request, known Registry, by claim, refused error) (Caller, error) {
	if by.holds == nil {
		return Caller{}, refused
	}
	c := Caller{Role: rights.Anonymous, Token: by.id, From: r.RemoteAddr}
	if known == nil {
		return c, errStarting
	}
	var token Token
	valid := func() bool {
		var exists, holds bool
		token, exists = known.Token(by.id) // an unknown token has a hash that no secret has
		c.until, holds = by.holds(&token)
		return holds && exists && !token.expired()
	}
	if !valid() {
		// The wait is as long for a wrong secret as for an unknown id.
		if known.CatchUp(r.Context(), valid); !valid() {
			return c, refused
		}
	}
	c.Role, c.Name = token.Role, token.Owner
	return c, nil
}

// byProxy finds the caller of a request that a proxy sends. Either the request has a token of the caller, or the
// proxy names the caller.
func (g *Gate) byProxy(r *http.Request, proxy Caller, known Registry) (c Caller, err error) {
	named := r.Header.Values(callerHeader)
	_, hasToken := bearer(r)
	switch {
	case len(named) == 0 && !hasToken && !rights.OfPage(r.URL.Path):
		return proxy, errUnnamed
	case len(named) == 0:
		c, err = g.byToken(r, known)
		c.Via = proxy.Name
		return c, err
	case hasToken:
		return proxy, errTwoCallers
	case len(named) > 1:
		return proxy, fmt.Errorf("a proxy has sent the header %s %d times: have it replace the header of its client",
			callerHeader, len(named))
	}
	u, err := parseUser(named[0])
	if err != nil {
		return proxy, fmt.Errorf("header %s of a proxy: %w", callerHeader, err)
	}
	c = Caller{Role: rights.Role(u.role), Name: u.name, Serial: u.serial, Via: proxy.Name,
		From: cmp.Or(u.from, proxy.From)}
	if c.Serial != "" && known != nil && known.Revoked(c.Serial) {
		return c, errRevoked
	}
	return c, nil
}

// unknown is the error about a caller without an identity.
func (g *Gate) unknown() error {
	if g.Registry == nil {
		return errWorker
	}
	return errNoIdentity
}

func (t *Token) expired() bool { return !t.Ends.IsZero() && time.Now().After(t.Ends) }

// Forwarded reads the caller of a request that a coordinator forwards. What this coordinator
// knows of the caller's token and certificate counts. With an error, the caller is who was refused.
func Forwarded(text string, known Registry) (c Caller, err error) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Caller{}, fmt.Errorf("header %s: %w", callerHeader, err)
	}
	if known == nil {
		return c, nil
	}
	if c.Serial != "" && known.Revoked(c.Serial) {
		return c, errRevoked
	}
	if c.Token != "" {
		token, ok := known.Token(c.Token)
		if !ok || token.expired() {
			return c, errToken
		}
		c.Role, c.Name = token.Role, token.Owner
	}
	return c, nil
}

// Forward puts the caller of a request into the request that forwards it.
func Forward(out *http.Request, ctx context.Context) {
	out.Header.Del("Authorization")
	out.Header.Del("Cookie")
	out.Header.Del(callerHeader)
	if g, ok := ctx.Value(grantKey{}).(*grant); ok {
		if b, err := json.Marshal(g.Caller); err == nil { // text only: it cannot fail
			out.Header.Set(callerHeader, string(b))
		}
	}
}

// Login begins a session of the browser that has sent a request: it answers with a cookie for a token. An error about
// the token is counted as a refusal.
func Login(w http.ResponseWriter, r *http.Request, token string) error {
	g := gateOf(r.Context())
	switch {
	case g == nil || g.TLS == nil:
		return errClear
	case g.known() == nil:
		return errStarting
	}
	c, err := g.byClaim(r, g.known(), claimOf(token), errToken)
	if c.From, c.Via = Of(r.Context()).From, Of(r.Context()).Via; err != nil {
		g.tell(r, c, err)
		return err
	}
	id, secret, err := ParseToken(token)
	if err != nil {
		return err
	}
	until := time.Now().Add(MaxSession)
	if known, _ := g.known().Token(id); !known.Ends.IsZero() && known.Ends.Before(until) {
		until = known.Ends
	}
	cluster := g.known().ClusterID()
	setCookie(w, g.Prefix, cluster, sealSession(id, secret, cluster, until), max(1, int(time.Until(until).Seconds())))
	return nil
}

// Logout has the browser that has sent a request forget its session. The session of another browser goes on.
func Logout(w http.ResponseWriter, r *http.Request) {
	if g := gateOf(r.Context()); g != nil && g.known() != nil {
		setCookie(w, g.Prefix, g.known().ClusterID(), "", -1)
	}
}

type gateKey struct{}

// InClear reports whether the server of a request has no TLS, so that every caller may do everything.
func InClear(ctx context.Context) bool {
	g := gateOf(ctx)
	return g != nil && g.TLS == nil
}

// gateOf returns the gate that a request has passed, or nil.
func gateOf(ctx context.Context) *Gate {
	g, _ := ctx.Value(gateKey{}).(*Gate)
	return g
}
