package page_test

import (
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/storetest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/page"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

const hostile = `<img src=x onerror=alert(1)>"'&`

// real is the page on the API of a coordinator that leads, without workers.
type real struct {
	t      *testing.T
	page   http.Handler
	api    http.Handler
	caller access.Caller
}

func newReal(t *testing.T) *real {
	t.Helper()
	s, _ := storetest.Leading(t)
	log := slog.New(slog.DiscardHandler)
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cluster := func() protocol.Cluster { return protocol.Cluster{Leader: "a"} }
	h := api.Handler(api.Config{ID: "a", Store: s, Blobs: &replica.Blobs{Self: "a", Folder: folder, Log: log}, Log: log,
		Status: api.Status{Cluster: cluster, Local: cluster, Leader: func() string { return "a" },
			Heard: func() bool { return true }, Ready: func() error { return nil }},
		Running: api.Running{Live: func(uint64) (live dispatch.Live, ok bool) { return live, false },
			Workers: func(uint64) []string { return nil },
			Waits:   func(*state.State) map[uint64]jobs.Wait { return nil },
			Journal: func() *jobs.Journal { return nil }},
		Metrics: http.NotFoundHandler()})
	r := &real{t: t, api: h, page: page.Handler(page.Config{API: h, Log: log}), caller: access.Caller{Role: rights.Admin,
		Name: "ana"}}
	m, shards := datatest.Artificial(t, 40)
	for i, rows := range shards {
		r.ask(h, http.MethodPut, "/v1/blobs/"+m.Shards[i].Digest, "", string(dataset.EncodeShard(rows, nil)))
	}
	b, err := json.Marshal(protocol.DatasetPut{Name: "art", Manifest: m, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	r.ask(h, http.MethodPost, "/v1/datasets", "application/json", string(b))
	return r
}

// ask sends a request of the caller.
func (r *real) ask(to http.Handler, method, path, kind, body string) *httptest.ResponseRecorder {
	r.t.Helper()
	in := httptest.NewRequest(method, path, strings.NewReader(body))
	in.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	to.ServeHTTP(w, in.WithContext(access.With(testkit.Context(r.t), r.caller)))
	return w
}

// get shows a page, which must have all of some texts.
func (r *real) get(path string, status int, want ...string) string {
	r.t.Helper()
	return r.check("GET "+path, r.ask(r.page, http.MethodGet, "/ui"+path, "", ""), status, want)
}

// post sends a form, and follows the answer to the form with the same values. The page must have all of some texts.
func (r *real) post(path string, form url.Values, status int, want ...string) string {
	r.t.Helper()
	w := r.ask(r.page, http.MethodPost, "/ui"+path, "application/x-www-form-urlencoded", form.Encode())
	if status == http.StatusSeeOther && w.Code == status {
		return w.Header().Get("Location")
	}
	if to := w.Header().Get("Location"); w.Code == http.StatusSeeOther && strings.HasPrefix(to, "/ui/submit") {
		w = r.ask(r.page, http.MethodGet, to, "", "")
	}
	return r.check("POST "+path, w, status, want)
}

// tags matches what is no text.
var tags = regexp.MustCompile(`<[^>]*>`)

func (r *real) check(what string, w *httptest.ResponseRecorder, status int, want []string) string {
	r.t.Helper()
	body := w.Body.String()
	if w.Code != status {
		r.t.Fatalf("%s: status %d, want %d: %s", what, w.Code, status, tags.ReplaceAllString(body, ""))
	}
	text := html.UnescapeString(tags.ReplaceAllString(body, " "))
	text = strings.Join(strings.Fields(text), " ")
	for _, part := range want {
		if !strings.Contains(text, part) && !strings.Contains(html.UnescapeString(body), part) &&
			!strings.Contains(body, part) {
			r.t.Errorf("%s: the page lacks %q:\n%s", what, part, text)
		}
	}
	if strings.Contains(body, "<img") || strings.Contains(body, " style=") || strings.Contains(body, "<script>") {
		r.t.Errorf("%s: the page has markup of others, or inline styles:\n%s", what, body)
	}
	return body
}

// jobs lists the jobs, the newest first.
func (r *real) jobs() []protocol.JobInfo {
	r.t.Helper()
	w := r.ask(r.api, http.MethodGet, "/v1/jobs?full=true", "", "")
	b, err := io.ReadAll(w.Body)
	var all protocol.JobList
	if err != nil || json.Unmarshal(b, &all) != nil {
		r.t.Fatalf("status %d: %s", w.Code, b)
	}
	return all.Jobs
}

// form is a form of a small job.
func form(more ...string) url.Values {
	v := url.Values{"algorithm": {"ldlf"}, "dataset": {"art"}, "token": {"T"}, "trees": {"3"}, "test_fraction": {"0.25"}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

// TestDoubleSubmission: a form that is sent twice makes one job, and a form that was changed in between makes two.
func TestDoubleSubmission(t *testing.T) {
	r := newReal(t)
	first := r.post("/submit", form(), http.StatusSeeOther)
	if again := r.post("/submit", form(), http.StatusSeeOther); again != first || len(r.jobs()) != 1 {
		t.Errorf("%s, then %s: %d jobs", first, again, len(r.jobs()))
	}
	if other := r.post("/submit", form("seed", "2"), http.StatusSeeOther); other == first || len(r.jobs()) != 2 {
		t.Errorf("%s, then %s: %d jobs", first, other, len(r.jobs()))
	}
	var s protocol.Spec
	if err := json.Unmarshal(r.jobs()[1].Spec, &s); err != nil || s.Set["trees"] != "3" || s.TestFraction != 0.25 ||
		len(s.Set) != 1 {
		t.Errorf("the job has the spec %s", r.jobs()[1].Spec)
	}
	r.get(strings.TrimPrefix(first, "/ui"), http.StatusOK, "trees", "Submit again", "Cancel")
}

// TestSubmitBest: the form offers the word best, which is no algorithm, with its settings and without a preset. A form
// like the job has the word again.
func TestSubmitBest(t *testing.T) {
	r := newReal(t)
	r.get("/submit", http.StatusOK, `<option value="best"`)
	shown := r.get("/submit?algorithm=best&dataset=art", http.StatusOK, "Settings of best", `id="f-budget"`, "structrf, sa-bfgs")
	if strings.Contains(shown, `id="f-preset"`) {
		t.Error("the form of best has a preset")
	}
	best := url.Values{"algorithm": {"best"}, "dataset": {"art"}, "budget": {"20"}, "token": {"t"}, "name": {"of-best"}}
	at := r.post("/submit", best, http.StatusSeeOther)
	var s protocol.Spec
	if err := json.Unmarshal(r.jobs()[0].Spec, &s); err != nil || s.Algorithm != "best" || s.Set["budget"] != "20" ||
		r.jobs()[0].Job.Algorithm != "ensemble" {
		t.Errorf("the job at %s has the spec %s", at, r.jobs()[0].Spec)
	}
	r.get("/submit?like=of-best", http.StatusOK, `<option value="best" selected`, "of-best-seed-2")
}

// TestMistakesAtFields: a form with mistakes is shown again with the values that the user typed. Each mistake stands at
// its field, also if the cluster has found it. Nothing is submitted.
func TestMistakesAtFields(t *testing.T) {
	r := newReal(t)
	for _, c := range []struct {
		what string
		form url.Values
		want []string
	}{
		{"two fields", form("trees", "many", "depth", "99", "name", "keep-me"), []string{`href="#f-trees"`, `id="e-depth"`,
			`"many" is not a whole number`, `value="keep-me"`, "Nothing was submitted"}},
		{"hidden fields", form("measures", "most"), []string{`<details open>`, `id="e-measures"`}},
		{"the dataset decides", form("test_fraction", "", "folds", "500"), []string{`id="e-folds"`, "500 folds are too many"}},
		{"keys that exclude each other", form("folds", "3"), []string{`id="e-test_fraction"`}},
		{"no dataset", form("dataset", ""), []string{`href="#f-dataset"`, "choose a dataset"}},
		{"an unknown dataset", form("dataset", "other"), []string{`href="#f-dataset"`, `no dataset "other"`}},
		{"an unknown algorithm", form("algorithm", "lldf"), []string{`href="#f-algorithm"`, `did you mean "ldlf"`}},
		{"audit", form("audit", "2"), []string{`id="e-audit"`, "from 0 to 1"}},
		{"another algorithm than the form shows", form("shown", hostile, "algorithm", "nothing"), []string{`id="e-algorithm"`}},
		{"hostile values", form("name", hostile, "trees", hostile, "seed", hostile, "token", hostile), []string{
			`id="e-name"`, `id="e-trees"`, hostile}},
		{"a hostile dataset and algorithm", form("dataset", hostile, "algorithm", hostile), []string{hostile}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r.t = t
			r.post("/submit", c.form, http.StatusUnprocessableEntity, append(c.want, `id="mistakes"`, "autofocus")...)
		})
	}
	r.t = t
	if all := r.jobs(); len(all) > 0 {
		t.Errorf("%d jobs were submitted", len(all))
	}
}

// TestCheck: a check shows what would be submitted, and submits nothing.
func TestCheck(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("check", "true", "name", "checked"), http.StatusOK, "nothing was submitted yet",
		"algorithm: ldlf\ndataset: art\nname: checked\ntest_fraction: 0.25\ntrees: 3\n", "batch_size")
	spec := "algorithm: ldlf\ndataset: art\ntrees: 3\n"
	r.post("/submit/spec", url.Values{"spec": {spec}, "check": {"true"}}, http.StatusOK, "nothing was submitted yet", spec)
	spec = "name: x\ndatasets: [{dataset: art}]\nfolds: {k: 2}\nmethods: [aa-knn, sa-bfgs]\n"
	r.post("/submit/spec", url.Values{"spec": {spec}, "check": {"true"}}, http.StatusOK, "Experiment x : 4 new runs")
	if all := r.jobs(); len(all) > 0 {
		t.Errorf("%d jobs were submitted", len(all))
	}
}

// TestSpecs: a pasted spec makes a job or an experiment, once. Its mistakes have a line and a column.
func TestSpecs(t *testing.T) {
	r := newReal(t)
	for _, c := range []struct {
		what, spec string
		want       []string
	}{
		{"an unknown key", "algorithm: ldlf\r\ndataset: art\r\ntres: 3\r\n", []string{"Line 3, column 1", `did you mean "trees"`,
			"<pre>tres: 3</pre>"}},
		{"a wrong value", "algorithm: ldlf\ndataset: art\ntrees: 0\n", []string{"Line 3, column 8"}},
		{"no YAML", "algorithm: [ldlf", []string{"Line 1"}},
		{"the dataset decides", "algorithm: ldlf\ndataset: art\nfolds: 500\n", []string{"Line 3, column 8", "500 folds"}},
		{"no dataset", "algorithm: ldlf\n", []string{"the key dataset is missing"}},
		{"nothing", " \n", []string{"the spec is empty"}},
		{"an experiment", "name: x\ndatasets: [{dataset: none}]\nmethods: [aa-knn, {algorithm: nothing}]\n",
			[]string{"Line 2, column 12", "Line 3, column"}},
		{"a file of an experiment", "name: x\ndatasets: [a.csv]\nmethods: [aa-knn]\n", []string{"Line 2, column 12", "import"}},
		{"hostile", "algorithm: " + hostile + "\n</textarea>: 1", []string{hostile, "&lt;/textarea&gt;"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r.t = t
			r.post("/submit/spec", url.Values{"spec": {c.spec}}, http.StatusUnprocessableEntity, append(c.want,
				`id="mistakes"`)...)
		})
	}
	r.t = t
	job := url.Values{"spec": {"algorithm: aa-knn\ndataset: art\nname: pasted\n"}, "token": {"A"}}
	if to := r.post("/submit/spec", job, http.StatusSeeOther); to != r.post("/submit/spec", job, http.StatusSeeOther) {
		t.Errorf("a spec that was sent twice made two jobs")
	}
	study := url.Values{"spec": {"name: study\ndatasets: [{dataset: art}]\nfolds: {k: 2}\nmethods: [aa-knn]\n"},
		"token": {"B"}, "keep_models": {"true"}}
	for range 2 {
		if to := r.post("/submit/spec", study, http.StatusSeeOther); to != "/ui/experiments/study" {
			t.Errorf("the experiment led to %q", to)
		}
	}
	all := r.jobs()
	if len(all) != 2 || all[1].Name != "pasted" || all[0].Experiment != "study" || !all[0].Job.Cells.Models {
		t.Errorf("%d jobs: %+v", len(all), all)
	}
	// Fewer methods need consent.
	study.Set("spec", "name: study\ndatasets: [{dataset: art}]\nfolds: {k: 2}\nmethods: [sa-bfgs]\n")
	r.post("/submit/spec", study, http.StatusUnprocessableEntity, "leave_out", "Runs that leave the reports")
	study.Set("leave_out", "true")
	r.post("/submit/spec", study, http.StatusSeeOther)
}

// TestAddressOfForm: a form that was checked or refused has an address, so that browsers can come back to it. It has no
// token. The cluster checks nothing that a page of another site asks for.
func TestAddressOfForm(t *testing.T) {
	r := newReal(t)
	spec := "algorithm: ldlf\ndataset: art\ntrees: 3\n"
	for path, c := range map[string]struct {
		form url.Values
		text string
	}{
		"/submit":      {form("check", "true", "name", "checked"), "nothing was submitted yet"},
		"/submit?":     {form("trees", "many"), "Nothing was submitted"},
		"/submit/spec": {url.Values{"spec": {spec}, "check": {"true"}, "token": {"T"}}, "nothing was submitted yet"},
		"/submit/spec?": {url.Values{"spec": {"algorithm: ldlf\ndataset: art\nfolds: 500\n"}, "token": {"T"}},
			"Nothing was submitted"},
	} {
		path = strings.TrimSuffix(path, "?")
		to := r.post(path, c.form, http.StatusSeeOther)
		if u, err := url.Parse(to); err != nil || u.Path != "/ui"+path || u.Query().Has("token") {
			t.Errorf("%s leads to %s, %v", path, to, err)
		}
		for site, shown := range map[string]bool{"": true, "none": true, "same-origin": true, "same-site": false,
			"cross-site": false} {
			in := httptest.NewRequest(http.MethodGet, to, nil)
			in.Header.Set("Sec-Fetch-Site", site)
			w := httptest.NewRecorder()
			r.page.ServeHTTP(w, in.WithContext(access.With(testkit.Context(t), r.caller)))
			if strings.Contains(w.Body.String(), c.text) != shown {
				t.Errorf("%s from site %q: status %d, want a check: %v", to, site, w.Code, shown)
			}
		}
	}
	// Refusals that a check does not find, and long specs, are shown at once.
	r.caller = access.Caller{Role: rights.Read, Name: "eve"}
	r.post("/submit", form(), http.StatusUnprocessableEntity, "Nothing was submitted")
	r.caller = access.Caller{Role: rights.Admin, Name: "ana"}
	r.post("/submit/spec", url.Values{"spec": {"tres: 3\n" + strings.Repeat("# long\n", maxLines)}},
		http.StatusUnprocessableEntity, "Line 1, column 1")
	if all := r.jobs(); len(all) > 0 {
		t.Errorf("%d jobs were submitted", len(all))
	}
}

// maxLines are so many lines that an address cannot have them.
const maxLines = 1000

// TestNotFound: each view of something that is not there says so in one way, and leads to the list.
func TestNotFound(t *testing.T) {
	r := newReal(t)
	for path, text := range map[string]string{"/jobs/none": `There is no job "none".`, "/jobs/77": `There is no job "77".`,
		"/jobs/none/cancel": `There is no job "none".`, "/experiments/none": `There is no experiment "none".`,
		"/experiments/none/report": `There is no experiment "none".`, "/datasets/none": `There is no dataset "none".`,
		"/experiments/none/pause": `There is no experiment "none".`, "/models/none": `There is no model "none".`,
		"/coordinators/none/transfer": `There is no coordinator "none".`} {
		section := strings.Split(path, "/")[1]
		r.get(path, http.StatusNotFound, text, `<a href="/ui/`+section+`">List of `+section+`</a>`)
	}
	r.get("/none", http.StatusNotFound, "There is no page /ui/none.")
}

// TestOtherAlgorithm: if somebody chooses another algorithm and submits, the form first shows the settings of that one.
func TestOtherAlgorithm(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("shown", "sa-bfgs", "seed", "5"), http.StatusOK, "Nothing was submitted yet", `value="5"`,
		`name="trees" value="3"`, `name="shown" value="ldlf"`)
	if all := r.jobs(); len(all) > 0 {
		t.Errorf("%d jobs were submitted", len(all))
	}
	r.post("/submit", form("shown", "ldlf"), http.StatusSeeOther)
	r.get("/submit?"+form("algorithm", "rf", "seed", "6", "token", "of-another").Encode(), http.StatusOK, `value="6"`,
		`name="trees" value="3"`)
	if body := r.get("/submit?"+form().Encode(), http.StatusOK); strings.Contains(body, `value="T"`) {
		t.Error("the form has the token of an address")
	}
}

// TestSubmitAgain: the form has the spec of a job, with another seed and name.
func TestSubmitAgain(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("name", "one", "seed", "7", "clip", "pyldl"), http.StatusSeeOther)
	body := r.get("/submit?like=one", http.StatusOK, `value="8"`, `value="one-seed-8"`, `name="trees" value="3"`,
		`<option selected>pyldl</option>`, "The form has the spec of job one", `name="test_fraction" value="0.25"`)
	if strings.Count(body, `name="token" value=""`) > 0 {
		t.Error("the form has no token")
	}
	r.get("/submit?like=two", http.StatusNotFound)
	r.get("/submit?like="+url.QueryEscape(hostile), http.StatusNotFound)
}

// TestCompare: jobs are compared by settings. What cannot be compared is named, and the rest is compared.
func TestCompare(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("name", "one"), http.StatusSeeOther)
	r.post("/submit", form("name", "two", "trees", "4", "token", "U"), http.StatusSeeOther)
	r.post("/submit/spec", url.Values{"spec": {"name: x\ndatasets: [{dataset: art}]\nmethods: [aa-knn]\n"}},
		http.StatusSeeOther)
	study := r.jobs()[0].Name
	body := r.get("/compare?job=one&job=two&job=one&job=none&job="+study+"&job="+url.QueryEscape(hostile), http.StatusOK,
		"Job none is left out", "runs of experiment x", "1 setting that differs", hostile)
	differ, _, _ := strings.Cut(body[strings.Index(body, `class="differ"`):], "</table>")
	if !strings.Contains(differ, "trees") || strings.Contains(differ, "depth") {
		t.Errorf("settings that differ: %s", differ)
	}
	r.get("/compare", http.StatusOK, "Choose jobs", "one", "two")
	r.get("/compare?job=one", http.StatusOK, "Add jobs", "two")
}

// TestPrivateJobs: the page shows of a private job what the API gives the caller, and offers no change of it.
func TestPrivateJobs(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("name", "one"), http.StatusSeeOther)
	r.caller = access.Caller{Role: rights.Submit, Name: "bob"}
	r.post("/submit", form("name", "two", "token", "U"), http.StatusSeeOther)
	if body := r.get("/jobs/one", http.StatusOK, "by ana (private)", "Submit again"); strings.Contains(body, "/cancel") {
		t.Error("bob is offered to cancel the job of ana")
	}
	r.get("/jobs/one/cancel", http.StatusOK, "not possible")
	r.post("/jobs/one/cancel", nil, http.StatusForbidden)
	r.get("/jobs/two/cancel", http.StatusOK, "Cancel the job")
	r.get("/compare?job=one&job=two", http.StatusOK, "one", "two")
	r.caller.Role = rights.Read
	body := r.get("/jobs/two", http.StatusOK)
	if strings.Contains(body, "Submit again") || strings.Contains(body, "/pause") {
		t.Error("a reader is offered changes")
	}
	r.post("/submit", form("token", "V"), http.StatusUnprocessableEntity, "role")
}

// TestChanges: a job is paused, resumed, cancelled, shared and deleted; each page that asks first changes nothing.
func TestChanges(t *testing.T) {
	r := newReal(t)
	r.post("/submit", form("name", "one"), http.StatusSeeOther)
	state := func(want protocol.JobState) {
		t.Helper()
		if all := r.jobs(); len(all) != 1 || all[0].State != want {
			t.Fatalf("want one job that is %s, got %+v", want, all)
		}
	}
	r.post("/jobs/one/pause", nil, http.StatusSeeOther)
	state(protocol.Paused)
	r.get("/jobs/one", http.StatusOK, "Resume")
	r.post("/jobs/one/resume", nil, http.StatusSeeOther)
	r.get("/jobs/one/delete", http.StatusOK, "not possible")
	r.get("/jobs/one/cancel", http.StatusOK, "Cancel the job")
	state(protocol.Queued)
	r.post("/jobs/one/cancel", nil, http.StatusSeeOther)
	state(protocol.Cancelled)
	r.get("/jobs/one/share", http.StatusOK, "Share the job")
	r.post("/jobs/one/share", nil, http.StatusSeeOther)
	if r.jobs()[0].Private {
		t.Error("the job is still private")
	}
	r.get("/jobs/one/delete", http.StatusOK, "Delete the job")
	if to := r.post("/jobs/one/delete", nil, http.StatusSeeOther); to != "/ui/jobs" || len(r.jobs()) != 0 {
		t.Errorf("deleting led to %s, and %d jobs are left", to, len(r.jobs()))
	}
	r.get("/jobs/one/explode", http.StatusNotFound)
	r.post("/jobs/one/explode", nil, http.StatusNotFound)
}

// TestStates: the list of jobs links each state that jobs have, with their number.
func TestStates(t *testing.T) {
	r := newReal(t)
	for _, name := range []string{"one", "two", "three"} {
		r.post("/submit", form("name", name, "token", name), http.StatusSeeOther)
	}
	r.post("/jobs/two/pause", nil, http.StatusSeeOther)
	body := r.get("/jobs?state=paused&name=*o*", http.StatusOK, "all 2", "queued 1", "paused 1", "/ui/jobs/")
	if strings.Contains(body, ">one<") || !strings.Contains(body, ">two<") ||
		!strings.Contains(html.UnescapeString(body), `href="/ui/jobs?name=%2Ao%2A&state=queued"`) {
		t.Errorf("the list of paused jobs: %s", body)
	}
}
