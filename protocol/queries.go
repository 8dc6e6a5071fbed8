package protocol

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// Texts about the values of parameters.
const (
	wantBool = "true or false"
	wantTime = "a time in Unix seconds"
	wantRun  = "the number of a run"
)

// Param is a parameter of a request. Its zero value is left out.
type Param struct {
	Name string
	Into any    // a *string, *bool, *int, *int64, *uint64, *float64 or *[]JobState
	Want string // what the value is, for errors and the description of the API
	// Least and Most bound a number; nil: there is no bound.
	Least, Most *float64
	// OneOf lists the values of a text; none: any text is allowed. Descends is true if they may have "-" before them.
	OneOf    []string
	Descends bool
}

// WriteQuery writes parameters for a URL.
func WriteQuery(params []Param) string {
	v := make(url.Values)
	for _, p := range params {
		at := reflect.ValueOf(p.Into).Elem()
		if states, ok := p.Into.(*[]JobState); ok && len(*states) > 0 {
			v.Set(p.Name, strings.ReplaceAll(joined(*states), " ", ""))
		} else if !at.IsZero() {
			v.Set(p.Name, fmt.Sprint(at))
		}
	}
	return v.Encode()
}

// ReadQuery reads the parameters of a request. what takes them, for errors.
func ReadQuery(v url.Values, what string, params []Param) (err error) {
	for name, texts := range v {
		at := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if at < 0 {
			var names []string
			for _, p := range params {
				names = append(names, p.Name)
			}
			return fmt.Errorf("unknown parameter %.80q: %s takes %s", name, what, strings.Join(names, ", "))
		}
		p, text := &params[at], texts[0]
		if _, list := p.Into.(*[]JobState); list { // states may be separated by commas, or given one by one
			text = strings.Join(texts, ",")
		} else if len(texts) != 1 {
			return fmt.Errorf("the parameter %.80q is given %d times, want once", name, len(texts))
		}
		switch into := p.Into.(type) {
		case *string:
			*into = text
		case *[]JobState:
			if *into, err = ParseJobStates(text); err != nil {
				return err
			}
		case *bool:
			*into, err = strconv.ParseBool(text)
		case *int:
			*into, err = strconv.Atoi(text)
		case *int64:
			*into, err = strconv.ParseInt(text, 10, 64)
		case *float64:
			*into, err = strconv.ParseFloat(text, 64)
		case *uint64:
			*into, err = strconv.ParseUint(text, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("%s: want %s, got %.80q", name, p.Want, text)
		}
		if err := p.check(text); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a value is not in the range of the parameter.
func (p *Param) check(text string) error {
	var number float64
	switch into := p.Into.(type) {
	case *string:
		if key := strings.TrimPrefix(text, "-"); len(p.OneOf) > 0 && text != "" && !slices.Contains(p.OneOf, text) &&
			!(p.Descends && slices.Contains(p.OneOf, key)) {
			return fmt.Errorf("%s: want %s, got %.80q", p.Name, strings.Join(p.OneOf, ", "), text)
		}
		return nil
	case *int:
		number = float64(*into)
	case *int64:
		number = float64(*into)
	case *uint64:
		number = float64(*into)
	case *float64:
		number = *into
	default:
		return nil
	}
	if p.Least != nil && number < *p.Least || p.Most != nil && number > *p.Most {
		return fmt.Errorf("%s: want %s, %s, got %.80q", p.Name, p.Want, p.bounds(), text)
	}
	return nil
}

// CheckParams returns an error if the value of a parameter is not in its range.
func CheckParams(params []Param) error {
	for i := range params {
		if at := reflect.ValueOf(params[i].Into).Elem(); !at.IsZero() {
			if err := params[i].check(fmt.Sprint(at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounds describes the range of a number.
func (p *Param) bounds() string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch {
	case p.Most == nil:
		return "at least " + format(*p.Least)
	case p.Least == nil:
		return "at most " + format(*p.Most)
	}
	return "from " + format(*p.Least) + " to " + format(*p.Most)
}

// ListQuery is what a client asks of a list.
type ListQuery struct {
	// Name, if set, lists what has this name. A * stands for any characters.
	Name string
	// Owner, if set, lists what that user has made.
	Owner string
	// Since and Until bound the time of what is listed, in Unix seconds; 0: no bound.
	Since, Until int64
	// Sort is a key of the list, ascending, or descending with "-" before it; empty: the order of the list.
	Sort string
	// Limit is how many elements are listed, the first in that order; 0: all.
	Limit int
	// After, if set, is a name. Only elements that follow it in that order are listed.
	After string
}

// params lists the parameters of the query, whose list has these orders.
func (q *ListQuery) params(orders []string) []Param {
	zero := new(0.0)
	return []Param{
		{Name: "name", Into: &q.Name, Want: "a name, in which * stands for any characters"},
		{Name: "owner", Into: &q.Owner, Want: "the name of a user"},
		{Name: "since", Into: &q.Since, Want: wantTime, Least: zero}, {Name: "until", Into: &q.Until, Want: wantTime,
			Least: zero},
		{Name: "sort", Into: &q.Sort, OneOf: orders, Descends: true,
			Want: "a key to sort by, with - before it for descending order"},
		{Name: "limit", Into: &q.Limit, Want: "a number of elements (0 means all)", Least: zero},
		{Name: "after", Into: &q.After, Want: "the name of the element before the first one"},
	}
}

// Has reports whether the query asks for something of this name, owner and time.
func (q *ListQuery) Has(name, owner string, time int64) bool {
	return MatchName(q.Name, name) && (q.Owner == "" || q.Owner == owner) && time >= q.Since &&
		(q.Until == 0 || time <= q.Until)
}

// Order returns the key that the list is sorted by, and whether it descends. usual is the order of the list.
func (q *ListQuery) Order(usual string) (key string, descending bool) {
	if q.Sort != "" {
		usual = q.Sort
	}
	key, descending = strings.CutPrefix(usual, "-")
	return key, descending
}

// MatchName reports whether a name fits a pattern, in which * stands for any characters. An empty pattern fits all.
func MatchName(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return name == pattern
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}

// DatasetQuery says which datasets a list has. Their time is when they were imported.
type DatasetQuery struct{ ListQuery }

// Params lists the parameters of the query.
func (q *DatasetQuery) Params() []Param { return q.params([]string{"name", "time", "samples"}) }

// ModelQuery says which models a list has. Their time is the end of their jobs.
type ModelQuery struct {
	ListQuery
	Algorithm, Dataset string // if set, lists the models of this algorithm, on this dataset
	Newest             int    // if above 0, lists only so many, the newest
}

// Params lists the parameters of the query.
func (q *ModelQuery) Params() []Param {
	return append(q.params([]string{"submitted", "time", "name", "algorithm", "dataset"}),
		Param{Name: "algorithm", Into: &q.Algorithm, Want: "the name of an algorithm"},
		Param{Name: "dataset", Into: &q.Dataset, Want: "the name of a dataset"},
		Param{Name: "newest", Into: &q.Newest, Want: "the number of models to list", Least: new(1.0)})
}

// ExperimentQuery says which experiments a list has. Their time is when they were submitted.
type ExperimentQuery struct {
	ListQuery
	States []JobState // of the listed experiments; empty: any
}

// Params lists the parameters of the query.
func (q *ExperimentQuery) Params() []Param {
	return append(q.params([]string{"newest", "submitted", "name", "state"}),
		Param{Name: "state", Into: &q.States, Want: "states, separated by commas"})
}

// RunQuery says which runs of a job an answer has: From <= run < Until.
type RunQuery struct {
	From, Until int
	Records     bool // true if the answer also has learning curves and predictions
}

// Params lists the parameters of the query.
func (q *RunQuery) Params() []Param {
	return []Param{
		{Name: "from", Into: &q.From, Want: wantRun, Least: new(0.0)},
		{Name: "until", Into: &q.Until, Want: wantRun, Least: new(0.0)},
		{Name: "records", Into: &q.Records, Want: wantBool},
	}
}

// GridQuery says which methods a grid has: Limit of them, or all for 0, from number From on.
type GridQuery struct{ From, Limit int }

// Params lists the parameters of the query.
func (q *GridQuery) Params() []Param {
	return []Param{
		{Name: "from", Into: &q.From, Want: "the number of a method, from 0", Least: new(0.0)},
		{Name: "limit", Into: &q.Limit, Want: "a number of methods (0 means all)", Least: new(0.0)},
	}
}

// ReportQuery is the options of a report.
type ReportQuery struct {
	Format                    string
	NoTimes, Sample, AllTests bool
	Level                     float64
}

// ReportFormats are the formats of reports.
var ReportFormats = []string{"table", "md", "csv", "json", "latex", "html", "fragment"}

// Params lists the parameters of the query.
func (q *ReportQuery) Params() []Param {
	return []Param{
		{Name: "format", Into: &q.Format, OneOf: ReportFormats, Want: "a format; the default is table"},
		{Name: "no_times", Into: &q.NoTimes, Want: wantBool}, {Name: "sample", Into: &q.Sample, Want: wantBool},
		{Name: "all_tests", Into: &q.AllTests, Want: wantBool},
		{Name: "level", Into: &q.Level, Want: "a number", Least: new(0.0), Most: new(1.0)},
	}
}

// Flag is the only parameter of a request: true or false.
func Flag(name string, into *bool) []Param { return []Param{{Name: name, Into: into, Want: wantBool}} }

// ReadyBlobs is the query of /readyz that says which blobs a coordinator needs for being ready; ReadyBlobsAny: none.
const (
	ReadyBlobs    = "blobs"
	ReadyBlobsAny = "any"
)

// ReadyParams lists the parameters of /readyz. It ignores other parameters, as /v1/cluster does.
func ReadyParams() []Param {
	return []Param{{Name: ReadyBlobs, Into: new(string), OneOf: []string{ReadyBlobsAny},
		Want: "any if missing blobs do not matter"}}
}

// ClusterParams lists the parameters of /v1/cluster.
func ClusterParams() []Param {
	return append(Flag("local", new(bool)), Param{Name: "wait_ms", Into: new(int), Least: new(0.0), Most: new(5000.0),
		Want: "milliseconds to wait for a leader"})
}

// checkTimes returns an error if no time is in the bounds of a query.
func checkTimes(since, until int64) error {
	if until != 0 && until < since {
		return errors.New("since, until: no time is in between, since until is earlier")
	}
	return nil
}

// JobQuery says which jobs a list has, and in which order.
type JobQuery struct {
	// States are the states of the listed jobs; empty: any.
	States []JobState
	// Sort is one of JobOrders, ascending, or descending with "-" before it; empty:
	// DefaultJobOrder. Jobs without such a value come last in either order, and a
	// measure of held-out rows before one of training rows.
	Sort string
	// Limit is how many jobs are listed, the first in that order; 0: all.
	Limit int
	// After, if not 0, is the number of a job. Only jobs that follow it in that order are listed.
	After uint64
	// Experiment, if set, lists the jobs of that experiment, or, as AnyExperiment, of any.
	Experiment string
	// Owner, if set, lists the jobs of that user. Mine lists the jobs of the caller.
	Owner string
	Mine  bool
	// Name, Algorithm and Dataset, if set, list the jobs of this name, algorithm and dataset. A * in Name stands for any
	// characters.
	Name, Algorithm, Dataset string
	// Since and Until bound when the listed jobs were submitted, in Unix seconds; 0: no bound.
	Since, Until int64
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
	if q.Mine && q.Owner != "" {
		return errors.New("owner and mine exclude each other")
	}
	if q.Limit < 0 {
		return fmt.Errorf("want a limit of at least 0 jobs (0 means all), got %d", q.Limit)
	}
	return checkTimes(q.Since, q.Until)
}

func joined(states []JobState) string {
	var list []string
	for _, s := range states {
		list = append(list, string(s))
	}
	return strings.Join(list, ", ")
}

// Params lists the parameters of the query.
func (q *JobQuery) Params() []Param {
	return []Param{
		{Name: "state", Into: &q.States, Want: "states, separated by commas"},
		{Name: "sort", Into: &q.Sort, OneOf: JobOrders(), Descends: true,
			Want: "a key to sort by, with - before it for descending order"},
		{Name: "limit", Into: &q.Limit, Want: "a number of jobs (0 means all)", Least: new(0.0)},
		{Name: "after", Into: &q.After, Want: "the number of a job"},
		{Name: "experiment", Into: &q.Experiment, Want: "the name of an experiment, or * for all"},
		{Name: "owner", Into: &q.Owner, Want: "the name of a user"}, {Name: "mine", Into: &q.Mine, Want: wantBool},
		{Name: "name", Into: &q.Name, Want: "a name, in which * stands for any characters"},
		{Name: "algorithm", Into: &q.Algorithm, Want: "the name of an algorithm"},
		{Name: "dataset", Into: &q.Dataset, Want: "the name of a dataset"},
		{Name: "since", Into: &q.Since, Want: wantTime, Least: new(0.0)},
		{Name: "until", Into: &q.Until, Want: wantTime, Least: new(0.0)},
		{Name: "full", Into: &q.Full, Want: wantBool},
	}
}

// ParseJobQuery reads a query, and checks it.
func ParseJobQuery(v url.Values) (q JobQuery, err error) {
	if err := ReadQuery(v, "a list of jobs", q.Params()); err != nil {
		return q, err
	}
	if v.Has("after") && q.After == 0 {
		return q, errors.New("after: want the number of a job, got 0")
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
