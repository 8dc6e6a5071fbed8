package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// visitAs answers a request of a caller, and returns the status and the page.
func visitAs(h http.Handler, c access.Caller, method, path, form string) (int, string, http.Header) {
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(access.With(r.Context(), c)))
	return w.Code, w.Body.String(), w.Header()
}

var admin = access.Caller{Name: "root", Role: rights.Admin}

// open returns a page of an admin.
func open(t *testing.T, api fakeAPI, path string) string {
	t.Helper()
	status, body, _ := visitAs(Handler(Config{API: api}), admin, http.MethodGet, path, "")
	if status != http.StatusOK {
		t.Fatalf("%s: status %d\n%s", path, status, body)
	}
	return body
}

// contains checks that a page has texts, and others not.
func contains(t *testing.T, page string, has []string, lacks ...string) {
	t.Helper()
	for _, text := range has {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
	for _, text := range lacks {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q:\n%s", text, page)
		}
	}
}

// study is an experiment with a grid of so many methods and datasets, of four runs each.
func study(state protocol.JobState, methods, datasets int) (protocol.Experiment, protocol.ExperimentGrid) {
	x := protocol.Experiment{Name: "study", State: state, Runs: 4 * methods * datasets, Done: 2 * methods * datasets,
		Ownership: protocol.Ownership{Owner: "adam"}}
	if state == protocol.Done {
		x.Done = x.Runs
	}
	g := protocol.ExperimentGrid{Name: "study", Total: methods}
	for d := range datasets {
		g.Datasets = append(g.Datasets, fmt.Sprintf("set-%d.", d))
	}
	for m := range methods {
		line := protocol.GridMethod{Name: fmt.Sprintf("method-%d.", m)}
		for range datasets {
			n := protocol.RunCounts{All: 4, Done: 4}
			if state != protocol.Done {
				n = protocol.RunCounts{All: 4, Done: 2, Running: 1}
			}
			line.Runs = append(line.Runs, protocol.GridElement{RunCounts: n})
			g.Runs = g.Runs.Plus(n)
		}
		g.Methods = append(g.Methods, line)
	}
	return x, g
}

// studyAPI answers about an experiment. asked counts how often each path is asked for.
func studyAPI(x protocol.Experiment, g protocol.ExperimentGrid, asked map[string]int) fakeAPI {
	count := func(path string, answer func(*http.Request) any) (string, any) {
		return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[path]++
			v := answer(r)
			if text, is := v.(string); is {
				w.Write([]byte(text))
				return
			}
			json.NewEncoder(w).Encode(v)
		})
	}
	api := fakeAPI{"/v1/jobs": protocol.JobList{}}
	for path, answer := range map[string]func(*http.Request) any{
		"/v1/experiments/study": func(*http.Request) any { return x },
		"/v1/experiments/study/grid": func(r *http.Request) any {
			q := protocol.GridQuery{}
			if err := protocol.ReadQuery(r.URL.Query(), "a grid", q.Params()); err != nil {
				return protocol.Problem{Error: err.Error()}
			}
			return g.Part(q)
		},
		"/v1/experiments/study/report": func(r *http.Request) any {
			if r.URL.Query().Get("format") != "fragment" {
				return "wrong format"
			}
			return `<div class="report"><p>rf is best.</p></div>`
		},
	} {
		key, handler := count(path, answer)
		api[key] = handler
	}
	return api
}

// TestGridParts: the parts of a large grid have each run count once, the links between them lead to all, and each page
// is small.
func TestGridParts(t *testing.T) {
	const methods, datasets = 130, 30
	x, g := study(protocol.Running, methods, datasets)
	for m := range g.Methods {
		for d := range g.Methods[m].Runs {
			g.Methods[m].Runs[d].RunCounts = protocol.RunCounts{All: 1_000_000, Done: 1000*m + d}
		}
	}
	api := studyAPI(x, g, map[string]int{})
	next := regexp.MustCompile(`href="(/ui/experiments/study\?[^"]*)" rel="next"`)
	cell := regexp.MustCompile(`<td class="cell \w+">(\d+)/1000000</td>`)
	found, seen := make(map[string]int), map[string]bool{"/ui/experiments/study": true}
	for queue := []string{"/ui/experiments/study"}; len(queue) > 0; queue = queue[1:] {
		body := open(t, api, queue[0])
		if len(body) > 80_000 {
			t.Errorf("%s has %d bytes", queue[0], len(body))
		}
		for _, m := range cell.FindAllStringSubmatch(body, -1) {
			found[m[1]]++
		}
		for _, m := range next.FindAllStringSubmatch(body, -1) {
			if to := strings.ReplaceAll(m[1], "&amp;", "&"); !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	for m := range methods {
		for d := range datasets {
			if n := found[fmt.Sprint(1000*m+d)]; n != 1 {
				t.Fatalf("method %d on dataset %d is on %d of %d pages", m, d, n, len(seen))
			}
		}
	}
	for _, wrong := range []string{"?method=x", "?dataset=-1"} {
		status, body, _ := visitAs(Handler(Config{API: api}), admin, "GET", "/ui/experiments/study"+wrong, "")
		if status != http.StatusOK || !strings.Contains(body, "to show, from 0") {
			t.Errorf("%s: status %d: %s", wrong, status, body)
		}
	}
	contains(t, open(t, api, "/ui/experiments/study?method=1000&dataset=1000"), []string{"set-29.", "method-129.",
		"methods 101 to 130 of 130"})
}

// TestReportOnce: the page of an experiment has the report if all runs have ended and the experiment is small. Nobody
// makes a report while runs change.
func TestReportOnce(t *testing.T) {
	asked := make(map[string]int)
	const report = "/v1/experiments/study/report"
	x, g := study(protocol.Running, 2, 2)
	contains(t, open(t, studyAPI(x, g, asked), "/ui/experiments/study"), []string{`data-live="/ui/live/experiments/study"`,
		"/ui/experiments/study/report", "2/4 <b>1 running</b>", ">Cancel<", ">Pause<"}, "rf is best", "Retry", "Run the rest")
	if asked[report] != 0 {
		t.Error("a report was made of an experiment that goes on")
	}
	x, g = study(protocol.Done, 2, 2)
	contains(t, open(t, studyAPI(x, g, asked), "/ui/experiments/study"), []string{"<p>rf is best.</p>", "report.css",
		">4/4<"}, "data-live=\"/ui", ">Cancel<", "Retry")
	if asked[report] != 1 {
		t.Errorf("the report was made %d times", asked[report])
	}
	x.Runs = reportedRuns + 1
	contains(t, open(t, studyAPI(x, g, asked), "/ui/experiments/study"), []string{"/ui/experiments/study/report"},
		"rf is best")
	contains(t, open(t, studyAPI(x, g, asked), "/ui/experiments/study/report"), []string{"<p>rf is best.</p>"})
	if asked[report] != 2 {
		t.Errorf("the report was made %d times", asked[report])
	}
}

// TestKeptReports: the report of an experiment that has ended is made once, and again after new runs. A private report
// is not shown to a caller who may not read it.
func TestKeptReports(t *testing.T) {
	const report = "/v1/experiments/study/report"
	x, g := study(protocol.Done, 2, 2)
	asked := make(map[string]int)
	api := studyAPI(x, g, asked)
	api["/v1/experiments/study"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(x)
	})
	h := Handler(Config{API: api})
	visits := func(c access.Caller, made int) {
		t.Helper()
		for _, path := range []string{"/ui/experiments/study", "/ui/experiments/study/report"} {
			_, body, _ := visitAs(h, c, http.MethodGet, path, "")
			contains(t, body, []string{"<p>rf is best.</p>"})
		}
		if asked[report] != made {
			t.Errorf("the report was made %d times, want %d", asked[report], made)
		}
	}
	eve := access.Caller{Name: "eve", Role: rights.Submit}
	visits(admin, 1)
	visits(eve, 1)
	x.Newest++
	visits(eve, 2)
	x.Private = true
	visits(admin, 3)
	visits(access.Caller{Name: "adam", Role: rights.Submit}, 4)
	made := api[report]
	api[report] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(protocol.Problem{Error: "only adam and admins may read it"})
	})
	visits(admin, 4)
	_, body, _ := visitAs(h, eve, http.MethodGet, "/ui/experiments/study", "")
	contains(t, body, []string{"only adam and admins may read it"}, "rf is best")
	api[report] = made
	for i := range 2 * keptReports { // the first ones are made again
		x.Newest = uint64(100 + i)
		visits(admin, 5+i)
	}
	x.Newest = 100
	visits(admin, 5+2*keptReports)
}

// TestRefusedReport: a page shows why there is no report, and the command that makes one.
func TestRefusedReport(t *testing.T) {
	x, g := study(protocol.Done, 2, 2)
	api := studyAPI(x, g, map[string]int{})
	api["/v1/experiments/study/report"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(protocol.Problem{Error: "the experiment has 300,000 runs " + hostile})
	})
	for _, path := range []string{"/ui/experiments/study", "/ui/experiments/study/report"} {
		contains(t, open(t, api, path), []string{"the experiment has 300,000 runs"}, "<img")
	}
	contains(t, open(t, api, "/ui/experiments/study/report"), []string{"coppice experiment report study"})
}

// TestFailedRuns: the page of an experiment lists failed runs with their errors and jobs, and repeats them.
func TestFailedRuns(t *testing.T) {
	x, g := study(protocol.Done, 3, 2)
	x.Done--
	cell := &g.Methods[1].Runs[1]
	cell.RunCounts = protocol.RunCounts{All: 4, Done: 1, Failed: 3}
	fails := protocol.FailedRun{Repeat: 1, Fold: 3, Error: "the loss is not finite " + hostile, Job: 17, Task: 4}
	cell.Failures = []protocol.FailedRun{fails, fails}
	cell.Failures[1].Fold = 0
	g.Runs = protocol.RunCounts{All: 24, Done: 21, Failed: 3}
	api, posted := studyAPI(x, g, map[string]int{}), []protocol.ExperimentRetry(nil)
	api["/v1/experiments/study/retry"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body protocol.ExperimentRetry
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost {
			t.Error(r.Method, err)
		}
		posted = append(posted, body)
		w.Write([]byte("{}"))
	})
	contains(t, open(t, api, "/ui/experiments/study"), []string{"2 of 3 failed runs", "method-1.", "set-1.",
		"3 of repeat 1, 0 of repeat 1", "the loss is not finite", `href="/ui/jobs/17"`, "1/4 <b>3 failed</b>", "Retry the failed runs",
		"Run the rest", "<strong>3 of them failed</strong>"}, "<img")
	h := Handler(Config{API: api, Prefix: "/p"})
	for _, change := range []string{"retry", "rest"} {
		status, _, header := visitAs(h, admin, http.MethodPost, "/ui/experiments/study/"+change, "")
		if status != http.StatusSeeOther || header.Get("Location") != "/p/ui/experiments/study" {
			t.Errorf("%s: status %d, location %q", change, status, header.Get("Location"))
		}
	}
	if len(posted) != 2 || !posted[0].Failed || posted[1].Failed || posted[0].Token == "" ||
		posted[0].Token == posted[1].Token {
		t.Errorf("%+v", posted)
	}
	status, _, _ := visitAs(h, admin, http.MethodPost, "/ui/experiments/study/delete", "")
	if status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	// Others may look, and not change.
	_, body, _ := visitAs(h, access.Caller{Name: "eve", Role: rights.Submit}, "GET", "/ui/experiments/study", "")
	contains(t, body, []string{"the loss is not finite"}, "Retry", "<button>")
	_, body, _ = visitAs(h, access.Caller{Name: "adam", Role: rights.Submit}, "GET", "/ui/experiments/study", "")
	contains(t, body, []string{"Retry the failed runs"})
}

// hostileAPI has one experiment, dataset and model whose texts are all hostile.
func hostileAPI() fakeAPI {
	j := hostileJob()
	j.Models, j.State = []protocol.ModelRef{{}, {}}, protocol.Done
	x := protocol.Experiment{Name: hostile, State: protocol.Failed, Waiting: hostile, Errors: []string{hostile},
		EstimatedFrom: hostile, Phases: []string{hostile}, Ownership: j.Ownership, Runs: 3, Done: 2}
	m := &dataset.Manifest{Rows: 5, Features: 2, Labels: 2, LabelNames: []string{hostile, "b"},
		FeatureNames: []string{hostile, "c"}, MeanLabel: []float64{.25, .75}, Missing: hostile,
		Groups: &dataset.Groups{Names: []string{hostile}},
		Reading: dataset.Reading{Kind: hostile, Dropped: []dataset.DroppedColumn{{Name: hostile}},
			Categories: []dataset.Category{{Name: hostile, Levels: []string{hostile}}}}}
	d := protocol.Dataset{Name: hostile, Digest: hostile, Manifest: m, Ownership: j.Ownership}
	model := protocol.ModelInfo{Name: hostile, Job: 7, Algorithm: hostile, Dataset: hostile, Ownership: j.Ownership,
		Suspect: hostile, ModelRef: protocol.ModelRef{Digest: hostile, Blob: hostile}}
	return fakeAPI{"/v1/experiments": protocol.ExperimentList{Experiments: []protocol.Experiment{x}, Total: 1},
		"/v1/experiments/x": x, "/v1/experiments/x/grid": protocol.ExperimentGrid{Datasets: []string{hostile}, Total: 1,
			Runs: protocol.RunCounts{All: 3, Failed: 1}, Methods: []protocol.GridMethod{{Name: hostile,
				Runs: []protocol.GridElement{{RunCounts: protocol.RunCounts{All: 3, Failed: 1},
					Failures: []protocol.FailedRun{{Error: hostile}}}}}}},
		"/v1/jobs": protocol.JobList{Jobs: []protocol.JobInfo{j}, Total: 1}, "/v1/jobs/7": j,
		"/v1/datasets": []protocol.Dataset{d}, "/v1/datasets/x": d, "/v1/models": []protocol.ModelInfo{model}}
}

// TestHostileResults: what others wrote is text on the pages of experiments, datasets and models.
func TestHostileResults(t *testing.T) {
	h := Handler(Config{API: hostileAPI(), Prefix: "/p"})
	name := url.PathEscape(hostile)
	paths := []string{"/ui/experiments", "/ui/experiments?name=" + url.QueryEscape(hostile), "/ui/experiments/x",
		"/ui/experiments/x/report", "/ui/datasets", "/ui/datasets/x", "/ui/models", "/ui/models/" + name,
		"/ui/models/" + name + "?delete=true", "/ui/models/none" + name}
	for _, path := range paths {
		_, body, _ := visitAs(h, admin, http.MethodGet, path, "")
		contains(t, body, []string{"</html>"}, "<img", " style=", "<script>", "ZgotmplZ")
	}
}

// TestEmptyLists: an empty list says what to do, and a list without a fitting element leads to all.
func TestEmptyLists(t *testing.T) {
	api := fakeAPI{"/v1/experiments": protocol.ExperimentList{}, "/v1/datasets": []protocol.Dataset{},
		"/v1/models": []protocol.ModelInfo{}}
	for path, text := range map[string]string{"experiments": "coppice experiment run SPEC",
		"datasets": "coppice dataset import --data FILE", "models": "coppice train --server"} {
		contains(t, open(t, api, "/ui/"+path), []string{text}, "<table>")
		contains(t, open(t, api, "/ui/"+path+"?owner=eve"), []string{"fits", `<a href="/ui/` + path + `">Show all`}, text)
	}
}

// TestNextPart: lists without an object around them lead to their next part, with the filters of the visit.
func TestNextPart(t *testing.T) {
	asked := make(map[string]url.Values)
	linked := func(value any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked[r.URL.Path] = r.URL.Query()
			w.Header().Set("Link", `<?after=last+one%2F3&limit=100&owner=adam>; rel="next"`)
			json.NewEncoder(w).Encode(value)
		}
	}
	api := fakeAPI{"/v1/datasets": linked([]protocol.Dataset{{Name: "a", Manifest: new(dataset.Manifest)}}),
		"/v1/models": linked([]protocol.ModelInfo{{Name: "a/0"}})}
	for _, path := range []string{"datasets", "models"} {
		contains(t, open(t, api, "/ui/"+path+"?owner=adam&after=first&name="),
			[]string{`href="/ui/` + path + `?after=last&#43;one%2F3&amp;owner=adam" rel="next"`})
		if q := asked["/v1/"+path]; q.Get("limit") != "100" || q.Get("after") != "first" || q.Has("name") {
			t.Errorf("%s: %v", path, q)
		}
	}
}
