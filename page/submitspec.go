package page

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// specPage is the form that submits a pasted spec.
type specPage struct {
	Spec     string
	Values   url.Values
	Token    string
	Mistakes []specMistake
	Job      *checkedJob
	Plan     *protocol.ExperimentPlan
	Refused  bool // true if the plan needs consent
}

// specMistake is a mistake at a line of the spec; Line 0: in the spec as a whole.
type specMistake struct {
	Line, Column int
	Text         string
	Source       string // the line
}

// specFile names the spec in errors and reports.
const specFile = "spec.yaml"

// specView shows the form.
func specView(v *visit) (*view, error) {
	p := &specPage{Spec: v.URL.Query().Get("spec"), Token: rand.Text(), Values: v.URL.Query()}
	return p.shown(), nil
}

func (p *specPage) shown() *view {
	out := &view{Title: "Submit a spec", Section: "submit", Template: "submitspec", Data: p, Still: true}
	if len(p.Mistakes) > 0 {
		out.Title, out.Status = "Error: "+out.Title, http.StatusUnprocessableEntity
	}
	return out
}

// ofExperiment finds the keys that only the spec of an experiment has.
var ofExperiment = regexp.MustCompile(`(?m)^\{?\s*["']?(methods|datasets)["']?\s*:`)

// submitSpec submits the job or the experiment of a pasted spec, or checks it. With mistakes, it shows the form again.
func submitSpec(v *visit) (to string, err error) {
	values := v.PostForm
	p := &specPage{Spec: strings.ReplaceAll(values.Get("spec"), "\r\n", "\n"), Token: values.Get("token"), Values: values}
	switch {
	case strings.TrimSpace(p.Spec) == "":
		p.Mistakes = []specMistake{{Text: "the spec is empty"}}
	case ofExperiment.MatchString(p.Spec):
		to, err = p.submitExperiment(v)
	default:
		to, err = p.submitJob(v)
	}
	if to != "" || err != nil {
		return to, err
	}
	return "", &again{p.shown()}
}

// submitJob submits the spec of a job. An empty path says that the form is shown again.
func (p *specPage) submitJob(v *visit) (to string, err error) {
	f, err := spec.Parse(specFile, []byte(p.Spec), "")
	if err != nil {
		p.mistaken(err)
		return "", nil
	}
	if f.Dataset == "" {
		p.mistaken(errors.New("the key dataset is missing; it names a dataset of the cluster"))
		return "", nil
	}
	var answer protocol.JobInfo
	check := p.Values.Get("check") != ""
	r := protocol.SubmitRequest{Spec: f.Spec, Shared: p.Values.Get("shared") == "true"}
	err = v.submit("/v1/jobs", check, p.Token, &r, &answer)
	if e, refused := errors.AsType[*Error](err); refused {
		if m := refusalOf(e, &f.Spec); m.Field != "" {
			err = f.Locate(param.Errorf(m.Field, "%s", m.Text))
		}
		p.mistaken(err)
		return "", nil
	}
	if err != nil || !check {
		return "/jobs/" + strconv.FormatUint(answer.ID, 10), err
	}
	p.Job = &checkedJob{specText(&f.Spec), resolvedOf(&answer), &answer}
	return "", nil
}

// submitExperiment submits the spec of an experiment. An empty path says that the form is shown again.
func (p *specPage) submitExperiment(v *visit) (to string, err error) {
	has := func(name string) bool { return p.Values.Get(name) == "true" }
	r := protocol.ExperimentRequest{File: specFile, Spec: p.Spec, KeepModels: has("keep_models"),
		RetryFailed: has("retry_failed"), LeaveOut: has("leave_out"), Shared: has("shared")}
	p.Plan = new(protocol.ExperimentPlan)
	check := p.Values.Get("check") != ""
	err = v.submit("/v1/experiments", check, p.Token, &r, p.Plan)
	e, refused := errors.AsType[*Error](err)
	switch {
	case refused && e.Problem != nil && len(e.Problem.Plan) > 0 && json.Unmarshal(e.Problem.Plan, p.Plan) == nil:
		p.Refused = true
		p.mistaken(errors.New(e.Text))
	case refused:
		p.Plan = nil
		p.mistaken(err)
	case err != nil || check:
	default:
		return "/experiments/" + url.PathEscape(p.Plan.Name), nil
	}
	if p.Plan != nil {
		p.Refused = p.Refused || p.Plan.NeedsConsent()
	}
	if refused {
		err = nil
	}
	return "", err
}

// located matches an error at a place of the spec.
var located = regexp.MustCompile(`^` + regexp.QuoteMeta(specFile) + `:(\d+):(\d+): (?s:(.*))$`)

// mistaken notes an error, or the mistakes that the API has found.
func (p *specPage) mistaken(err error) {
	var texts []string
	if e, ok := errors.AsType[*Error](err); ok && e.Problem != nil {
		texts = e.Problem.Mistakes
	}
	if len(texts) == 0 {
		texts = []string{err.Error()}
	}
	lines := strings.Split(p.Spec, "\n")
	for _, text := range texts {
		m := specMistake{Text: strings.TrimPrefix(text, specFile+": ")}
		if at := located.FindStringSubmatch(text); at != nil {
			m.Line, _ = strconv.Atoi(at[1]) // digits; too many are 0 and no line
			m.Column, _ = strconv.Atoi(at[2])
			m.Text = at[3]
		}
		if m.Line > 0 && m.Line <= len(lines) {
			m.Source = lines[m.Line-1]
		}
		p.Mistakes = append(p.Mistakes, m)
	}
}
