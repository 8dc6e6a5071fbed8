package page

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// updates are scripts that change a region, and report what they find.
const updates = `
const report = {};
function region(content) {
  document.getElementById("r").innerHTML = content;
  return (selector) => document.querySelector("#r " + selector);
}
let at = region('<p>one <b>two</b></p><p><a href="x">link</a></p>');
at("a").focus();
getSelection().selectAllChildren(at("b"));
const link = at("a");
replace("r", '<p>one <b>two</b> three</p><p><a href="y">link</a></p><ul><li>new</li></ul>');
report.text = document.getElementById("r").textContent;
report.focus = document.activeElement === link && link.getAttribute("href") === "y";
report.selection = getSelection().toString();

const row = (key, state) => '<tr data-key="' + key + '"><td><input type="checkbox" value="' + key + '"></td><td>' + state + '</td></tr>';
at = region("<table><tbody>" + row(2, "queued") + row(1, "running") + "</tbody></table>");
at('input[value="1"]').checked = true;
at('input[value="1"]').focus();
replace("r", "<table><tbody>" + row(1, "done") + row(3, "queued") + row(2, "running") + "</tbody></table>");
report.rows = [...document.querySelectorAll("#r tr")].map((r) => r.dataset.key + " " + r.textContent + " " + r.querySelector("input").checked);
report.rowFocus = document.activeElement.value;
replace("r", "<table><tbody>" + row(2, "done") + "</tbody></table>");
report.left = document.getElementById("r").innerHTML;

at = region('<details><summary>s</summary>a</details><progress max="1" value=".5"></progress><p hidden>gone</p>');
at("details").open = true;
replace("r", '<details><summary>s</summary>b</details><progress max="1" value=".7"></progress><p class="x">shown</p>');
report.details = at("details").open + " " + at("details").textContent + " " + at("progress").value + " " + at("p").outerHTML;
replace("r", '<div>other</div>text');
report.other = document.getElementById("r").innerHTML;
replace("none", "nothing");
document.getElementById("report").textContent = JSON.stringify(report);
`

// TestUpdates: a change of a region keeps the focus, the selected text, ticked boxes and opened details.
func TestUpdates(t *testing.T) {
	script, err := os.ReadFile("static/page.js")
	if err != nil {
		t.Fatal(err)
	}
	tab := browser.Start(t).Show(t, `<!doctype html><body><p id="trouble"></p><p id="away"></p><div id="r"></div><pre id="report"></pre>`+
		"<script>"+string(script)+updates+"</script></body>")
	text := browser.Eval[string](tab, "document.getElementById('report').textContent")
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want := map[string]any{"text": "one two threelinknew", "focus": true, "selection": "two",
		"rows": []any{"1 done true", "3 queued false", "2 running false"}, "rowFocus": "1",
		"left":    `<table><tbody><tr data-key="2"><td><input type="checkbox" value="2"></td><td>done</td></tr></tbody></table>`,
		"details": `true sb 0.7 <p class="x">shown</p>`, "other": "<div>other</div>text"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// doneJob returns a job that is done, with all that a page shows of one, and its curve.
func doneJob(t *testing.T, id uint64, name string) (protocol.JobInfo, protocol.JobCurve) {
	t.Helper()
	j := protocol.JobInfo{ID: id, Name: name, Dataset: strings.Repeat("d", 100), State: protocol.Done, Error: hostile,
		Waiting: hostile, Suspect: hostile, Experiment: strings.Repeat("e", 60), Workers: []string{hostile, "w2"},
		Ownership: protocol.Ownership{Owner: hostile, Private: true}, Models: []protocol.ModelRef{{Digest: "x", Bytes: 9}},
		Job: &round.Job{Algorithm: "ldlf", Dataset: strings.Repeat("0", 64), Params: json.RawMessage(`{"trees":5}`)}, Seconds: 1e6,
		Spec: json.RawMessage(`{"settings":{"trees":"5"},"seed":3}`), EventsDropped: 4}
	o := pipeline.Outcome{Steps: 100, BestStep: 40, RefitSteps: 40, EvaluatedOn: "test samples"}
	for i := range o.Measures {
		o.Measures[i], o.MeanPredictor[i] = measures.Stat{Mean: 0.25 + float64(id)/1e6, Std: 1e-12}, measures.Stat{Mean: 0.5}
	}
	var err error
	if j.Outcome, err = json.Marshal(o); err != nil {
		t.Fatal(err)
	}
	var c protocol.JobCurve
	for i := range 100 {
		p := curve.Point{Step: uint64(i), Training: 1 / float64(i+1), Validation: math.NaN(), Millis: int64(i) * 1e6}
		if i%20 == 0 {
			p.Validation = 1.1 * p.Training
		}
		c.Points = append(c.Points, p)
		if i%9 == 0 {
			j.Events = append(j.Events, protocol.JobEvent{Text: hostile, Step: uint64(i), Seconds: 1, Time: 1e9,
				Kind: protocol.EventLeader})
		}
	}
	return j, c
}

// inline matches what a page loads from the server.
var inline = regexp.MustCompile(`(?s)<link rel="(icon|stylesheet)"[^>]*>|<script src=[^>]*></script>`)

// TestLayout: at any width, no view is wider than the window, and no texts of a chart overlap. Names are of any length.
func TestLayout(t *testing.T) {
	api := fakeAPI{"/v1/datasets": []protocol.Dataset{{Name: strings.Repeat("d", 100)}}}
	var list protocol.JobList
	for i, name := range []string{strings.Repeat("n", 100), "short", hostile} {
		id := string(rune('1' + i))
		j, c := doneJob(t, uint64(i+1), name)
		api["/v1/jobs/"+id], api["/v1/jobs/"+id+"/curve"] = j, c
		list.Jobs, list.States = append(list.Jobs, j), map[protocol.JobState]int{"done": 3, "failed": 12345}
	}
	running, _ := doneJob(t, 4, "running")
	running.State, running.Progress = protocol.Running, &round.Progress{Step: 5, Steps: 9}
	list.Jobs = append(list.Jobs, running)
	api["/v1/jobs"], api["/v1/jobs/4"], api["/v1/jobs/4/curve"] = list, running, protocol.JobCurve{}
	h := Handler(Config{API: api})
	css, err := os.ReadFile("static/page.css")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/ui/jobs", "/ui/jobs/1", "/ui/jobs/1?by=seconds", "/ui/jobs/4", "/ui/jobs/1/delete",
		"/ui/compare?job=1&job=2&job=3&job=9", "/ui/submit?algorithm=ldlf", "/ui/submit/spec"}
	b := browser.Start(t)
	for _, path := range paths {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if size := w.Body.Len() + len(css); w.Code != http.StatusOK || size > 90_000 {
			t.Errorf("%s: status %d, %d bytes", path, w.Code, size)
		}
		page := inline.ReplaceAllString(w.Body.String(), "")
		page = strings.Replace(page, "</head>", "<style>"+string(css)+"</style></head>", 1)
		tab := b.Show(t, page)
		for _, width := range []int{360, 1920} {
			tab.Look(width, false)
			for _, found := range tab.Findings() {
				t.Errorf("%s in a window of %d pixels: %s", path, width, found)
			}
		}
	}
}

// TestBestMeasures: the best value follows from the direction of the measure. Jobs on other data are not compared.
func TestBestMeasures(t *testing.T) {
	job := func(data string, kl, cosine float64) *comparedJob {
		return &comparedJob{JobInfo: &protocol.JobInfo{Job: &round.Job{Dataset: data}, Evaluation: protocol.Evaluation{
			EvaluatedOn: "test samples"}}, result: result{Measures: []pipeline.Compared{
			{Title: "K-L", Model: measures.Stat{Mean: kl}}, {Title: "Cosine", Model: measures.Stat{Mean: cosine},
				HigherIsBetter: true}}}}
	}
	best := func(jobs ...*comparedJob) string {
		p := comparison{Jobs: jobs}
		p.compareMeasures()
		var text strings.Builder
		for _, row := range p.Measures {
			for _, c := range row.Cells {
				text.WriteByte(map[bool]byte{true: '*', false: '.'}[c.Best])
			}
		}
		if p.Note != "" {
			text.WriteString(" note")
		}
		return text.String()
	}
	seeded := job("a", 3, 3)
	seeded.Job.Split.Seed = 2
	for _, c := range []struct{ got, want string }{
		{best(job("a", 1, 1), job("a", 2, 2)), "*..*"},
		{best(job("a", 1, 1), job("a", 1, 2), job("a", math.NaN(), 1)), "**..*."},
		{best(job("a", 1, 1), &comparedJob{JobInfo: &protocol.JobInfo{Job: &round.Job{}}}), "...."},
		{best(job("a", 1, 1), job("b", 2, 2)), ".... note"},
		{best(job("a", 1, 1), seeded), "*..* note"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
