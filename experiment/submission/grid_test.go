package submission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// endsOf says how the runs of a job have ended, as its outcomes say.
func (c *cluster) endsOf(t testing.TB, job uint64) Ends {
	ends := Ends{By: make([]End, c.jobs[job-1].Job.Cells.Count())}
	for task, outcome := range c.outcomes[job] {
		var o pipeline.Outcome
		if err := json.Unmarshal(outcome, &o); err != nil {
			t.Fatal(err)
		}
		if ends.By[task] = Well; o.Error != "" {
			ends.By[task] = Failed
		}
	}
	return ends
}

// TestGrid: a grid counts the runs that the table of the states has, whatever ended in which job, and describes failed
// runs by the last job in which they failed.
func TestGrid(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	for _, step := range []struct {
		methods, fails string
		runs, seed     int
	}{
		{"aa-knn, ranking, rf", "rf", 5, 1},
		{"aa-knn, ranking, rf", "aa-knn", all, 1},
		{"rf, aa-knn, sa-bfgs, {algorithm: rf, name: again}", "rf", 3, 1},
		{"sa-bfgs, rf", "", all, 2},
		{"sa-bfgs, rf, aa-knn", "aa-knn", all, 1},
	} {
		c.submit(t, fmt.Sprintf("name: e\nseed: %d\ndatasets: [b]\nfolds: {k: 4, repeats: 2}\nmethods: [%s]\n", step.seed,
			step.methods), Options{RetryFailed: true}, step.fails, protocol.Cancelled, step.runs)
		e, err := Read(t.Context(), c, "e")
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.Layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		table, _, err := e.States(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Grid(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := g.Counted(protocol.GridQuery{}, func(job uint64) Ends { return c.endsOf(t, job) },
			func(job uint64, task int) string {
				if c.endsOf(t, job).By[task] != Failed {
					t.Errorf("job %d, run %d has not failed", job, task)
				}
				return "it failed"
			})
		want := overview.GridOf(table, nil).Answer(protocol.GridQuery{})
		if got.Runs != want.Runs || got.Total != want.Total || !slices.Equal(got.Datasets, want.Datasets) {
			t.Errorf("%+v: %+v of %d methods, want %+v of %d", step, got.Runs, got.Total, want.Runs, want.Total)
		}
		for m := range want.Methods {
			g, w := &got.Methods[m], &want.Methods[m]
			if g.Name != w.Name || g.Runs[0].RunCounts != w.Runs[0].RunCounts {
				t.Errorf("%+v: %+v, want %+v", step, g, w)
			}
			texts := make([]string, 2)
			for i, list := range [][]protocol.FailedRun{g.Runs[0].Failures, w.Runs[0].Failures} {
				for _, f := range list {
					texts[i] += f.Error + "; "
				}
			}
			refused := strings.Contains(texts[1], "ranking") // a grid of a cluster says it once
			if texts[0] != texts[1] && !(refused && strings.HasPrefix(texts[1], texts[0])) {
				t.Errorf("%+v, %s: failures %q, want %q", step, g.Name, texts[0], texts[1])
			}
		}
	}
}

// TestGridOfChanges: a run that is computed counts as running unless it has ended well. A run that was left out waits
// if a later job that goes on has it. Only some failures are described.
func TestGridOfChanges(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	text := "name: e\ndatasets: [b]\nfolds: {k: 5, repeats: 8}\nmethods: [aa-knn, rf]\n"
	c.submit(t, text, Options{}, "", protocol.Cancelled, 0)
	c.submit(t, text, Options{}, "", protocol.Running, 0) // the same runs again
	e, err := Read(t.Context(), c, "e")
	if err != nil {
		t.Fatal(err)
	}
	g, err := e.Grid(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ends := map[uint64]Ends{1: {By: make([]End, 80)}, 2: {By: make([]End, 80), Live: true}}
	count := func(q protocol.GridQuery) *protocol.ExperimentGrid {
		return g.Counted(q, func(job uint64) Ends { return ends[job] }, func(job uint64, task int) string {
			return fmt.Sprint(job, " ", task)
		})
	}
	check := func(what string, want protocol.RunCounts) {
		t.Helper()
		if want.All = 80; count(protocol.GridQuery{}).Runs != want {
			t.Errorf("%s: %+v, want %+v", what, count(protocol.GridQuery{}).Runs, want)
		}
	}
	check("at first", protocol.RunCounts{})
	first, second := ends[1].By, ends[2].By
	first[0], first[1], first[2] = Well, LeftOut, Failed
	check("a run that was left out waits", protocol.RunCounts{Done: 1, Failed: 1})
	ends[2] = Ends{By: second, Live: true, Running: []int{0, 2, 3, 900, -1}}
	check("a failed run is computed again", protocol.RunCounts{Done: 1, Running: 2})
	ends[2] = Ends{By: second}
	check("the later job has ended", protocol.RunCounts{Done: 1, Failed: 1, NotRun: 1})
	second[0], second[1], second[2] = Failed, LeftOut, LeftOut
	check("a run ended well once", protocol.RunCounts{Done: 1, Failed: 1, NotRun: 1})
	second[2] = Failed
	part := count(protocol.GridQuery{Limit: 1})
	if len(part.Methods) != 1 || part.Next != 1 || part.Total != 2 || part.Runs.All != 80 {
		t.Errorf("%+v", part)
	}
	if f := part.Methods[0].Runs[0].Failures; len(f) != 1 || f[0].Error != "2 2" || f[0].Job != 2 || f[0].Fold != 1 {
		t.Errorf("%+v", f)
	}
	for i := range second {
		second[i] = Failed
	}
	failures := count(protocol.GridQuery{}).Methods[1].Runs[0].Failures
	if n := len(failures); n != protocol.MaxElementFailures || failures[0].Repeat != 0 || failures[2].Fold != 2 {
		t.Errorf("%+v", failures)
	}
	if rest := count(protocol.GridQuery{From: 1}); len(rest.Methods) != 1 || rest.Next != 0 ||
		rest.Methods[0].Name != "rf" {
		t.Errorf("%+v", rest)
	}
	if none := count(protocol.GridQuery{From: 7}); none.Methods == nil || len(none.Methods) != 0 {
		t.Errorf("%+v", none)
	}
}

// BenchmarkGrid measures the grid of 100,000 runs, when it is made and when it is counted and written. One run in ten
// has failed.
func BenchmarkGrid(b *testing.B) {
	text := "name: e\nfolds: {k: 10, repeats: 5}\ndatasets:\n"
	for d := range 20 {
		text += fmt.Sprintf("  - {dataset: d%d}\n", d)
	}
	text += "methods:\n"
	for k := range 100 {
		text += fmt.Sprintf("  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k, k+1)
	}
	s, err := experiment.Parse(b.Context(), "e.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	c := &cluster{blobs: make(map[string][]byte)}
	var plans []Plan
	for i := range s.Datasets {
		m, _ := datatest.Artificial(b, 300+i)
		p, err := experiment.NewPlan(b.Context(), s, &s.Datasets[i], &experiment.Data{Manifest: m})
		if err != nil {
			b.Fatal(err)
		}
		plans = append(plans, Plan{p, s.Datasets[i].On})
	}
	e, err := Read(b.Context(), c, s.Name)
	if err != nil {
		b.Fatal(err)
	}
	sub, err := e.Add(b.Context(), s, plans, nil, Options{})
	if err != nil || sub.Plan.Runs != 100_000 {
		b.Fatalf("%+v, %v", sub, err)
	}
	c.blobs[sub.Outline] = sub.Blobs[0]
	ends := make(map[uint64]Ends)
	for i, r := range sub.Jobs {
		j := protocol.JobInfo{ID: uint64(i + 1), Name: r.Name, Experiment: s.Name, Outline: sub.Outline,
			State: protocol.Running, Job: r.Job, Spec: r.Spec}
		c.jobs = append(c.jobs, j)
		by := make([]End, j.Job.Cells.Count())
		for task := range by {
			if by[task] = Well; task%10 == 0 {
				by[task] = Failed
			}
		}
		ends[j.ID] = Ends{By: by, Live: true, Running: []int{1, 2, 3}}
	}
	if e, err = Read(b.Context(), c, s.Name); err != nil {
		b.Fatal(err)
	}
	g, err := e.Grid(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Grid(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	for what, q := range map[string]protocol.GridQuery{"all methods": {}, "50 methods": {Limit: 50}} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				grid := g.Counted(q, func(job uint64) Ends { return ends[job] }, func(uint64, int) string { return "why" })
				if text, err := json.Marshal(grid); err != nil || grid.Runs.All != 100_000 {
					b.Fatalf("%.100s, %v", text, err)
				}
			}
		})
	}
}
