package page

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of a comparison, and of the jobs that are offered for it.
const (
	maxCompared = seriesClasses
	maxOffered  = 20
	maxAsked    = 3 * maxCompared // jobs, also those that cannot be compared
)

// comparison is what the page that compares jobs shows.
type comparison struct {
	Jobs     []*comparedJob
	Problems []string // why jobs are missing
	Axis     axis
	Other    url.Values // the query with the other axis
	Chart    *chart
	Differ   []comparedRow // settings
	Apart    []comparedRow // defaults of hyperparameters that not all of the algorithms have
	Equal    []comparedRow
	Measures []comparedRow
	Note     string // why measures do not compare the methods alone
	Offered  []protocol.JobInfo
	Room     bool // true if another job can be added
}

// comparedJob is a job of a comparison.
type comparedJob struct {
	*protocol.JobInfo
	Class string // of its lines
	Ran   float64
	result
	values map[string]string // of settings
	order  []string          // of the names of settings
	given  map[string]bool   // the settings that the spec has
}

// comparedRow is a row of a table with a column for each job.
type comparedRow struct {
	Name  string
	Cells []comparedCell
}

type comparedCell struct {
	Text string
	Best bool
}

// none is the text of a cell without a value.
const none = "-"

// compareView compares jobs: their curves, settings and measures.
func compareView(v *visit) (*view, error) {
	query := v.URL.Query()
	p := comparison{Axis: axisOf(v)}
	var lines []series
	still := true
	keys := slices.Compact(slices.DeleteFunc(query["job"], func(s string) bool { return s == "" }))
	for i, key := range keys {
		if len(p.Jobs) == maxCompared || i == maxAsked {
			p.Problems = append(p.Problems, fmt.Sprintf("At most %d jobs are compared; the others are left out.", maxCompared))
			break
		}
		j, c, err := readCompared(v, key)
		switch {
		case err != nil:
			if asError(err).Status == http.StatusServiceUnavailable {
				return nil, err
			}
			p.Problems = append(p.Problems, fmt.Sprintf("Job %.100s is left out: %s", key,
				strings.TrimPrefix(err.Error(), notFound)))
			continue
		case slices.ContainsFunc(p.Jobs, func(o *comparedJob) bool { return o.ID == j.ID }):
			continue
		}
		n := len(p.Jobs)
		j.Class = "s" + strconv.Itoa(n)
		lines = append(lines, p.Axis.lines(c, j.Name, n)...)
		still = still && j.State.Final()
		p.Jobs = append(p.Jobs, j)
	}
	p.Room = len(p.Jobs) < maxCompared
	p.Other = url.Values{"job": keys[:min(len(keys), maxAsked)]}
	if !p.Axis.Seconds {
		p.Other.Set("by", "seconds")
	}
	if len(p.Jobs) > 0 {
		p.Chart = newChart("Learning curves", p.Axis.Caption(), lossOf(p.Jobs[0].JobInfo), lines, nil)
	}
	if len(p.Jobs) > 1 {
		p.compareSettings()
		p.compareMeasures()
	}
	if err := p.offer(v); err != nil {
		return nil, err
	}
	return &view{Title: "Compare jobs", Section: "jobs", Template: "compare", Data: &p, Still: still}, nil
}

// readCompared reads a job and its curve.
func readCompared(v *visit, key string) (*comparedJob, *protocol.JobCurve, error) {
	j, c := &comparedJob{JobInfo: new(protocol.JobInfo)}, new(protocol.JobCurve)
	path := "/v1/jobs/" + url.PathEscape(key)
	if err := v.get(path, nil, j.JobInfo); err != nil {
		return nil, nil, err
	}
	if j.CellCount > 0 {
		return nil, nil, fmt.Errorf("it has the runs of experiment %s, whose report compares them", j.Experiment)
	}
	if err := v.get(path+"/curve", nil, c); err != nil {
		return nil, nil, err
	}
	j.Ran, j.result = remaining.Ran(j.JobInfo, time.Now()), resultOf(j.JobInfo)
	j.readSettings()
	return j, c, nil
}

// readSettings notes the settings of a job: the keys of every spec, as given or with their defaults, and all
// hyperparameters.
func (j *comparedJob) readSettings() {
	j.values, j.given = make(map[string]string), make(map[string]bool)
	for _, s := range givenOf(j.JobInfo) {
		j.given[s.Name] = true
	}
	set := func(name, value string) {
		j.order = append(j.order, name)
		j.values[name] = value
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(j.Spec, &given) // without it, the defaults are shown
	for _, p := range spec.Common() {
		switch value, ok := given[p.Name]; {
		case p.Name == "name":
		case p.Name == "dataset":
			set(p.Name, fmt.Sprintf("%s (%.12s)", j.Dataset, j.Job.Dataset))
		case p.Name == "algorithm":
			set(p.Name, j.Job.Algorithm)
		case ok:
			set(p.Name, textOf(value))
		default:
			set(p.Name, p.Default)
		}
	}
	if j.Job.Split.Assigned != "" {
		set("folds from a file", fmt.Sprintf("%.12s", j.Job.Split.Assigned))
	}
	for _, s := range resolvedOf(j.JobInfo) {
		set(s.Name, s.Value)
	}
}

// compareSettings divides the settings into rows that differ and rows that do not. Settings that a spec has come before
// defaults. Rows where a job has no value, and the others have their defaults, are apart.
func (p *comparison) compareSettings() {
	var names []string
	var byDefault []comparedRow
	for _, j := range p.Jobs {
		for _, name := range j.order {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		row, differs, given, missing := comparedRow{Name: name}, false, false, false
		for i, j := range p.Jobs {
			text, ok := j.values[name]
			if !ok {
				text, missing = none, true
			}
			given = given || j.given[name]
			row.Cells = append(row.Cells, comparedCell{Text: text})
			differs = differs || text != row.Cells[0].Text && i > 0
		}
		switch {
		case !differs:
			p.Equal = append(p.Equal, row)
		case given:
			p.Differ = append(p.Differ, row)
		case missing:
			p.Apart = append(p.Apart, row)
		default:
			byDefault = append(byDefault, row)
		}
	}
	p.Differ = append(p.Differ, byDefault...)
}

// compareMeasures lists the measures of the jobs. The best value of each is marked, if the jobs have the same dataset.
func (p *comparison) compareMeasures() {
	var titles []string
	higher := make(map[string]bool)
	var first *comparedJob
	for _, j := range p.Jobs {
		for i := range j.Measures {
			m := &j.Measures[i]
			if _, known := higher[m.Title]; !known {
				titles, higher[m.Title] = append(titles, m.Title), m.HigherIsBetter
			}
		}
		switch {
		case len(j.Measures) == 0:
		case first == nil:
			first = j
		case first.Job.Dataset != j.Job.Dataset:
			p.Note = "The jobs have different datasets, so their measures cannot be compared."
		case first.EvaluatedOn != j.EvaluatedOn:
			p.Note = "Some measures are of test samples and some of training samples, so they cannot be compared."
		case p.Note == "" && first.testSamples() != j.testSamples():
			p.Note = "The jobs have different test samples, so a difference may come from the samples. Jobs with the same " +
				"seed and the same test fraction or folds have the same test samples."
		}
	}
	comparable := first != nil && !slices.ContainsFunc(p.Jobs, func(j *comparedJob) bool {
		return len(j.Measures) > 0 && (j.Job.Dataset != first.Job.Dataset || j.EvaluatedOn != first.EvaluatedOn)
	})
	for _, title := range titles {
		p.Measures = append(p.Measures, p.measure(title, higher[title], comparable))
	}
}

// measure returns the row of a measure.
func (p *comparison) measure(title string, higher, comparable bool) comparedRow {
	row, best := comparedRow{Name: title}, math.NaN()
	values := make([]float64, len(p.Jobs))
	count := 0
	for i, j := range p.Jobs {
		values[i] = math.NaN()
		text := none
		for k := range j.Measures {
			if m := &j.Measures[k]; m.Title == title {
				values[i], text = m.Model.Mean, formatNumber(m.Model.Mean)+" ± "+formatNumber(m.Model.Std)
			}
		}
		if x := values[i]; !math.IsNaN(x) {
			if count++; math.IsNaN(best) || higher && x > best || !higher && x < best {
				best = x
			}
		}
		row.Cells = append(row.Cells, comparedCell{Text: text})
	}
	for i := range row.Cells {
		row.Cells[i].Best = comparable && count > 1 && values[i] == best
	}
	return row
}

// testSamples says in one text which samples a job was tested on.
func (j *comparedJob) testSamples() string {
	s := &j.Job.Split
	return fmt.Sprint(s.Seed, s.TestFraction, s.Folds, s.Fold, s.Assigned, s.Overlap)
}

// offer lists other jobs to compare with: the newest on the dataset of the first job.
func (p *comparison) offer(v *visit) error {
	if !p.Room {
		return nil
	}
	query := url.Values{"limit": {strconv.Itoa(maxOffered)}}
	if len(p.Jobs) > 0 {
		query.Set("dataset", p.Jobs[0].Dataset)
	}
	var answer protocol.JobList
	if err := v.get("/v1/jobs", query, &answer); err != nil {
		return err
	}
	for _, j := range answer.Jobs {
		if j.CellCount == 0 && !slices.ContainsFunc(p.Jobs, func(o *comparedJob) bool { return o.ID == j.ID }) {
			p.Offered = append(p.Offered, j)
		}
	}
	return nil
}
