package access

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Protect sets the headers with which a browser protects the page. A handler may replace them.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// crossSite returns what refuses changes that a page of another site asks for: a browser sends the certificate or the
// cookie of its user with them. Programs that are no browsers do not state a site. own is the origin of the page, if it
// differs from the server's; it may be empty.
func crossSite(own string) *http.CrossOriginProtection {
	c := http.NewCrossOriginProtection()
	if own != "" {
		if err := c.AddTrustedOrigin(own); err != nil { // a proxy may send another host than the browser's
			panic(err)
		}
	}
	return c
}

// viaOf returns the name of the proxy that has sent a request, or nothing.
func viaOf(r *http.Request) string {
	if peer := certs.PeerOf(r); peer != nil && peer.Role == certs.Proxy && peer.Refused() == nil {
		return peer.Name
	}
	return ""
}

// refusal is why a request for the page has no caller.
type refusal struct {
	status int
	err    error
}

type refusalKey struct{}

// toLogin returns the request for the login in place of a request for the page that has no caller. It returns nil if it
// has answered itself: a browser that sends a form goes to the login by a visit.
func toLogin(w http.ResponseWriter, r *http.Request, prefix string, status int, why error) *http.Request {
	login := &url.URL{Path: rights.PagePath + "/login"}
	visit := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !visit && status == http.StatusUnauthorized {
		login.Path = prefix + login.Path
		http.Redirect(w, r, login.String(), http.StatusSeeOther)
		return nil
	}
	if visit {
		login.RawQuery = url.Values{"next": {r.URL.RequestURI()}}.Encode()
	}
	r = r.WithContext(context.WithValue(r.Context(), refusalKey{}, refusal{status, why}))
	r.URL = login
	if !visit {
		r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	}
	return r
}

// Refusal returns why a request for the page has no caller, and the status of the answer. If nobody has refused it, err
// is nil.
func Refusal(ctx context.Context) (status int, err error) {
	why, _ := ctx.Value(refusalKey{}).(refusal)
	return why.status, why.err
}

// Unknown reports whether an error of Refusal only says that a caller has shown no identity.
func Unknown(err error) bool { return errors.Is(err, certs.ErrNoCertificate) }

// setCookie answers with the cookie of a session. It lasts for so many seconds; below 0: it ends now. Other ports of
// the host share cookies, so its name has the id of the cluster. prefix is the path below which a proxy has the page.
func setCookie(w http.ResponseWriter, prefix, cluster, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookiePrefix + cluster, Value: value, Path: prefix + rights.PagePath,
		MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}
