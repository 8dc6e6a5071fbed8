package protocol

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// JobList is a part of the jobs of a cluster, in the order that was asked for.
type JobList struct {
	Jobs []JobInfo `json:"jobs"`
	// Total is how many jobs have one of the states that were asked for.
	Total int `json:"total"`
}

// JobQuery says which jobs a list has, and in which order.
type JobQuery struct {
	// States are those of the jobs that are listed; empty: any.
	States []JobState
	// Sort is one of JobOrders, ascending, or descending with "-" before it; empty:
	// DefaultJobOrder. Jobs without such a value come last in either order, and a
	// measure of held-out rows before one of training rows.
	Sort string
	// Limit is how many jobs are listed, the first in that order; 0: all.
	Limit int
	// Experiment, where set, lists the jobs of that experiment; AnyExperiment those of any.
	Experiment string
	// Full lists all that is known of each job. Otherwise spec, settings, result and
	// models are left out, and texts are cut.
	Full bool
}

// AnyExperiment in JobQuery.Experiment stands for all experiments; no name is so.
const AnyExperiment = "*"

// DefaultJobOrder lists the newest job first.
const DefaultJobOrder = "-submitted"

// JobStates lists the states of a job.
var JobStates = []JobState{Queued, Paused, Running, Done, Failed, Cancelled}

// JobOrders lists what jobs may be sorted by: times, texts, and each measure.
func JobOrders() []string {
	orders := []string{"submitted", "ended", "name", "state", "algorithm", "dataset"}
	for i := range measures.All {
		orders = append(orders, measures.All[i].Name)
	}
	return orders
}

// Order returns the key that jobs are sorted by, and whether it descends.
func (q *JobQuery) Order() (key string, descending bool) {
	key = q.Sort
	if key == "" {
		key = DefaultJobOrder
	}
	return strings.CutPrefix(key, "-")
}

// Check says what is wrong with a query.
func (q *JobQuery) Check() error {
	for _, s := range q.States {
		if err := s.check(); err != nil {
			return err
		}
	}
	if key, _ := q.Order(); !slices.Contains(JobOrders(), key) {
		return fmt.Errorf("jobs cannot be sorted by %.80q: want %s", key, strings.Join(JobOrders(), ", "))
	}
	if q.Limit < 0 {
		return fmt.Errorf("want a limit of at least 0 jobs (0 means all), got %d", q.Limit)
	}
	return nil
}

func joined(states []JobState) string {
	var list []string
	for _, s := range states {
		list = append(list, string(s))
	}
	return strings.Join(list, ", ")
}

// Values writes the query for a URL.
func (q *JobQuery) Values() url.Values {
	v := url.Values{}
	if len(q.States) > 0 {
		v.Set("state", strings.ReplaceAll(joined(q.States), " ", ""))
	}
	if q.Sort != "" {
		v.Set("sort", q.Sort)
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Experiment != "" {
		v.Set("experiment", q.Experiment)
	}
	if q.Full {
		v.Set("full", "true")
	}
	return v
}

// ParseJobQuery reads what Values wrote, or somebody else, and checks it.
func ParseJobQuery(v url.Values) (q JobQuery, err error) {
	for key, texts := range v {
		if len(texts) != 1 {
			return q, fmt.Errorf("the parameter %.80q is given %d times, want once", key, len(texts))
		}
		text := texts[0]
		switch key {
		case "state":
			if q.States, err = ParseJobStates(text); err != nil {
				return q, err
			}
		case "sort":
			q.Sort = text
		case "limit":
			if q.Limit, err = strconv.Atoi(text); err != nil {
				return q, fmt.Errorf("limit: want a number of jobs (0 means all), got %.80q", text)
			}
		case "experiment":
			q.Experiment = text
		case "full":
			if q.Full, err = strconv.ParseBool(text); err != nil {
				return q, fmt.Errorf("full: want true or false, got %.80q", text)
			}
		default:
			return q, fmt.Errorf("unknown parameter %.80q: a list of jobs takes state, sort, limit, experiment and full", key)
		}
	}
	return q, q.Check()
}

// ParseJobStates reads states, separated by commas; a state that is there twice counts
// once, and empty text has none.
func ParseJobStates(text string) (states []JobState, err error) {
	for word := range strings.SplitSeq(text, ",") {
		s := JobState(strings.TrimSpace(word))
		if s == "" || slices.Contains(states, s) {
			continue
		}
		if err := s.check(); err != nil {
			return nil, err
		}
		states = append(states, s)
	}
	return states, nil
}

func (s JobState) check() error {
	if slices.Contains(JobStates, s) {
		return nil
	}
	return fmt.Errorf("unknown state %.80q of a job: want %s", s, joined(JobStates))
}
