package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// jobPage is what the page of a job shows.
type jobPage struct {
	*protocol.JobInfo
	May      jobRights
	Fraction float64 // that is done; 0: not known
	Progress string
	Ran      float64 // seconds
	Axis     axis
	Chart    *chart
	Given    []setting // of the spec
	Resolved []setting // all hyperparameters
	result
	Models []modelLink
	More   int // models that are not listed
	Runs   *jobRuns
}

// setting is a name and a value.
type setting struct{ Name, Value string }

// modelLink is a model of a job.
type modelLink struct {
	Name  string
	Bytes uint64
}

// result is what a done job reached.
type result struct {
	Baseline string // its name
	Measures []pipeline.Compared
	Warning  string
	Steps    steps
	Failed   int // runs
	NotRun   int
}

// jobRuns are the first failed runs of a job of runs.
type jobRuns struct {
	Failed []failedRun
	More   bool // true if other runs may have failed
}

type failedRun struct {
	Task         int
	Algorithm    string
	Repeat, Fold int
	Error        string
}

const (
	maxModelLinks = 20
	maxFailedRuns = 20
	lookedAtRuns  = 2000 // for failed runs
)

// jobView shows a job with its learning curve.
func jobView(v *visit) (*view, error) {
	path := "/v1/jobs/" + url.PathEscape(v.PathValue("job"))
	p := jobPage{JobInfo: new(protocol.JobInfo), Axis: axisOf(v)}
	if err := v.get(path, nil, p.JobInfo); err != nil {
		return nil, err
	}
	j, now := p.JobInfo, time.Now()
	p.May = v.rights(j)
	p.Fraction, p.Ran = fractionOf(j), remaining.Ran(j, now)
	if p.CellCount == 0 {
		c := new(protocol.JobCurve)
		if err := v.get(path+"/curve", nil, c); err != nil {
			return nil, err
		}
		p.Progress = progressText(j, remaining.Of(j, c.Points, p.Ran))
		p.result = resultOf(j)
		p.Chart = newChart("Learning curve of "+j.Name, p.Axis.Caption(), lossOf(j), p.Axis.lines(c, "", 0),
			p.Axis.marks(j, c, &p.Steps))
	} else {
		p.Progress, p.result = progressText(j, nil), resultOf(j)
		if err := p.readRuns(v, path); err != nil {
			return nil, err
		}
	}
	p.readModels()
	p.Given, p.Resolved = givenOf(j), resolvedOf(j)
	return &view{Title: j.Name, Section: "jobs", Template: "job", Data: &p, Follow: path + "/changes",
		Still: j.State.Final()}, nil
}

// readModels lists the models of the job.
func (p *jobPage) readModels() {
	for i, m := range p.JobInfo.Models[:min(len(p.JobInfo.Models), maxModelLinks)] {
		name := p.Name
		switch {
		case p.CellCount > 0:
			name += "/" + m.Digest
		case p.Job.Folds > 0:
			name += "/" + strconv.Itoa(i)
		}
		p.Models = append(p.Models, modelLink{name, m.Bytes})
	}
	p.More = len(p.JobInfo.Models) - len(p.Models)
}

// readRuns finds the first runs that failed.
func (p *jobPage) readRuns(v *visit, path string) error {
	p.Runs = new(jobRuns)
	var ended protocol.JobCellStates
	if err := v.get(path+"/runs/states", url.Values{"until": {strconv.Itoa(lookedAtRuns)}}, &ended); err != nil {
		return err
	}
	p.Runs.More = p.CellCount > lookedAtRuns
	for _, s := range ended.States {
		if !s.Failed {
			continue
		}
		if len(p.Runs.Failed) == maxFailedRuns {
			p.Runs.More = true
			break
		}
		run := failedRun{Task: s.Task, Error: s.Error}
		if cells := p.Job.Cells; cells != nil {
			if c, ok := cells.At(s.Task); ok {
				run.Algorithm, run.Repeat, run.Fold = cells.Rows[c.Row].Algorithm, c.Repeat, c.Fold
			}
		}
		p.Runs.Failed = append(p.Runs.Failed, run)
	}
	return nil
}

// resultOf reads the outcome of a job. It is empty if the job is not done.
func resultOf(j *protocol.JobInfo) (r result) {
	if j.Progress != nil {
		r.Steps.Best = j.Progress.BestStep
	}
	var o pipeline.Outcome
	if j.State != protocol.Done || json.Unmarshal(j.Outcome, &o) != nil {
		return r
	}
	r.Steps = steps{o.Steps, o.BestStep, o.RefitSteps}
	r.Failed, r.NotRun = o.CellsFailed, o.CellsNotRun
	if j.CellCount > 0 {
		return r
	}
	r.Baseline, r.Measures = pipeline.Compare(o.Measures, o.MeanPredictor, o.Added)
	switch {
	case o.Against.Unbeaten():
		r.Warning = fmt.Sprintf("The model is %s than the mean baseline: its K-L on the %s differs by %s "+
			"(standard error %s).", o.Against.Verdict, o.EvaluatedOn, formatNumber(math.Abs(o.Against.Difference.Mean)),
			formatNumber(o.Against.StandardError))
	case o.Linear != nil && o.Linear.Better:
		r.Warning = fmt.Sprintf("A linear model (sa-bfgs) has a lower K-L: %s.", formatNumber(o.Linear.Measures[0].Mean))
	}
	return r
}

// givenOf lists the keys of a job's spec without defaults. Hyperparameters come first.
func givenOf(j *protocol.JobInfo) (all []setting) {
	var given map[string]json.RawMessage
	if json.Unmarshal(j.Spec, &given) != nil {
		return nil
	}
	var set map[string]string
	if json.Unmarshal(given["settings"], &set) == nil {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			all = append(all, setting{name, set[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if name != "settings" {
			all = append(all, setting{name, string(bytes.Trim(given[name], `"`))})
		}
	}
	return all
}

// resolvedOf lists all hyperparameters of a job.
func resolvedOf(j *protocol.JobInfo) (all []setting) {
	if j.Job == nil {
		return nil
	}
	a, err := registry.Find(j.Job.Algorithm)
	if err != nil {
		return nil // a job of runs
	}
	var given protocol.Spec
	if json.Unmarshal(j.Spec, &given) != nil {
		given = protocol.Spec{}
	}
	if given.Algorithm == spec.Best {
		given.Set = maps.Clone(given.Set)
		if given.Set == nil {
			given.Set = make(map[string]string)
		}
		given.Set["preset"] = spec.Best
	}
	for _, p := range spec.Complete(a.Params(), j.Job.Params, given.Set) {
		all = append(all, setting{p.Key, p.Value})
	}
	return all
}

// jobQuestions are about changes of jobs.
var jobQuestions = map[string]question{
	"cancel": {Title: "Cancel", Button: "Cancel the job",
		Text: "The job ends at once and has no model. A paused job can go on later, a cancelled job cannot.",
		in:   func(s protocol.JobState) bool { return !s.Final() }},
	"delete": {Title: "Delete", Button: "Delete the job", in: protocol.JobState.Final,
		Text: "The job, its models, its predictions and its learning curve are deleted. They cannot be restored."},
	"share": {Title: "Share", Button: "Share the job", in: func(protocol.JobState) bool { return true },
		Text: "All users of the cluster may then read the models and predictions of the job. This cannot be undone."},
}

// askJobView asks before a job is changed.
func askJobView(v *visit) (*view, error) {
	var j protocol.JobInfo
	return v.ask(jobQuestions, "/v1/jobs/"+url.PathEscape(v.PathValue("job")), &j, func(p *confirmPage) {
		p.Section, p.Key, p.Name = "jobs", strconv.FormatUint(j.ID, 10), j.Name
		p.State, p.Owner, p.About = j.State, j.Owner, fmt.Sprintf("%s on %s", j.Job.Algorithm, j.Dataset)
		p.May = v.rights(&j).Change
	})
}

// changeJob cancels, pauses, resumes, shares or deletes a job.
func changeJob(v *visit) (to string, err error) {
	job, change := v.PathValue("job"), v.PathValue("change")
	path := "/jobs/" + url.PathEscape(job)
	switch change {
	case "cancel", "pause", "resume", "share":
		return path, v.api.post(v.Context(), "/v1"+path+"/"+change, nil, nil, nil)
	case "delete":
		var j protocol.JobInfo
		if err := v.get("/v1"+path, nil, &j); err != nil {
			return "", err
		}
		return "/jobs", v.api.post(v.Context(), "/v1/jobs/delete", nil, protocol.DeleteRequest{Jobs: []uint64{j.ID}}, nil)
	}
	return "", &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("A job cannot %.40s.", change)}
}
