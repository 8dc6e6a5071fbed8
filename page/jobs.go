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
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
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
func newList(v *visit) (l list, query url.Values) {
	query = make(url.Values)
	for key, values := range v.URL.Query() {
		if text := strings.TrimSpace(values[0]); text != "" {
			query.Set(key, text)
		}
	}
	l.Query = maps.Clone(query)
	l.Filtered = slices.ContainsFunc(filters, query.Has)
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

// jobsView lists jobs.
func jobsView(v *visit) (*view, error) {
	data := struct {
		list
		Jobs   []protocol.JobInfo
		States []protocol.JobState
	}{States: protocol.JobStates}
	var query url.Values
	data.list, query = newList(v)
	var answer protocol.JobList
	if err := v.get("/v1/jobs", query, &answer); err != nil {
		return nil, err
	}
	data.Jobs, data.Total = answer.Jobs, answer.Total
	if answer.Next != 0 {
		data.follow(strconv.FormatUint(answer.Next, 10))
	}
	return &view{Title: "Jobs", Section: "jobs", Template: "jobs", Data: &data}, nil
}

// jobPage is what the page of a job shows.
type jobPage struct {
	*protocol.JobInfo
	Chart    *chart
	Settings []setting
	Measures []setting
	Fraction float64 // that is done; 0: not known
	Curve    *protocol.JobCurve
}

// setting is a name and a value.
type setting struct{ Name, Value string }

// jobView shows a job with its learning curve.
func jobView(v *visit) (*view, error) {
	path := "/v1/jobs/" + url.PathEscape(v.PathValue("job"))
	p := jobPage{JobInfo: new(protocol.JobInfo), Curve: new(protocol.JobCurve)}
	if err := v.get(path, nil, p.JobInfo); err != nil {
		return nil, err
	}
	if p.CellCount == 0 {
		if err := v.get(path+"/curve", nil, p.Curve); err != nil {
			return nil, err
		}
		lines, marks := curveSeries(p.Curve, "", 0), jobMarks(p.JobInfo)
		p.Chart = newChart("Learning curve of "+p.Name, "step", "loss (K-L)", lines, marks)
	}
	p.Settings = settingsOf(p.JobInfo)
	for _, name := range slices.Sorted(maps.Keys(p.JobInfo.Measures)) {
		p.Measures = append(p.Measures, setting{name, formatNumber(p.JobInfo.Measures[name])})
	}
	switch pr := p.Progress; {
	case p.Tasks > 0:
		p.Fraction = float64(p.Gathered) / float64(p.Tasks)
	case pr != nil && pr.Steps > 0:
		p.Fraction = float64(pr.Step) / float64(pr.Steps)
	}
	return &view{Title: p.Name, Section: "jobs", Template: "job", Data: &p, Follow: path + "/changes",
		Still: p.State.Final()}, nil
}

// curveSeries returns the lines of a learning curve. name, if set, comes before their names.
func curveSeries(c *protocol.JobCurve, name string, colour int) (all []series) {
	add := func(points []curve.Point, what string, dashed bool, loss func(*curve.Point) float64, colour int) {
		s := series{Name: strings.TrimSpace(name + " " + what), Dashed: dashed, Colour: colour}
		for i := range points {
			if y := loss(&points[i]); !math.IsNaN(y) {
				s.X, s.Y = append(s.X, float64(points[i].Step)), append(s.Y, y)
			}
		}
		if len(s.X) > 0 {
			all = append(all, s)
		}
	}
	training := func(p *curve.Point) float64 { return p.Training }
	validation := func(p *curve.Point) float64 { return p.Validation }
	add(c.Points, "training", false, training, colour)
	add(c.Points, "validation", true, validation, colour)
	for i, points := range c.Folds {
		add(points, "fold "+strconv.Itoa(i), false, training, colour+i)
	}
	return all
}

// jobMarks returns the events of a job that its curve shows.
func jobMarks(*protocol.JobInfo) []mark { return nil }

// settingsOf lists the spec of a job as it was given: hyperparameters first, then the rest.
func settingsOf(j *protocol.JobInfo) (all []setting) {
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

// changeJob cancels, pauses or resumes a job.
func changeJob(v *visit) (to string, err error) {
	job, change := v.PathValue("job"), v.PathValue("change")
	if !slices.Contains([]string{"cancel", "pause", "resume"}, change) {
		return "", &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("A job cannot %.40s.", change)}
	}
	path := "/jobs/" + url.PathEscape(job)
	return path, v.api.post(v.Context(), "/v1"+path+"/"+change, nil, nil, nil)
}
