package local

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
)

// TestRunWithinBudget: runs do not begin if earlier runs have spent their budget. The runs of other methods are all
// run, also if a lane has to wait for the time of the first one.
func TestRunWithinBudget(t *testing.T) {
	s, err := experiment.Parse(t.Context(), "s.yaml",
		[]byte("name: a\ndatasets: [b]\nfolds: 4\nmethods:\n  - {algorithm: sa-bfgs, grid: {iterations: [2, 3, 4]}}"))
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, generate.Artificial(60, 1))
	p, err := experiment.NewPlan(t.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := p.Runs()
	if err != nil {
		t.Fatal(err)
	}
	w := &work{planned: p, Data: &local.Data{Manifest: m, Shards: shards}, Runs: runs}
	methods, last := make(map[int]int), Status{}
	err = runAll(t.Context(), []*work{w}, quiet(sessionOptions{
		Lanes: 3, Budgets: []*budget{{Limit: 5, Spent: 5}, nil, {Limit: 1e6}},
		Put: func(_ *work, c *experiment.Run, r *experiment.Record) error {
			if r.Outcome.Error != "" {
				t.Error(r.Outcome.Error)
			}
			methods[c.Method]++
			return nil
		},
		Show: func(s Status) { last = s },
	}))
	if err != nil || methods[0] != 0 || methods[1] != 4 || methods[2] != 4 {
		t.Errorf("runs by method: %v, error %v", methods, err)
	}
	if last.Done != 8 || !last.Firsts || last.Estimate.Seconds != 0 {
		t.Errorf("%+v", last)
	}
}
