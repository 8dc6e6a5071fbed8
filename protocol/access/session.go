package access

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// A session is the login of a browser. No server stores it: a cookie has the secret of a token, sealed with a key that
// each coordinator derives from the hash of the secret. A thief of the cookie lacks the hash, and so learns no token. A
// thief of the hash lacks the secret, and so makes no cookie.
//
// The value of the cookie is base64url of: version (1 byte), id of the token (8), and what AES-256-GCM makes of the
// secret (32) and the session's end in Unix seconds (8). The id of the cluster is authenticated, too.
const (
	sessionVersion = 1
	sessionUse     = "coppice session 1" // for what the key is derived
	sessionHead    = 1 + protocol.TokenIDBytes
	sessionPlain   = secretBytes + 8
	sessionBytes   = sessionHead + 12 + sessionPlain + 16 // with nonce and tag
	cookiePrefix   = "__Secure-coppice-"
)

// MaxSession is the longest time of a session. It also ends with its token.
const MaxSession = 12 * time.Hour

// sessionText has one text for each value: a cookie that is changed in any bit is another cookie.
var sessionText = base64.RawURLEncoding.Strict()

var (
	errSession = errors.New("this login has ended: log in again")
	errCookies = errors.New("the browser has sent several cookies of the same name, and it is not known which one is " +
		"yours: delete the cookies of this host")
	errClear = errors.New("a cluster without TLS has no login: every caller may do everything")
)

// sessionCipher returns the cipher of the sessions of a token.
func sessionCipher(hash [sha256.Size]byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, hash[:], nil, sessionUse, 32)
	if err != nil {
		panic(err) // the sizes above are possible
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	sealed, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealed
}

// sealSession returns the value of the cookie of a session that ends at a time. ParseToken has returned id and secret.
func sealSession(id, secret, cluster string, until time.Time) string {
	head, errID := hex.DecodeString(id)
	plain, errSecret := hex.DecodeString(secret)
	if err := cmp.Or(errID, errSecret); err != nil {
		panic(err)
	}
	head = append([]byte{sessionVersion}, head...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(until.Unix()))
	sealed := sessionCipher(sha256.Sum256([]byte(secret))).Seal(nil, nil, plain, append(slices.Clone(head), cluster...))
	return sessionText.EncodeToString(append(head, sealed...))
}

// openSession returns what a cookie claims. The claim is empty if the value is not one of sealSession.
func openSession(value, cluster string) claim {
	sealed := make([]byte, sessionBytes)
	if len(value) != sessionText.EncodedLen(sessionBytes) {
		return claim{}
	}
	if n, err := sessionText.Decode(sealed, []byte(value)); err != nil || n != sessionBytes || sealed[0] != sessionVersion {
		return claim{}
	}
	return claim{id: hex.EncodeToString(sealed[1:sessionHead]), holds: func(t *Token) (until time.Time, ok bool) {
		head, rest := sealed[:sessionHead:sessionHead], sealed[sessionHead:]
		plain, err := sessionCipher(t.Hash).Open(nil, nil, rest, append(head, cluster...))
		if err != nil {
			return until, false
		}
		until = time.Unix(int64(binary.BigEndian.Uint64(plain[secretBytes:])), 0)
		secret := hex.EncodeToString(plain[:secretBytes])
		return until, holdsSecret(t, secret) && time.Now().Before(until)
	}}
}

// claim is what a caller shows to be the owner of a token.
type claim struct {
	id string // of the token; empty: the claim has not the form of any
	// holds reports whether the claim is about the token, and when it ends; zero: with the token.
	holds func(t *Token) (until time.Time, ok bool)
}

// claimOf reads the text of a token.
func claimOf(text string) claim {
	id, secret, err := ParseToken(text)
	if err != nil {
		return claim{}
	}
	return claim{id: id, holds: func(t *Token) (time.Time, bool) { return time.Time{}, holdsSecret(t, secret) }}
}

// holdsSecret reports whether a token has a secret.
func holdsSecret(t *Token, secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1
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
	switch cookies := r.CookiesNamed(cookiePrefix + known.Cluster()); len(cookies) {
	case 0:
		return Caller{}, g.unknown()
	case 1:
		return g.byClaim(r, known, openSession(cookies[0].Value, known.Cluster()), errSession)
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
		g.refused(r, c, err)
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
	g.setCookie(w, sealSession(id, secret, g.known().Cluster(), until), max(1, int(time.Until(until).Seconds())))
	return nil
}

// Logout has the browser that has sent a request forget its session. The session of another browser goes on.
func Logout(w http.ResponseWriter, r *http.Request) {
	if g := gateOf(r.Context()); g != nil && g.known() != nil {
		g.setCookie(w, "", -1)
	}
}

// setCookie answers with the cookie of a session. It lasts for so many seconds; below 0: it ends now. Other ports of
// the host share cookies, so its name has the id of the cluster.
func (g *Gate) setCookie(w http.ResponseWriter, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookiePrefix + g.known().Cluster(), Value: value, Path: g.Prefix + rights.PagePath,
		MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}
