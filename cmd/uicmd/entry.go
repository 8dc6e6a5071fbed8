package uicmd

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/page"
)

// entry lets in the browsers that know a token: other users of the machine reach its loopback addresses, too. A browser
// exchanges the token in the printed address for a cookie. The lines of commands are no secret, so a browser that the
// command opens gets a token that counts once.
type entry struct {
	token, once, cookie string
	used                atomic.Bool // true if once was used
	name                string      // of the cookie: all ports of a host share cookies
}

// tokenParam is the parameter of addresses that has the token.
const tokenParam = "token"

func newEntry(l net.Listener) *entry {
	_, port, _ := net.SplitHostPort(l.Addr().String()) // a listener's address has a port
	return &entry{token: rand.Text(), once: rand.Text(), cookie: rand.Text(), name: "coppice-ui-" + port}
}

// address returns the address of the page with a token.
func (e *entry) address(l net.Listener, token string) string {
	return "http://" + l.Addr().String() + page.Root + "?" + tokenParam + "=" + token
}

// knows reports whether a text is one of the tokens.
func (e *entry) knows(text string) bool {
	return same(text, e.token) || same(text, e.once) && !e.used.Swap(true)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// protect answers requests without the cookie or a token with advice.
func (e *entry) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		c, err := r.Cookie(e.name)
		knows := e.knows(query.Get(tokenParam)) // also of a browser with the cookie: the token counts once
		switch has := err == nil && same(c.Value, e.cookie); {
		case knows, has && query.Has(tokenParam):
			http.SetCookie(w, &http.Cookie{Name: e.name, Value: e.cookie, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteLaxMode})
			query.Del(tokenParam)
			to := url.URL{Path: path.Clean("/" + r.URL.Path), RawQuery: query.Encode()}
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, to.RequestURI(), http.StatusSeeOther)
		case has:
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "This page needs a token. Open the address that coppice ui has printed, with the token in it.",
				http.StatusForbidden)
		}
	})
}
