package page

import (
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

const (
	// methodsAtOnce and datasetsAtOnce are how much of a grid is shown at once.
	methodsAtOnce, datasetsAtOnce = 50, 12
	// methodsAsked is how many methods are searched for failed runs.
	methodsAsked = 4 * methodsAtOnce
	// jobsOfExperiment is how many jobs the page of an experiment lists.
	jobsOfExperiment = 20
	// reportedRuns bounds the runs of an experiment whose page has the report: a longer report has a page of its own.
	reportedRuns = 2_000
	// largeReport is a number of runs whose report takes the leader seconds, and is too large for a page.
	largeReport = 20_000
)

// progress is an experiment with what a template computes from it.
type progress struct{ protocol.Experiment }

// EndedPart returns which part of the runs has ended.
func (p *progress) EndedPart() float64 { return float64(p.Done) / float64(max(1, p.Runs)) }

// experimentsView lists experiments.
func experimentsView(v *visit) (*view, error) {
	data := struct {
		list
		Experiments []progress
		States      []protocol.JobState
	}{States: protocol.JobStates}
	var query url.Values
	data.list, query = newList(v)
	var answer protocol.ExperimentList
	if err := v.get("/v1/experiments", query, &answer); err != nil {
		return nil, err
	}
	for _, x := range answer.Experiments {
		data.Experiments = append(data.Experiments, progress{x})
	}
	data.Total = answer.Total
	data.follow(answer.Next)
	return &view{Title: "Experiments", Section: "experiments", Template: "experiments", Data: &data}, nil
}

// experimentPage is what the page of an experiment shows.
type experimentPage struct {
	progress
	Grid     *gridPart
	Unread   string // why the caller gets no grid
	Jobs     []protocol.JobInfo
	JobCount int
	May      bool          // true if the caller may change the experiment
	Shown    bool          // true if the report is a part of the page
	Report   template.HTML // if Shown and there is no Trouble
	Trouble  *Error        // why there is no report
}

// Large reports whether the report is too large for a page.
func (p *experimentPage) Large() bool { return p.Done > largeReport }

// Changes lists what the caller may do.
func (p *experimentPage) Changes() (all []namedChange) {
	switch {
	case !p.May:
		return nil
	case p.State == protocol.Paused:
		all = []namedChange{{Name: "resume", Title: "Resume"}, {Name: "cancel", Title: "Cancel", Asks: true}}
	case !p.Ended():
		all = []namedChange{{Name: "pause", Title: "Pause", Asks: true}, {Name: "cancel", Title: "Cancel", Asks: true}}
	}
	if p.Ended() && p.Grid != nil && p.Grid.Runs.Failed > 0 {
		all = append(all, namedChange{Name: "retry", Title: "Retry the failed runs"})
	}
	if p.Ended() && p.Done < p.Runs {
		all = append(all, namedChange{Name: "rest", Title: "Run the rest"})
	}
	return all
}

// namedChange is the last part of the path of an action, and the text of its button.
type namedChange struct {
	Name, Title string
	Asks        bool // true if a question comes first
}

// experimentQuestions are about changes of experiments.
var experimentQuestions = map[string]question{
	"cancel": {Title: "Cancel", Button: "Cancel the experiment",
		Text: "All jobs of the experiment that have not ended end at once. Results of runs that have ended are kept; runs " +
			"that are under way are lost. \"Run the rest\" can submit the other runs again.",
		in: func(s protocol.JobState) bool { return !s.Final() }},
	"pause": {Title: "Pause", Button: "Pause the experiment",
		Text: "All jobs of the experiment that have not ended pause, so that workers compute other jobs. Results of runs " +
			"that have ended are kept, and the experiment can resume at any time.",
		in: func(s protocol.JobState) bool { return !s.Final() && s != protocol.Paused }},
}

// askExperimentView asks before an experiment is changed.
func askExperimentView(v *visit) (*view, error) {
	var x progress
	return v.ask(experimentQuestions, "/v1/experiments/"+url.PathEscape(v.PathValue("name")), &x, func(p *confirmPage) {
		p.Section, p.Key, p.Name, p.State, p.Owner = "experiments", x.Name, x.Name, x.State, x.Owner
		p.About = fmt.Sprintf("%s of %s have ended", formatNumber(x.Done), counted(x.Runs, "run"))
		p.May = v.may("POST /v1/experiments/{name}/cancel", x.Owner)
	})
}

// experimentView shows an experiment with the grid of its runs, and with the report if it has ended and is small.
func experimentView(v *visit) (*view, error) {
	name := v.PathValue("name")
	path := "/v1/experiments/" + url.PathEscape(name)
	p := new(experimentPage)
	if err := v.get(path, nil, &p.Experiment); err != nil {
		return nil, err
	}
	p.May = v.may("POST /v1/experiments/{name}/cancel", p.Owner)
	var jobs protocol.JobList
	if err := v.get("/v1/jobs", url.Values{"experiment": {name}, "limit": {strconv.Itoa(jobsOfExperiment)}},
		&jobs); err != nil {
		return nil, err
	}
	p.Jobs, p.JobCount = jobs.Jobs, jobs.Total
	var problem *Error
	switch err := p.readGrid(v, path); {
	case errors.As(err, &problem) && problem.Status < http.StatusInternalServerError:
		p.Unread = problem.Text
	case err != nil:
		return nil, err
	}
	if p.Shown = p.Ended() && p.Runs <= reportedRuns && p.Done > 0 && p.Unread == ""; p.Shown {
		p.Report, p.Trouble = reportOf(v, &p.Experiment)
	}
	return &view{Title: name, Section: "experiments", Template: "experiment", Data: p, Follow: path + "/changes",
		Still: p.Ended()}, nil
}

// readGrid reads the part of the grid that a visit asks for.
func (p *experimentPage) readGrid(v *visit, path string) error {
	query := v.URL.Query()
	method, err := place(query, "method")
	if err != nil {
		return err
	}
	dataset, err := place(query, "dataset")
	if err != nil {
		return err
	}
	for {
		var g protocol.ExperimentGrid
		if err := v.get(path+"/grid", url.Values{"from": {strconv.Itoa(method)}, "limit": {strconv.Itoa(methodsAsked)}},
			&g); err != nil {
			return err
		}
		if method < g.Total || method == 0 {
			p.Grid = newGridPart(&g, method, dataset)
			return nil
		}
		method = max(0, g.Total-1) / methodsAtOnce * methodsAtOnce // the last part
	}
}

// place reads the number of the first method or dataset that is shown.
func place(query url.Values, key string) (int, error) {
	text := query.Get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &Error{Status: http.StatusBadRequest,
			Text: fmt.Sprintf("%s: want the number of the first %s to show, from 0, got %.40q.", key, key, text)}
	}
	return n, nil
}

// gridPart is the part of a grid that is shown at once.
type gridPart struct {
	Runs     protocol.RunCounts // of all methods
	Datasets []string
	Lines    []gridLine
	// Failures are of methodsAsked methods, and describe so many failed runs.
	Failures         []failedRuns
	Described        int
	Methods, Columns gridSteps
}

// gridSteps leads to the parts before and after a part.
type gridSteps struct {
	First, Last, All int        // from 1
	Before, After    url.Values // nil: there is no such part
}

// gridLine is the runs of a method.
type gridLine struct {
	Name  string
	Cells []gridCell
}

// gridCell is the runs of a method on a dataset.
type gridCell struct{ protocol.RunCounts }

// failedRuns are failed runs of a method on a dataset in one job, with the same error.
type failedRuns struct {
	Method, Dataset, Error string
	Job                    uint64 // 0: they were refused
	Folds                  []string
}

// addFailures adds the failed runs of a method on a dataset.
func (p *gridPart) addFailures(method, dataset string, runs []protocol.FailedRun) {
	first := len(p.Failures)
	for _, f := range runs {
		fold := strconv.Itoa(f.Fold)
		if f.Repeat > 0 {
			fold += fmt.Sprintf(" of repeat %d", f.Repeat)
		}
		p.Described++
		same := func(o failedRuns) bool { return o.Error == f.Error && o.Job == f.Job }
		if at := slices.IndexFunc(p.Failures[first:], same); at >= 0 {
			known := &p.Failures[first+at]
			known.Folds = append(known.Folds, fold)
			continue
		}
		p.Failures = append(p.Failures, failedRuns{Method: method, Dataset: dataset, Error: f.Error, Job: f.Job,
			Folds: []string{fold}})
	}
}

// newGridPart returns the part from a method and a dataset on. g begins with the method.
func newGridPart(g *protocol.ExperimentGrid, method, dataset int) *gridPart {
	p := &gridPart{Runs: g.Runs}
	to := func(method, dataset int) url.Values {
		return url.Values{"method": {strconv.Itoa(method)}, "dataset": {strconv.Itoa(dataset)}}
	}
	dataset = min(dataset, max(0, len(g.Datasets)-1))
	rows, columns := min(methodsAtOnce, len(g.Methods)), min(datasetsAtOnce, len(g.Datasets)-dataset)
	p.Datasets = g.Datasets[dataset : dataset+columns]
	for i := range g.Methods {
		m := &g.Methods[i]
		for d := range m.Runs {
			p.addFailures(m.Name, g.Datasets[d], m.Runs[d].Failures)
		}
		if i < rows {
			l := gridLine{Name: m.Name}
			for d := range m.Runs[dataset : dataset+columns] {
				l.Cells = append(l.Cells, gridCell{m.Runs[dataset+d].RunCounts})
			}
			p.Lines = append(p.Lines, l)
		}
	}
	p.Methods = gridSteps{First: method + 1, Last: method + rows, All: g.Total}
	if method > 0 {
		p.Methods.Before = to(max(0, method-methodsAtOnce), dataset)
	}
	if method+rows < g.Total {
		p.Methods.After = to(method+rows, dataset)
	}
	p.Columns = gridSteps{First: dataset + 1, Last: dataset + columns, All: len(g.Datasets)}
	if dataset > 0 {
		p.Columns.Before = to(method, max(0, dataset-datasetsAtOnce))
	}
	if dataset+columns < len(g.Datasets) {
		p.Columns.After = to(method, dataset+columns)
	}
	return p
}

// CellClass returns the class of the style sheet for the cell.
func (c gridCell) CellClass() string {
	switch {
	case c.All == 0:
		return "none"
	case c.Failed > 0:
		return "failed"
	case c.Running > 0:
		return "running"
	case c.Done == c.All:
		return "done"
	case c.NotRun > 0:
		return "left"
	case c.Done > 0:
		return "part"
	}
	return "waits"
}

// Rest says how many runs are in other states than done or waiting.
func (c gridCell) Rest() (all []string) {
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Running, "running"}, {c.NotRun, "not run"}} {
		if part.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return all
}

// reportView shows the report of the runs that have ended. It is made once for each visit, unless it is kept.
func reportView(v *visit) (*view, error) {
	name := v.PathValue("name")
	var p experimentPage
	if err := v.get("/v1/experiments/"+url.PathEscape(name), nil, &p.Experiment); err != nil {
		return nil, err
	}
	if p.Large() {
		p.Trouble = &Error{Text: fmt.Sprintf("The report of %s runs is too large for a page, which shows reports of at most "+
			"%s runs. The command makes it.", formatNumber(p.Done), formatNumber(largeReport))}
	} else {
		p.Report, p.Trouble = reportOf(v, &p.Experiment)
	}
	return &view{Title: "Report of " + name, Section: "experiments", Template: "report", Data: &p, Still: true}, nil
}

// reportOf returns the report of an experiment as a part of a page, or why there is none.
func reportOf(v *visit, x *protocol.Experiment) (template.HTML, *Error) {
	key := reportKey{name: x.Name, outline: x.Outline, newest: x.Newest, done: x.Done}
	if x.Private {
		c := access.Of(v.Context())
		key.caller, key.role = c.Name, c.Role
	}
	keep := x.Ended() && v.site.Folder == "" // an experiment of a folder may change and have as many runs
	if text, ok := v.site.reports.find(key); ok && keep {
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
	if keep {
		v.site.reports.keep(key, text)
	}
	return text, nil
}

// changeExperiment cancels, pauses or resumes an experiment, or repeats its failed runs. With "rest", runs without a
// result are submitted again, too.
func changeExperiment(v *visit) (to string, err error) {
	name, change := v.PathValue("name"), v.PathValue("change")
	var body any
	switch {
	case change == "retry" || change == "rest":
		body = protocol.ExperimentRetry{Token: rand.Text(), Failed: change == "retry"}
		change = "retry"
	case !slices.Contains([]string{"cancel", "pause", "resume"}, change):
		return "", &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("An experiment cannot %.40s.", change)}
	}
	path := "/experiments/" + url.PathEscape(name)
	return path, v.api.post(v.Context(), "/v1"+path+"/"+change, nil, body, nil)
}
