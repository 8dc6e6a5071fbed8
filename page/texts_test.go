package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestFailures: the reason of a failed job comes first, and the place where it occurred is apart.
func TestFailures(t *testing.T) {
	for text, want := range map[string]failure{
		"round 3: task 5 on worker w1: the loss is not finite": {"The loss is not finite", "Task 5 on worker w1, round 3."},
		"round 0: no worker could compute the task for 2m0s: task 1 on worker w-2: shard 12: not found": {"Shard 12: not found",
			"Task 1 on worker w-2, round 0, no worker could compute the task for 2m0s."},
		"round 7: step: too large":         {"Step: too large", "Round 7."},
		"the model could not be stored: x": {"the model could not be stored: x", ""},
		"task 1 on worker w: ":             {"task 1 on worker w: ", ""},
		"":                                 {"", ""},
		"round 1: " + hostile:              {hostile, "Round 1."},
	} {
		if got := failureOf(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	j := hostileJob()
	j.State, j.Error = protocol.Failed, "round 3: task 5 on worker w1: "+hostile
	page := open(t, fakeAPI{"/v1/jobs/7": j, "/v1/jobs/7/curve": protocol.JobCurve{}}, "/ui/jobs/7")
	contains(t, page, []string{"Task 5 on worker w1, round 3."}, "task 5 on worker w1:", "<img")
}

// TestProgressText: with a refit, a job takes up to twice its steps, and the page says why.
func TestProgressText(t *testing.T) {
	for want, p := range map[string]round.Progress{
		"step 12 of at most 800 (400, and as many in a refit)": {Step: 12, Steps: 400, MostSteps: 800},
		"step 12 of at most 400":                               {Step: 12, Steps: 400, MostSteps: 400},
		"step 12 of 400":                                       {Step: 12, Steps: 400},
	} {
		if got := progressText(&protocol.JobInfo{Progress: &p}, nil); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}

// TestHintsAreValues: a field shows its default in place of a value only if it is a value.
func TestHintsAreValues(t *testing.T) {
	for _, a := range spec.Choices() {
		for _, g := range groupsOf(a, nil, nil) {
			for _, f := range slices.Concat(g.Fields, g.Seldom) {
				if _, err := f.Parse(f.Hint); f.Hint != "" && err != nil {
					t.Errorf("%s: %s has the hint %q", a.Name(), f.Name, f.Hint)
				}
				if f.Name == "seed" && f.Hint != "1" || f.Name == "name" && f.Hint != "" {
					t.Errorf("%s: %s has the hint %q", a.Name(), f.Name, f.Hint)
				}
			}
		}
	}
}

// TestLastContact: a leader that was just elected does not know when others were heard, which is not never.
func TestLastContact(t *testing.T) {
	c := cluster("x y z", "x")
	c.Members[1].LastSeen, c.Members[1].Alive = -1, false
	c.Members[2].LastSeen, c.Members[2].Alive, c.Members[2].Problem = -1, false, "connection refused"
	page := open(t, fakeAPI{"/v1/cluster": c}, "/ui/coordinators")
	contains(t, page, []string{"<td>not yet</td>", "<td>not since a leads</td>"}, "never")
}

// TestQuestions: an experiment is cancelled or paused only after a question, which works without script.
func TestQuestions(t *testing.T) {
	x, g := study(protocol.Running, 2, 2)
	api := studyAPI(x, g, make(map[string]int))
	page := open(t, api, "/ui/experiments/study")
	for change, button := range map[string]string{"cancel": "Cancel the experiment", "pause": "Pause the experiment"} {
		to := "/ui/experiments/study/" + change
		contains(t, page, []string{`<a class="button" href="` + to + `">`}, `action="`+to+`"`)
		contains(t, open(t, api, to), []string{`<form method="post" action="` + to + `"><button class="danger">` + button,
			"8 of 16 runs have ended"})
		status, body, _ := visitAs(Handler(Config{API: api}), access.Caller{Name: "eve", Role: rights.Read}, http.MethodGet,
			to, "")
		if status != http.StatusOK || strings.Contains(body, `method="post" action="`+to) {
			t.Errorf("%s of a reader: %d %s", to, status, body)
		}
	}
	x.State = protocol.Done
	contains(t, open(t, studyAPI(x, g, make(map[string]int)), "/ui/experiments/study/cancel"),
		[]string{"This is not possible: the experiment is done"}, `<button class="danger">`)
	status, _, _ := visitAs(Handler(Config{API: api}), admin, http.MethodGet, "/ui/experiments/study/burn", "")
	if status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}

// TestSettingsApart: of two algorithms, the settings come first that a spec has, then defaults that differ. Defaults of
// settings that only one algorithm has are apart.
func TestSettingsApart(t *testing.T) {
	one := &comparedJob{values: map[string]string{"algorithm": "a", "seed": "1", "steps": "10", "trees": "5", "depth": "7",
		"rate": "1"}, order: []string{"algorithm", "seed", "steps", "trees", "depth", "rate"},
		given: map[string]bool{"algorithm": true, "trees": true}}
	two := &comparedJob{values: map[string]string{"algorithm": "b", "seed": "1", "steps": "20", "layers": "2"},
		order: []string{"algorithm", "seed", "steps", "layers"}, given: map[string]bool{"algorithm": true}}
	p := comparison{Jobs: []*comparedJob{one, two}}
	p.compareSettings()
	names := func(rows []comparedRow) (all []string) {
		for _, r := range rows {
			all = append(all, r.Name)
		}
		return all
	}
	if got := names(p.Differ); !slices.Equal(got, []string{"algorithm", "trees", "steps"}) {
		t.Errorf("differ: %v", got)
	}
	if got := names(p.Apart); !slices.Equal(got, []string{"depth", "rate", "layers"}) {
		t.Errorf("apart: %v", got)
	}
	if got := names(p.Equal); !slices.Equal(got, []string{"seed"}) {
		t.Errorf("equal: %v", got)
	}
}

// TestModelMeasures: the card of a model names measures as tables do, in their order.
func TestModelMeasures(t *testing.T) {
	j := hostileJob()
	j.State, j.Measures = protocol.Done, map[string]float64{"cosine": .9, "chi2": .2, "kl": .1}
	api := fakeAPI{"/v1/models": []protocol.ModelInfo{{Name: "m", Job: 7}}, "/v1/jobs/7": j}
	v := &visit{Request: (&http.Request{URL: &url.URL{}}).WithContext(access.With(t.Context(), admin)),
		site: newSite(Config{API: api}), api: source{api: api}}
	v.SetPathValue("name", "m")
	made, err := modelView(v)
	if err != nil {
		t.Fatal(err)
	}
	want := []setting{{"K-L", "0.1"}, {"Squared χ²", "0.2"}, {"Cosine", "0.9"}}
	if got := made.Data.(*modelPage).Measures; !slices.Equal(got, want) {
		t.Errorf("measures %v", got)
	}
}

// TestLargeReport: a page does not have the leader make a report that is too large for it, and says what to do.
func TestLargeReport(t *testing.T) {
	x, g := study(protocol.Done, 2, 2)
	for _, done := range []int{largeReport, largeReport + 1} {
		x.Runs, x.Done = done, done
		asked := make(map[string]int)
		api, large := studyAPI(x, g, asked), done > largeReport
		report := open(t, api, "/ui/experiments/study/report")
		if made := asked["/v1/experiments/study/report"] > 0; made == large ||
			strings.Contains(report, "coppice experiment report study") != large {
			t.Errorf("%d runs: asked %v\n%s", done, asked, report)
		}
		page := open(t, api, "/ui/experiments/study")
		if strings.Contains(page, "coppice experiment report study") != large ||
			strings.Contains(page, `href="/ui/experiments/study/report"`) == large {
			t.Errorf("%d runs: %s", done, page)
		}
	}
}
