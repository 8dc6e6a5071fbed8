package page

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol/access"
)

// The greatest sizes of the form of a login, and of the path that follows it.
const (
	maxLogin = 16 << 10
	maxNext  = 2 << 10
)

// gate is what login.html shows in place of a view: the login, or why the view cannot be shown.
type gate struct {
	Title string
	Error string // why the request was refused; empty: it was not
	Next  string // path of the page that follows the login, below the prefix
	Form  bool   // true if a token helps
	Wait  bool   // true if the same request may succeed soon
}

// turnAway answers with a gate. A browser that waits asks again.
func (s *site) turnAway(w http.ResponseWriter, r *http.Request, status int, g *gate) {
	var main bytes.Buffer
	if err := s.views["login"].ExecuteTemplate(&main, "main", g); err != nil {
		s.Log.Error("the login could not be made", "error", err)
	}
	if g.Wait {
		w.Header().Set("Retry-After", "2")
		w.Header().Set("Refresh", "2") // what browsers obey
	}
	s.show(w, r, status, &frame{view: &view{Title: g.Title, Still: true}, Main: template.HTML(main.String()), Away: true})
}

// askLogin shows the form for a token, or says why a request for the page is refused. Without TLS there is no login.
func (s *site) askLogin(w http.ResponseWriter, r *http.Request) {
	g := gate{Title: "Log in", Next: pathOfPage(r.URL.Query().Get("next")), Form: true}
	status, refused := access.Refusal(r.Context())
	switch {
	case refused == nil && (s.Folder != "" || access.InClear(r.Context())):
		http.Redirect(w, r, s.Prefix+g.Next, http.StatusSeeOther)
		return
	case refused == nil:
		status = http.StatusOK
	case status != http.StatusUnauthorized:
		g.Title, g.Error, g.Form, g.Wait = "Refused", refused.Error(), false, status == http.StatusServiceUnavailable
	case !access.Unknown(refused):
		g.Error = refused.Error()
	}
	s.turnAway(w, r, status, &g)
}

// login exchanges a token for the cookie of a session. The browser then goes on to the view that it was to show.
func (s *site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	g := gate{Title: "Log in", Next: Root, Form: true}
	err, status := r.ParseForm(), http.StatusBadRequest
	if errors.As(err, new(*http.MaxBytesError)) {
		status = http.StatusRequestEntityTooLarge
	}
	if err == nil {
		g.Next = pathOfPage(r.PostForm.Get("next"))
		err = access.Login(w, r, strings.TrimSpace(r.PostForm.Get("token")))
		if known, ok := access.StatusOf(err); ok {
			status = known
		}
	}
	if err == nil {
		http.Redirect(w, r, s.Prefix+g.Next, http.StatusSeeOther)
		return
	}
	g.Error, g.Wait = err.Error(), status == http.StatusServiceUnavailable
	s.turnAway(w, r, status, &g)
}

// logout ends the session of a browser.
func (s *site) logout(w http.ResponseWriter, r *http.Request) {
	access.Logout(w, r)
	http.Redirect(w, r, s.Prefix+Root+"/login", http.StatusSeeOther)
}

// pathOfPage returns the path and the query of a view that text names, or of the first view if text names no view.
func pathOfPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxNext || strings.ContainsAny(text, "\\#") || u.IsAbs() || u.Host != "" {
		return Root
	}
	below, ok := strings.CutPrefix(u.Path, Root+"/")
	first, _, _ := strings.Cut(below, "/")
	if !ok || path.Clean(u.Path) != u.Path || slices.Contains([]string{"login", "logout", "live", "static"}, first) {
		return Root
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.Query().Encode()}).String()
}
