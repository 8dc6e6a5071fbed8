package page

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// How many reports are kept, and how many bytes each has at most.
const (
	keptReports   = 16
	maxKeptReport = 256 << 10
)

// reports keeps the newest reports of experiments that have ended, because a report takes long to make.
type reports struct {
	mu   sync.Mutex
	kept []keptReport // the newest first; guarded by mu
}

type keptReport struct {
	key  reportKey
	text template.HTML
}

// reportKey is what decides the text of a report. A private report is kept for one caller.
type reportKey struct {
	name, outline string
	newest        uint64 // job
	done          int
	caller        string
	role          rights.Role
}

// find returns a report that is kept.
func (k *reports) find(key reportKey) (template.HTML, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := slices.IndexFunc(k.kept, func(r keptReport) bool { return r.key == key }); at >= 0 {
		return k.kept[at].text, true
	}
	return "", false
}

// keep keeps a report, in place of the oldest one if there are too many.
func (k *reports) keep(key reportKey, text template.HTML) {
	if len(text) > maxKeptReport {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = slices.DeleteFunc(k.kept, func(r keptReport) bool { return r.key == key })
	k.kept = slices.Insert(k.kept[:min(len(k.kept), keptReports-1)], 0, keptReport{key, text})
}

// reportView shows the report of the runs that have ended. It is made once for each visit, unless it is kept.
func reportView(v *visit) (*view, error) {
	name := v.PathValue("name")
	var p experimentPage
	if err := v.get("/v1/experiments/"+url.PathEscape(name), nil, &p.Experiment); err != nil {
		return nil, err
	}
	p.Report, p.Trouble = reportOf(v, &p.Experiment)
	return &view{Title: "Report of " + name, Section: "experiments", Template: "report", Data: &p, Still: true}, nil
}

// reportOf returns the report of an experiment as a part of a page, or why there is none.
func reportOf(v *visit, x *protocol.Experiment) (template.HTML, *Error) {
	key := reportKey{name: x.Name, outline: x.Outline, newest: x.Newest, done: x.Done}
	if x.Private {
		c := access.Of(v.Context())
		key.caller, key.role = c.Name, c.Role
	}
	if text, ok := v.site.reports.find(key); ok && x.Ended() {
		return text, nil
	}
	b, err := v.api.bytes(v.Context(), http.MethodGet, "/v1/experiments/"+url.PathEscape(x.Name)+"/report",
		url.Values{"format": {"fragment"}}, nil)
	if errors.Is(err, errLarge) {
		return "", &Error{Status: http.StatusBadRequest, Text: "The report is too large for a page."}
	} else if err != nil {
		return "", asError(err)
	}
	text := template.HTML(b) // package report has escaped what others wrote
	if x.Ended() {
		v.site.reports.keep(key, text)
	}
	return text, nil
}
