package page

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

//go:embed templates/login.html
var loginFile embed.FS

var loginTemplate = template.Must(template.ParseFS(loginFile, "templates/login.html"))

// The greatest sizes of the form of a login, and of the path that follows it.
const (
	maxLogin = 16 << 10
	maxNext  = 2 << 10
)

// gateView is what login.html shows: the login, or why there is none.
type gateView struct {
	Prefix string
	User   string // who has an identity already; empty: nobody
	Title  string
	Error  string // why the last request was refused; empty: it was not
	Next   string // path of the page that follows the login
	Form   bool   // true if a token helps
	Wait   bool   // true if the same request may succeed soon
}

// show writes the view with a status. A browser that waits asks again.
func (v *gateView) show(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.Wait {
		w.Header().Set("Retry-After", "2")
	}
	w.WriteHeader(status)
	_ = loginTemplate.ExecuteTemplate(w, "login.html", v) // an error: the browser has left
}

// login is the login of the page below a prefix.
type login struct{ prefix string }

// ask shows the form for a token, or says why a request for the page is refused. Without TLS there is no login.
func (l login) ask(w http.ResponseWriter, r *http.Request) {
	next := pathOfPage(r.URL.Query().Get("next"))
	status, refused := access.Refusal(r.Context())
	v := gateView{Prefix: l.prefix, Title: "Log in", Next: next, User: access.Of(r.Context()).Name}
	switch {
	case refused == nil && access.InClear(r.Context()):
		http.Redirect(w, r, l.prefix+next, http.StatusSeeOther)
		return
	case refused == nil:
		status, v.Form = http.StatusOK, true
	case status == http.StatusUnauthorized:
		v.Form = true
		if !access.Unknown(refused) {
			v.Error = refused.Error()
		}
	default:
		v.Title, v.Error, v.Wait = "Refused", refused.Error(), status == http.StatusServiceUnavailable
	}
	v.show(w, status)
}

// exchange takes a token and answers with the cookie of a session. The browser then goes on to the view that it was to
// show.
func (l login) exchange(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	v := gateView{Prefix: l.prefix, Title: "Log in", Form: true}
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if errors.As(err, new(*http.MaxBytesError)) {
			status = http.StatusRequestEntityTooLarge
		}
		v.Error, v.Next = "The form cannot be read: "+err.Error(), rights.PagePath
		v.show(w, status)
		return
	}
	v.Next = pathOfPage(r.PostForm.Get("next"))
	if err := access.Login(w, r, strings.TrimSpace(r.PostForm.Get("token"))); err != nil {
		status, known := access.StatusOf(err)
		if !known {
			status = http.StatusForbidden
		}
		v.Error, v.Wait = err.Error(), status == http.StatusServiceUnavailable
		v.show(w, status)
		return
	}
	http.Redirect(w, r, l.prefix+v.Next, http.StatusSeeOther)
}

// leave ends the session of a browser.
func (l login) leave(w http.ResponseWriter, r *http.Request) {
	access.Logout(w, r)
	http.Redirect(w, r, l.prefix+rights.PagePath+"/login", http.StatusSeeOther)
}

// pathOfPage returns the path and the query of a view that text names, or of the first view if text names no view.
func pathOfPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxNext || strings.ContainsAny(text, "\\#") || u.IsAbs() || u.Host != "" || u.User != nil {
		return rights.PagePath
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, rights.PagePath+"/"), "/")
	if !rights.OfPage(u.Path) || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") ||
		slices.Contains([]string{"login", "logout", "live", "static"}, first) {
		return rights.PagePath
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.Query().Encode()}).String()
}

// Starting answers for the page of a coordinator that has no state yet. waits says what it waits for.
func Starting(prefix string, waits func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		v := gateView{Prefix: prefix, Title: "Starting", Error: waits(), Wait: true}
		v.show(w, http.StatusServiceUnavailable)
	})
}
