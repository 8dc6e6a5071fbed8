package page

import (
	"html/template"
	"slices"
	"sync"

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
