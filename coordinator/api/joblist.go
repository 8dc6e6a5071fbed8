package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

func (s *Server) jobs(r *http.Request) (any, error) {
	q, err := protocol.ParseJobQuery(r.URL.Query())
	if err != nil {
		return nil, bad{err}
	}
	st := s.cfg.Store.State()
	chosen, total := choose(st.Jobs(), &q)
	return s.list(st, chosen, total, q.Full), nil
}

// list describes jobs.
func (s *Server) list(st *state.State, chosen []*state.Job, total int, full bool) *protocol.JobList {
	list := &protocol.JobList{Jobs: []protocol.JobInfo{}, Total: total}
	waits := s.waits(st)
	for _, j := range chosen {
		info := s.describe(j, st.Index(), waits)
		if !full {
			abridge(&info)
		}
		list.Jobs = append(list.Jobs, info)
	}
	return list
}

// abridge leaves out of a description what may be large: a list of many jobs takes at
// most some 2 KiB for each.
func abridge(info *protocol.JobInfo) {
	if info.Job != nil {
		j := *info.Job
		j.Params, j.Cells, info.Job = nil, nil, &j
	}
	info.Spec, info.Outcome, info.Models = nil, nil, nil
	info.Error, info.Suspect, info.Waiting = protocol.Brief(info.Error), protocol.Brief(info.Suspect), protocol.Brief(info.Waiting)
}

// rank is where a job stands in an order: by class, then by number and text.
type rank struct {
	job    *state.Job
	class  int // 0; 1: a measure of training rows; 2: it has no such value
	number float64
	text   string
}

// choose returns the jobs that a query asks for, in its order, and how many there are
// without its limit.
func choose(jobs []*state.Job, q *protocol.JobQuery) (chosen []*state.Job, total int) {
	key, descending := q.Order()
	var ranks []rank
	for _, j := range jobs {
		if (len(q.States) == 0 || slices.Contains(q.States, j.State)) && ofExperiment(j, q.Experiment) {
			ranks = append(ranks, rankOf(j, key))
		}
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		order := cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
		if descending {
			order = -order
		}
		return cmp.Or(cmp.Compare(a.class, b.class), order, cmp.Compare(b.job.ID, a.job.ID))
	})
	total = len(ranks)
	if q.Limit > 0 {
		ranks = ranks[:min(q.Limit, total)]
	}
	for _, r := range ranks {
		chosen = append(chosen, r.job)
	}
	return chosen, total
}

// ofExperiment reports whether a job is of the experiment that a query asks for.
func ofExperiment(j *state.Job, name string) bool {
	return name == "" || j.Experiment == name || name == protocol.AnyExperiment && j.Experiment != ""
}

func rankOf(j *state.Job, key string) rank {
	r := rank{job: j}
	switch key {
	case "submitted":
		r.number = float64(j.ID)
	case "ended":
		if r.number = float64(j.Ended); !j.State.Final() {
			r.class = 2
		}
	case "name":
		r.text = j.Name
	case "state":
		r.text = string(j.State)
	case "algorithm":
		r.text = j.Job.Algorithm
	case "dataset":
		r.text = j.Dataset
	default:
		r.number, r.class = rankOfMeasure(j, key)
	}
	return r
}

// rankOfMeasure ranks by a measure. Those of held-out rows come first: they tell
// more, and are greater than those of training rows.
func rankOfMeasure(j *state.Job, name string) (value float64, class int) {
	value, held, ok := j.Measure(name)
	switch {
	case !ok:
		return 0, 2
	case !held:
		return value, 1
	}
	return value, 0
}
