package page

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// submitPage is the form that submits a job.
type submitPage struct {
	Algorithms []algorithmChoice
	Datasets   []string // the newest; Others is true if there are others
	Others     bool
	Algorithm  string // empty: none is chosen yet
	Dataset    string
	About      algorithms.About
	Groups     []group
	Values     url.Values
	Mistakes   []mistake
	Token      string
	Like       string // the job that filled the form
	Note       string
	Check      *checkedJob
}

// algorithmChoice is an algorithm in a list.
type algorithmChoice struct{ Name, Summary string }

// checkedJob is what a submission would make.
type checkedJob struct {
	Spec     string
	Resolved []setting
	Job      *protocol.JobInfo // its ID is 0 if it does not exist yet
}

// offeredDatasets is how many datasets the form lists.
const offeredDatasets = 50

// submitView shows the form. Its query has values for the fields, or like, a job to take them from. With check, the
// cluster checks the job.
func submitView(v *visit) (*view, error) {
	values, like := v.URL.Query(), v.URL.Query().Get("like")
	values.Del("token") // a form has its own, however its address came to be
	if v.checks() {
		p, err := checkJob(v, values)
		if err != nil {
			return nil, err
		}
		return p.shown(), nil
	}
	if like != "" {
		var j protocol.JobInfo
		if err := v.get("/v1/jobs/"+url.PathEscape(like), nil, &j); err != nil {
			return nil, err
		}
		if j.CellCount > 0 {
			return nil, &Error{Status: http.StatusConflict, Text: fmt.Sprintf("Job %s has the runs of experiment %s. The page "+
				"of the experiment can run them again.", j.Name, j.Experiment)}
		}
		given, err := valuesOf(j.Spec)
		if err != nil {
			return nil, fmt.Errorf("the spec of job %s: %w", j.Name, err)
		}
		given.Set("dataset", j.Dataset)
		another(given)
		for key, value := range values {
			given[key] = value
		}
		values, like = given, j.Name
	}
	p, err := newSubmitPage(v, values)
	if err != nil {
		return nil, err
	}
	p.Like = like
	if shown := values.Get("shown"); shown != "" && shown != p.Algorithm && values.Has("unsent") {
		p.Note = "Nothing was submitted yet: the form had the settings of another algorithm. These are the settings of " +
			p.Algorithm + "."
	}
	out := p.shown()
	out.Shared = v.URL.RawQuery == "" // it only asks for an algorithm
	return out, nil
}

// checks reports whether a visit asks for a check of the values in its address. Pages of other sites cannot have the
// cluster check something.
func (v *visit) checks() bool {
	site := v.Header.Get("Sec-Fetch-Site") // empty: no browser has sent it
	return v.URL.Query().Get("check") != "" && (site == "" || site == "none" || site == "same-origin")
}

// maxAddress bounds the bytes of an address that has the values of a form. Many proxies refuse addresses of 8 KiB.
const maxAddress = 6 << 10

// formAddress returns the address of a form with values, below Root. A browser can show it again, and users can share
// it. It is empty if it would be too long.
func formAddress(path string, values url.Values, more string) string {
	query := make(url.Values)
	for key := range values {
		if text := values.Get(key); strings.TrimSpace(text) != "" {
			query.Set(key, text)
		}
	}
	for _, key := range []string{"token", "check", "unsent"} {
		query.Del(key)
	}
	query.Set(more, "true")
	if path += "?" + query.Encode(); len(path) > maxAddress {
		return ""
	}
	return path
}

// numbered matches the name that another makes.
var numbered = regexp.MustCompile(`^(.*)-seed-\d+$`)

// another changes the seed of a spec, and its name: a name stands for one spec.
func another(values url.Values) {
	seed, err := strconv.ParseUint(cmp.Or(values.Get("seed"), strconv.Itoa(spec.DefaultSeed)), 10, 64)
	if err != nil {
		return
	}
	next := strconv.FormatUint(seed+1, 10)
	values.Set("seed", next)
	if name := values.Get("name"); name != "" {
		if m := numbered.FindStringSubmatch(name); m != nil {
			name = m[1]
		}
		name += "-seed-" + next
		if values.Set("name", name); protocol.CheckName(name) != nil {
			values.Del("name")
		}
	}
}

// newSubmitPage makes the form with values.
func newSubmitPage(v *visit, values url.Values) (*submitPage, error) {
	p := &submitPage{Algorithm: values.Get("algorithm"), Dataset: values.Get("dataset"), Values: values}
	for _, a := range spec.Choices() {
		p.Algorithms = append(p.Algorithms, algorithmChoice{a.Name(), a.About().Summary})
	}
	var sets []struct {
		Name string `json:"name"`
	}
	query := url.Values{"sort": {"-time"}, "limit": {strconv.Itoa(offeredDatasets + 1)}}
	if err := v.get("/v1/datasets", query, &sets); err != nil {
		return nil, err
	}
	for _, s := range sets[:min(len(sets), offeredDatasets)] {
		p.Datasets = append(p.Datasets, s.Name)
	}
	p.Others = len(sets) > offeredDatasets
	if values.Get("token") != "" {
		p.Token = values.Get("token")
	} else {
		p.Token = rand.Text()
	}
	return p, nil
}

// shown fills the fields and returns the form as a view.
func (p *submitPage) shown() *view {
	out := &view{Title: "Submit a job", Section: "submit", Template: "submit", Data: p, Still: true}
	if p.Algorithm != "" {
		a, err := spec.Choice(p.Algorithm)
		if err != nil {
			p.Mistakes, p.Algorithm = append(p.Mistakes, mistakeOf(err)), ""
		} else {
			p.About, p.Groups = a.About(), groupsOf(a, p.Values, p.Mistakes)
		}
	}
	if len(p.Mistakes) > 0 {
		out.Title, out.Status = "Error: "+out.Title, http.StatusUnprocessableEntity
	}
	return out
}

// HasField reports whether the form has a field, so that a mistake can lead to it.
func (p *submitPage) HasField(name string) bool {
	if name == "algorithm" || name == "dataset" {
		return true
	}
	for _, g := range p.Groups {
		for _, list := range [][]*field{g.Fields, g.Seldom} {
			for _, f := range list {
				if f.Name == name {
					return true
				}
			}
		}
	}
	return false
}

// Lists reports whether the form lists a dataset.
func (p *submitPage) Lists(name string) bool { return slices.Contains(p.Datasets, name) }

// ErrorOf returns the mistake in a field; empty: there is none.
func (p *submitPage) ErrorOf(name string) string {
	for _, m := range p.Mistakes {
		if m.Field == name {
			return m.Text
		}
	}
	return ""
}

// requestOf reads the submission of a form. It returns all mistakes that show without the cluster.
func requestOf(values url.Values) (protocol.SubmitRequest, []mistake) {
	s, mistakes := specOf(values)
	if s.Dataset == "" {
		mistakes = append(mistakes, mistake{"dataset", "choose a dataset"})
	}
	r := protocol.SubmitRequest{Spec: s, Shared: values.Get("shared") == "true"}
	if text := strings.TrimSpace(values.Get("audit")); text != "" {
		value, err := audit.Parse(text)
		if err != nil {
			mistakes = append(mistakes, mistakeOf(err))
		} else {
			r.Audit = value.(float64)
		}
	}
	return r, mistakes
}

// checkJob makes the form with the result of a check: mistakes, or what a submission would make.
func checkJob(v *visit, values url.Values) (*submitPage, error) {
	r, mistakes := requestOf(values)
	var answer protocol.JobInfo
	if len(mistakes) == 0 {
		err := v.submit("/v1/jobs", true, "", &r, &answer)
		if known, refused := errors.AsType[*Error](err); refused {
			mistakes = append(mistakes, refusalOf(known, &r.Spec))
		} else if err != nil {
			return nil, err
		}
	}
	p, err := newSubmitPage(v, values)
	if err != nil {
		return nil, err
	}
	if p.Mistakes = mistakes; len(mistakes) == 0 {
		p.Check = &checkedJob{specText(&r.Spec), resolvedOf(&answer), &answer}
	}
	return p, nil
}

// submitJob submits or checks the job of the form. A check, or a submission with mistakes, leads to the address of the
// form with these values, whose view checks them. If a check would not find why the submission was refused, or if the
// address were too long, it shows the form at once.
func submitJob(v *visit) (to string, err error) {
	values := v.PostForm
	if shown := values.Get("shown"); shown != "" && shown != values.Get("algorithm") {
		if to = formAddress("/submit", values, "unsent"); to == "" {
			return "", &Error{Status: http.StatusRequestURITooLong, Text: "Nothing was submitted: the form had the settings " +
				"of another algorithm. Go back, and choose \"Show the settings of another algorithm\"."}
		}
		return to, nil
	}
	check := values.Get("check") != ""
	if to = formAddress("/submit", values, "check"); check && to != "" {
		return to, nil
	}
	var refused mistake
	if r, mistakes := requestOf(values); !check && len(mistakes) == 0 {
		var answer protocol.JobInfo
		err := v.submit("/v1/jobs", false, values.Get("token"), &r, &answer)
		if err == nil {
			return "/jobs/" + strconv.FormatUint(answer.ID, 10), nil
		}
		known, ok := errors.AsType[*Error](err)
		if !ok {
			return "", err
		}
		refused = refusalOf(known, &r.Spec)
	}
	p, err := checkJob(v, values)
	switch {
	case err != nil:
		return "", err
	case len(p.Mistakes) > 0 && to != "":
		return to, nil
	case len(p.Mistakes) == 0 && refused.Text != "":
		p.Mistakes, p.Check = []mistake{refused}, nil
	}
	return "", &again{p.shown()}
}

// refusalOf is refusal with the field that a status tells of.
func refusalOf(e *Error, s *protocol.Spec) mistake {
	m := refusal(e)
	switch {
	case m.Field != "":
	case e.Status == http.StatusNotFound:
		m.Field = "dataset"
	case e.Status == http.StatusConflict && s.Name != "":
		m.Field = "name"
	}
	return m
}

// submit sends a submission, or a check of it. Its token follows from the token of the form and from what is sent: a
// form that is sent twice makes one job, and a form that was changed makes another.
func (v *visit) submit(path string, check bool, token string, request, answer any) error {
	query := url.Values(nil)
	if check {
		query = url.Values{"check": {"true"}}
	}
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte(token+"\n"), b...))
	switch r := request.(type) {
	case *protocol.SubmitRequest:
		r.Token = "page-" + hex.EncodeToString(sum[:])
	case *protocol.ExperimentRequest:
		r.Token = "page-" + hex.EncodeToString(sum[:])
	}
	return v.api.post(v.Context(), path, query, request, answer)
}
