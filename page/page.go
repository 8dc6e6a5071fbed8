// Package page serves web pages about a cluster, or about a folder of experiments, below /ui.
//
// The page is a client of the API in the same process. A view asks the API with the context of the browser's
// request, and so with its caller. So it shows what the API gives this caller, with the same rights and errors, and a
// coordinator that does not lead forwards the request. A view is a function that fills a template. Parts of a template
// that are live (see live.go) are sent again after each change.
//
// All pages work without script. Nothing comes from another server, and no page has an inline style or script.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Root is the path of all pages.
const Root = rights.PagePath

// Config is what the pages show.
type Config struct {
	// API answers the requests of package rights. A request has the context, and so the caller, of a browser's request.
	API http.Handler
	// Prefix is the path below which a proxy has the pages; empty: there is none. Requests come without it.
	Prefix string
	// Folder, if set, is the folder that API shows. Then there are no workers, coordinators or actions.
	Folder string
	// Edits, if set, returns a number that changes with all that API says, except how far jobs are. Without it, each visit
	// makes its view anew.
	Edits func() uint64
	// Open is true if everybody who reaches the port of a cluster may do everything, and other machines do.
	Open bool
	Log  *slog.Logger
}

//go:embed templates static
var files embed.FS

// site serves the pages of a Config.
type site struct {
	Config
	api    source
	views  map[string]*template.Template // by the name of the view's template
	static map[string]asset              // by the name of the file
	live   hub
	acted  atomic.Uint64 // actions that were carried out, perhaps in vain

	reports reports
}

// asset is a file that browsers keep.
type asset struct {
	content []byte
	hash    string // of the content, a part of its address
	kind    string
}

// visit is a request of a browser.
type visit struct {
	*http.Request
	site *site
	api  source
}

// get asks the API for a value.
func (v *visit) get(path string, query url.Values, into any) error {
	return v.api.get(v.Context(), path, query, into)
}

// may reports whether the caller may make a request of the API about what owner has made.
func (v *visit) may(pattern, owner string) bool {
	if v.site.Folder != "" {
		return false
	}
	method, route, _ := strings.Cut(pattern, " ")
	switch rights.OnHTTP(access.Of(v.Context()).Role, method, route) {
	case rights.Full:
		return true
	case rights.Own:
		return access.Owns(access.With(v.Context(), *access.Of(v.Context())), owner)
	}
	return false
}

// view is a page that a template shows.
type view struct {
	Title    string
	Section  string // of the navigation
	Template string // the name of its file, without .html
	Data     any
	// Follow, if set, is the path of a stream of the API. A line of it says that the view may have changed. Without
	// it, a live view is made again every two seconds.
	Follow string
	// Still is true if the view does not change any more.
	Still bool
	// Shared is true if visits share the view though it is still. A form with a token of its own is for one visit.
	Shared bool
	Status int // of the response; 0: 200
}

// viewFunc makes a view.
type viewFunc func(*visit) (*view, error)

// action carries out a form. It returns the path to go to, below Root.
type action func(*visit) (to string, err error)

// Error is an error that a page shows.
type Error struct {
	Status int
	Text   string
	// Problem is the answer of the API, if the error comes from it.
	Problem *protocol.Problem
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// frame is what the layout shows, with the view inside.
type frame struct {
	*view
	Site   *site
	Main   template.HTML
	Caller *access.Caller
	Path   string // of the view, with its query, below Root
	Others []string
	Error  *Error   // in place of the view
	List   *section // the list that has what was not found; nil: there is none
	Away   bool     // true if the caller is not known, or must wait: no view can be shown
}

// serve answers with a page that no other visit sees.
func (s *site) serve(w http.ResponseWriter, r *http.Request, build viewFunc) {
	v, main, err := s.render(&visit{Request: r, site: s, api: s.api}, build)
	f := frame{view: v, Main: template.HTML(main), Path: below(r)}
	if err != nil {
		f.Error = asError(err)
		f.view = &view{Title: f.Error.Title(), Still: true, Status: f.Error.Status}
		if f.Error.Status == http.StatusNotFound {
			f.List = s.listFor(f.Path)
		}
	}
	s.show(w, r, cmp.Or(f.Status, http.StatusOK), &f)
}

// show answers with the layout, and with what a frame has.
func (s *site) show(w http.ResponseWriter, r *http.Request, status int, f *frame) {
	text, err := s.lay(r, f)
	s.write(w, r, status, text, err)
}

// lay makes the page of a frame.
func (s *site) lay(r *http.Request, f *frame) ([]byte, error) {
	if f.Site, f.Caller = s, access.Of(r.Context()); s.Folder == "" && !f.Away {
		f.Others = s.others(r)
	}
	var b bytes.Buffer
	err := s.views["layout"].ExecuteTemplate(&b, "layout", f)
	return b.Bytes(), err
}

// write answers with a page, or says that there is none.
func (s *site) write(w http.ResponseWriter, r *http.Request, status int, text []byte, err error) {
	if err != nil {
		s.Log.Error("a page could not be made", "path", r.URL.Path, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // without it, the text is sent in more writes
	w.WriteHeader(status)
	w.Write(text) // an error has no reader any more
}

// render makes a view and its part of the page.
func (s *site) render(v *visit, build viewFunc) (*view, []byte, error) {
	made, err := build(v)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := s.views[made.Template].ExecuteTemplate(&b, "main", made.Data); err != nil {
		return nil, nil, err
	}
	return made, b.Bytes(), nil
}

// act carries out a form, and answers with the way to another page.
func (s *site) act(w http.ResponseWriter, r *http.Request, do action) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	to, err := "", r.ParseForm()
	if err != nil {
		err = &Error{Status: http.StatusBadRequest, Text: fmt.Sprintf("The form cannot be read: %v.", err)}
	} else {
		to, err = do(&visit{Request: r, site: s, api: s.api})
		s.acted.Add(1)
	}
	if err != nil {
		form, shown := errors.AsType[*again](err)
		s.serve(w, r, func(*visit) (*view, error) {
			if shown {
				return form.view, nil
			}
			return nil, err
		})
		return
	}
	w.Header().Set("Location", s.Prefix+Root+to)
	w.WriteHeader(http.StatusSeeOther)
}

// again is the error of an action that shows its form again, such as with mistakes.
type again struct{ *view }

// Error implements error.
func (*again) Error() string { return "the form is shown again" }

// maxForm bounds the bytes of a form.
const maxForm = 1 << 20

// below returns the path of a view below Root, with its query.
func below(r *http.Request) string {
	text := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), Root), "/live")
	if r.URL.RawQuery != "" {
		text += "?" + r.URL.RawQuery
	}
	return text
}

// asError returns what a page shows of an error.
func asError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Status: http.StatusInternalServerError, Text: err.Error()}
}

// others returns the addresses of the pages of the other coordinators, which a browser uses if this one dies.
func (s *site) others(r *http.Request) (all []string) {
	var c protocol.Cluster
	if err := s.api.get(r.Context(), "/v1/cluster", url.Values{"local": {"true"}}, &c); err != nil || c.PublicURL != "" {
		return nil // a proxy chooses a coordinator
	}
	scheme := "https"
	if access.InClear(r.Context()) {
		scheme = "http"
	}
	for _, m := range c.Coordinators {
		if m.HTTP != r.Host {
			all = append(all, scheme+"://"+m.HTTP)
		}
	}
	return all
}

// entries lists the files of an embedded folder.
func entries(dir string) (names []string) {
	list, _ := fs.ReadDir(files, dir) // embedded, so it exists
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// section is an element of the navigation.
type section struct{ Path, Title string }

// Sections lists the sections of the navigation.
func (s *site) Sections() []section {
	all := []section{{"", "Overview"}, {"jobs", "Jobs"}, {"experiments", "Experiments"}, {"datasets", "Datasets"},
		{"models", "Models"}}
	if s.Folder != "" {
		return []section{all[2], all[1], all[4]}
	}
	return append(all, section{"workers", "Workers"}, section{"coordinators", "Coordinators"}, section{"audit", "Audit"},
		section{"submit", "Submit"})
}

// listFor returns the section that a path belongs to; nil: it belongs to none.
func (s *site) listFor(path string) *section {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, one := range s.Sections() {
		if one.Path == first && first != "submit" {
			return &one
		}
	}
	return nil
}

// parse reads the templates. Each view has the parts of layout.html and parts.html.
func (s *site) parse() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(s.functions()).ParseFS(files, "templates/layout.html",
		"templates/parts.html"))
	all := map[string]*template.Template{"layout": base}
	for _, file := range entries("templates") {
		name := strings.TrimSuffix(file, ".html")
		if name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+file))
		}
	}
	return all
}

// functions are the functions of templates.
func (s *site) functions() template.FuncMap {
	return template.FuncMap{
		// link returns the address of a page. Parts of the path are escaped; the last part may be a query.
		"link": func(parts ...any) string {
			text := s.Prefix + Root
			for _, p := range parts {
				if q, ok := p.(url.Values); ok {
					text += "?" + q.Encode()
				} else {
					text += "/" + escapePath(fmt.Sprint(p))
				}
			}
			return text
		},
		// folder reports whether the page is about a folder: it has no requests that change something.
		"folder":  func() bool { return s.Folder != "" },
		"dataset": s.nameDataset,
		"static":  func(file string) string { return s.Prefix + Root + "/static/" + s.static[file].hash + "/" + file },
		"live":    func(id string) template.HTML { return template.HTML(liveBegin + template.HTMLEscapeString(id) + `">`) },
		"endlive": func() template.HTML { return liveEnd },
		"time":    formatTime, "seconds": formatSeconds, "number": formatNumber,
		"dict": dict, "bytes": formatBytes, "moment": func(unix float64) string { return formatTime(int64(unix)) },
		"event": eventNumber, "failure": failureOf,
		"shell": shellword.Quote, "brief": protocol.Brief, "count": counted, "percent": formatPercent,
		"digest":   func(text string) string { return text[:min(len(text), 12)] },
		"fraction": func(j protocol.JobInfo) float64 { return fractionOf(&j) },
		"ran":      func(j protocol.JobInfo) float64 { return remaining.Ran(&j, time.Now()) },
	}
}

// nameDataset names a dataset: on a cluster, by a link to its page. Model files in a folder know only its digest.
func (s *site) nameDataset(name string) template.HTML {
	text := template.HTMLEscapeString(name)
	switch isDigest := len(name) == 2*sha256.Size && strings.Trim(name, "0123456789abcdef") == ""; {
	case s.Folder == "":
		return template.HTML(`<a href="` + template.HTMLEscapeString(s.Prefix+Root+"/datasets/"+escapePath(name)) + `">` +
			text + `</a>`)
	case isDigest:
		return template.HTML(`<code title="` + text + `">` + text[:12] + `</code>`)
	}
	return template.HTML(text)
}

// dict returns a map of names and values, for templates with several arguments.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// escapePath escapes the elements of a path.
func escapePath(text string) string {
	parts := strings.Split(text, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// Title names the kind of error.
func (e *Error) Title() string { return cmp.Or(http.StatusText(e.Status), "Error") }

// notFound begins the text of an error of the API. The title of the page says the same.
const notFound = "not found: "

// Sentence is the text of the error as a sentence.
func (e *Error) Sentence() string {
	text := capital(strings.TrimPrefix(e.Text, notFound))
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".:!?") {
		text += "."
	}
	return text
}
