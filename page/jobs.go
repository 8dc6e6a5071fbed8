package page

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// pageOf is how many elements a list shows at once.
const pageOf = 100

// list is the frame of a list that is shown in parts.
type list struct {
	Query url.Values // of the view
	Total int
	Next  url.Values // of the next part; nil: there is none
	// Filtered is true if the query leaves something out.
	Filtered bool
}

// filters are the parameters that leave something out of a list.
var filters = []string{"name", "owner", "state", "dataset", "algorithm", "experiment", "since", "until"}

// newList reads the query of a list: it is passed to the API, which checks it. Empty fields of a form count as absent.
// A name without * finds all names that it is a part of.
func newList(v *visit) (l list, query url.Values) {
	query = make(url.Values)
	for key, values := range v.URL.Query() {
		if text := strings.TrimSpace(values[0]); text != "" {
			query.Set(key, text)
		}
	}
	l.Query = maps.Clone(query)
	l.Filtered = slices.ContainsFunc(filters, query.Has)
	if name := query.Get("name"); name != "" && !strings.Contains(name, "*") {
		query.Set("name", "*"+name+"*")
	}
	query.Set("limit", strconv.Itoa(pageOf))
	return l, query
}

// follow notes the query of the next part, which begins after a name or number.
func (l *list) follow(after string) {
	if after != "" {
		l.Next = maps.Clone(l.Query)
		l.Next.Set("after", after)
	}
}

// Where returns the query of the first part of the list with another value of a parameter; empty: without it.
func (l *list) Where(key, value string) url.Values {
	query := maps.Clone(l.Query)
	query.Del("after")
	if query.Set(key, value); value == "" {
		query.Del(key)
	}
	return query
}

// stateCount is how many jobs of a state there are.
type stateCount struct {
	State  protocol.JobState
	Count  int
	Chosen bool
}

// jobsPage is what the list of jobs shows.
type jobsPage struct {
	list
	Jobs   []listedJob
	States []stateCount
	All    int // jobs of all states
	May    jobRights
}

// listedJob is a job of the list.
type listedJob struct {
	*protocol.JobInfo
	Fraction float64 // that is done, of a job that runs; 0: not known
}

// jobsView lists jobs.
func jobsView(v *visit) (*view, error) {
	p := jobsPage{May: v.rights(nil)}
	var query url.Values
	p.list, query = newList(v)
	var answer protocol.JobList
	if err := v.get("/v1/jobs", query, &answer); err != nil {
		return nil, err
	}
	for i := range answer.Jobs {
		j := listedJob{JobInfo: &answer.Jobs[i]}
		if j.State == protocol.Running {
			j.Fraction = fractionOf(j.JobInfo)
		}
		p.Jobs = append(p.Jobs, j)
	}
	if p.Total = answer.Total; answer.Next != 0 {
		p.follow(strconv.FormatUint(answer.Next, 10))
	}
	for _, state := range protocol.JobStates {
		if n := answer.States[state]; n > 0 || query.Get("state") == string(state) {
			p.States = append(p.States, stateCount{state, n, query.Get("state") == string(state)})
			p.All += n
		}
	}
	return &view{Title: "Jobs", Section: "jobs", Template: "jobs", Data: &p}, nil
}

// jobRights says what the caller may do.
type jobRights struct {
	Change bool // this job
	Submit bool // jobs
}

// rights says what the caller may do with a job; nil: with none.
func (v *visit) rights(j *protocol.JobInfo) jobRights {
	if v.site.Folder != "" {
		return jobRights{}
	}
	submit := rights.OnHTTP(access.Of(v.Context()).Role, http.MethodPost, "/v1/jobs") != rights.None
	return jobRights{Submit: submit, Change: submit && j != nil && access.Owns(v.Context(), j.Owner)}
}

// fractionOf returns the part of a job that is done; 0: not known.
func fractionOf(j *protocol.JobInfo) float64 {
	switch p := j.Progress; {
	case p != nil && p.Steps > 0 && j.CellCount == 0:
		return min(1, float64(p.Step)/float64(max(p.Steps, p.MostSteps)))
	case j.Tasks > 0:
		return min(1, float64(j.Gathered)/float64(j.Tasks))
	}
	return 0
}

// progressText says how far a job is. e may be nil.
func progressText(j *protocol.JobInfo, e *remaining.Estimate) string {
	var parts []string
	if p := j.Progress; p != nil && p.Step > 0 && j.CellCount == 0 {
		text := "step " + formatNumber(p.Step)
		switch {
		case p.MostSteps > 0:
			text += " of at most " + formatNumber(p.MostSteps)
			if p.Steps > 0 && p.MostSteps == 2*p.Steps {
				text += " (" + formatNumber(p.Steps) + ", and as many in a refit)"
			}
		case p.Steps > 0:
			text += " of " + formatNumber(p.Steps)
		}
		if p.Phase != "" {
			text += " (" + p.Phase + ")"
		}
		parts = append(parts, text)
	}
	if j.Tasks > 0 {
		what := " tasks have ended"
		if j.CellCount > 0 {
			what = " runs have ended"
		}
		parts = append(parts, formatNumber(j.Gathered)+" of "+formatNumber(j.Tasks)+what)
	}
	if e != nil && j.WaitingFor == "" {
		left := cmp.Or(formatSeconds(e.Seconds), "0 s") + " left"
		if e.AtMost {
			left = "at most " + left
		}
		parts = append(parts, left)
	}
	return strings.Join(parts, ", ")
}
