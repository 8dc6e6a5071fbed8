package served

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/experiment/local"
	"github.com/coppice-ldl/coppice/experiment/report"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxKeptReports bounds the bytes of the reports that are kept.
const maxKeptReports = 32 << 20

// reportHandlers answer requests for reports, and keep the reports that were made last.
type reportHandlers struct {
	*experimentHandlers
	turn chan struct{} // has a value while no report is made

	mu  sync.Mutex // guards all
	all map[reportKey]*keptReport
}

func newReports(of *experimentHandlers) *reportHandlers {
	k := &reportHandlers{experimentHandlers: of, turn: make(chan struct{}, 1), all: make(map[reportKey]*keptReport)}
	k.turn <- struct{}{}
	return k
}

// reportKey says which report it is.
type reportKey struct {
	path string
	protocol.ReportQuery
}

// keptReport is a report with the versions of the files that it was made from.
type keptReport struct {
	plan, runs stamp
	text       []byte
	made       time.Time
	took       time.Duration
}

// recent returns a report that is as new as the files of the experiment, or nearly so: if the files change all the
// time, a report is kept for ten times as long as it took to make.
func (k *reportHandlers) recent(key reportKey, plan, runs stamp) *keptReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.all[key]
	if r != nil && (r.plan.is(plan) && r.runs.is(runs) || time.Since(r.made) < max(linesApart, looksApart*r.took)) {
		return r
	}
	return nil
}

func (k *reportHandlers) put(key reportKey, r *keptReport) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[key] = r
	sum := 0
	for _, r := range k.all {
		sum += len(r.text)
	}
	var keys []reportKey
	for key := range k.all {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b reportKey) int { return k.all[a].made.Compare(k.all[b].made) })
	for _, old := range keys {
		if sum > maxKeptReports && old != key {
			sum -= len(k.all[old].text)
			delete(k.all, old)
		}
	}
}

// get answers with the report of an experiment, of the runs that have ended.
func (k *reportHandlers) get(w http.ResponseWriter, r *http.Request) {
	q := protocol.ReportQuery{Format: "table"}
	err := protocol.ReadQuery(r.URL.Query(), "a report", q.Params())
	if err == nil {
		err = report.Check(q.Format, optionsOf(&q))
	}
	if err != nil {
		respond(w, nil, wrong(err))
		return
	}
	p, err := k.find(r)
	var made *keptReport
	if err == nil {
		made, err = k.build(r.Context(), p, q)
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", report.ContentType(q.Format))
	w.Header().Set("Content-Length", strconv.Itoa(len(made.text)))
	w.Write(made.text) // an error has no reader any more
}

func optionsOf(q *protocol.ReportQuery) report.Options {
	return report.Options{NoTimes: q.NoTimes, Sample: q.Sample, AllTests: q.AllTests, Level: q.Level}
}

// build makes a report, one at a time.
func (k *reportHandlers) build(ctx context.Context, p *place, q protocol.ReportQuery) (*keptReport, error) {
	key := reportKey{p.path, q}
	stamps := func() (plan, runs stamp) {
		return k.stamp(path.Join(p.path, planFile)), k.stamp(path.Join(p.path, runsFile))
	}
	plan, runs := stamps()
	if r := k.recent(key, plan, runs); r != nil {
		return r, nil
	}
	d, err := k.describe(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	if d.State == protocol.Failed {
		return nil, errors.New(cmp.Or(d.Errors...))
	}
	if err := report.CheckSize(d.Runs, d.recorded); err != nil {
		return nil, wrong(err)
	}
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { k.turn <- struct{}{} }()
	plan, runs = stamps()
	if r := k.recent(key, plan, runs); r != nil { // it was made meanwhile
		return r, nil
	}
	began := time.Now()
	e, err := local.Read(ctx, k.path(p.path), "")
	if err != nil {
		return nil, err
	}
	o := optionsOf(&q)
	o.Notes = e.Notes
	var b bytes.Buffer
	if err := report.Write(&b, e.Table, q.Format, o); err != nil {
		if errors.Is(err, report.ErrOptions) {
			err = wrong(err)
		}
		return nil, err
	}
	made := &keptReport{plan: plan, runs: runs, text: b.Bytes(), made: time.Now(), took: time.Since(began)}
	k.put(key, made)
	return made, nil
}
