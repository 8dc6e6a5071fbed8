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

// specView shows the form. With check in its address, the cluster checks the spec.
func specView(v *visit) (*view, error) {
	p := newSpecPage(v.URL.Query())
	p.Token = rand.Text() // a form has its own, however its address came to be
	if v.checks() {
		if _, err := p.send(v, true); err != nil {
			return nil, err
		}
	}
	return p.shown(), nil
}

func newSpecPage(values url.Values) *specPage {
	return &specPage{Spec: strings.ReplaceAll(values.Get("spec"), "\r\n", "\n"), Token: values.Get("token"),
		Values: values}
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

// submitSpec submits the job or the experiment of a pasted spec, or checks it. As submitJob, it leads to an address if
// the form is shown again.
func submitSpec(v *visit) (to string, err error) {
	p, check := newSpecPage(v.PostForm), v.PostForm.Get("check") != ""
	address := formAddress("/submit/spec", v.PostForm, "check")
	if check && address != "" {
		return address, nil
	}
	if to, err = p.send(v, check); to != "" || err != nil {
		return to, err
	}
	if checked := newSpecPage(v.PostForm); !check && address != "" {
		if _, err := checked.send(v, true); err != nil {
			return "", err
		}
		if len(checked.Mistakes) > 0 {
			return address, nil
		}
	}
	return "", &again{p.shown()}
}

// send submits or checks the spec. If to is empty, the form is to be shown, with what was found.
func (p *specPage) send(v *visit, check bool) (to string, err error) {
	switch {
	case strings.TrimSpace(p.Spec) == "":
		p.Mistakes = []specMistake{{Text: "the spec is empty"}}
		return "", nil
	case ofExperiment.MatchString(p.Spec):
		return p.submitExperiment(v, check)
	}
	return p.submitJob(v, check)
}

// submitJob submits the spec of a job. An empty path says that the form is shown again.
func (p *specPage) submitJob(v *visit, check bool) (to string, err error) {
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
func (p *specPage) submitExperiment(v *visit, check bool) (to string, err error) {
	has := func(name string) bool { return p.Values.Get(name) == "true" }
	r := protocol.ExperimentRequest{File: specFile, Spec: p.Spec, KeepModels: has("keep_models"),
		RetryFailed: has("retry_failed"), LeaveOut: has("leave_out"), Shared: has("shared")}
	p.Plan = new(protocol.ExperimentPlan)
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
