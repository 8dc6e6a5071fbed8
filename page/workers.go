package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// A worker is slow if its tasks take so many times as long as tasks of the other workers, and fast if they take that
// part of it.
const slowRatio = 1.5

// workerLine is a worker as the list shows it.
type workerLine struct {
	*protocol.Worker
	// Ratio is the time of its tasks divided by the median of the other workers; 0: it cannot be compared.
	Ratio float64
	Kind  string // of the tasks that Ratio is about
	Times []setting
	Seen  string
	// State is one word for the style sheet, and Detail what else Worker.State says.
	State, Detail string
}

// Slow reports whether the worker is slow.
func (w *workerLine) Slow() bool { return w.Ratio >= slowRatio }

// Speed says in words how fast the worker is.
func (w *workerLine) Speed() string {
	switch {
	case w.Ratio == 0:
		return ""
	case w.Ratio >= slowRatio:
		return fmt.Sprintf("slow: a task %q takes %s times as long as on the other workers", w.Kind, formatRatio(w.Ratio))
	case w.Ratio <= 1/slowRatio:
		return fmt.Sprintf("fast: %s times as fast as the other workers", formatRatio(1/w.Ratio))
	}
	return "as fast as the other workers"
}

// workerLines compares workers with each other. The slowest is the first, then the workers with a problem, then others
// by name.
func workerLines(c *protocol.Cluster) []workerLine {
	lines := make([]workerLine, len(c.Workers))
	for i := range c.Workers {
		w := &c.Workers[i]
		l := workerLine{Worker: w, Seen: since(w.LastSeen)}
		if l.State, l.Detail, _ = strings.Cut(w.State, ": "); isQuarantined(c, w.ID) {
			l.State, l.Detail = string(protocol.IdleQuarantined), ""
		}
		l.Kind, l.Ratio = relative(c.Workers, i)
		for _, kind := range slices.Sorted(maps.Keys(w.TaskSeconds)) {
			l.Times = append(l.Times, setting{kind, formatShort(w.TaskSeconds[kind])})
		}
		lines[i] = l
	}
	group := func(l *workerLine) int {
		switch {
		case l.Slow():
			return 0
		case l.State != "alive":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(lines, func(a, b workerLine) int {
		order := cmp.Compare(group(&a), group(&b))
		if order == 0 && a.Slow() {
			order = cmp.Compare(b.Ratio, a.Ratio)
		}
		return cmp.Or(order, cmp.Compare(a.ID, b.ID))
	})
	return lines
}

// isQuarantined reports whether a worker is quarantined.
func isQuarantined(c *protocol.Cluster, worker string) bool {
	return slices.ContainsFunc(c.Quarantined, func(q protocol.Quarantined) bool { return q.Worker == worker })
}

// relative compares the time of a task with the median of the other workers that have computed the same kind of task.
// The kind that most of the worker's time went into counts, or the slowest kind if no other worker has that one.
func relative(workers []protocol.Worker, at int) (kind string, ratio float64) {
	own := &workers[at]
	for _, k := range slices.Sorted(maps.Keys(own.TaskSeconds)) {
		var others []float64
		for i := range workers {
			if seconds, ok := workers[i].TaskSeconds[k]; ok && i != at && seconds > 0 {
				others = append(others, seconds)
			}
		}
		if len(others) == 0 {
			continue
		}
		slices.Sort(others)
		median := (others[(len(others)-1)/2] + others[len(others)/2]) / 2
		r := own.TaskSeconds[k] / median
		if k == own.MainKind {
			return k, r
		}
		if r > ratio {
			kind, ratio = k, r
		}
	}
	return kind, ratio
}

// workersPage is what the list of workers shows.
type workersPage struct {
	list
	Workers     []workerLine
	Quarantined []protocol.Quarantined
	Busy, Slots int
	Slow        int
	Compared    int // workers whose times can be compared
	MayTrust    bool
	Leader      string
	Start       string // the command that starts a worker
}

// workersView lists the workers, the slowest first.
func workersView(v *visit) (*view, error) {
	var c protocol.Cluster
	if err := v.get("/v1/cluster", nil, &c); err != nil {
		return nil, err
	}
	p := workersPage{Quarantined: c.Quarantined, MayTrust: v.may("POST /v1/workers/{worker}/trust", ""), Leader: c.Leader}
	p.Start = protocol.StartWorker(protocol.JoinList(c.Coordinators), protocol.SecurityFlags(v.TLS != nil, c.Insecure))
	all := workerLines(&c)
	p.Total = len(all)
	for i := range all {
		p.Busy += all[i].Busy
		p.Slots += all[i].Slots
		if all[i].Slow() {
			p.Slow++
		}
		if all[i].Ratio > 0 {
			p.Compared++
		}
	}
	number := 1
	if text := v.URL.Query().Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if last := max(1, (len(all)+pageOf-1)/pageOf); err != nil || n < 1 || n > last {
			return nil, &Error{Status: http.StatusBadRequest,
				Text: fmt.Sprintf("page: want a number from 1 to %d, got %.40q.", last, text)}
		}
		number = n
	}
	first := (number - 1) * pageOf
	p.Workers = all[first:min(first+pageOf, len(all))]
	if first+pageOf < len(all) {
		p.Next = url.Values{"page": {strconv.Itoa(number + 1)}}
	}
	return &view{Title: "Workers", Section: "workers", Template: "workers", Data: &p}, nil
}

// trustWorker ends the quarantine of a worker.
func trustWorker(v *visit) (to string, err error) {
	path := "/v1/workers/" + url.PathEscape(v.PathValue("worker")) + "/trust"
	return "/workers", v.api.post(v.Context(), path, nil, nil, nil)
}
