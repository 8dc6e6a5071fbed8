package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// task is a job that the suite submits again and again, and what it must give.
type task struct {
	spec   protocol.Spec
	name   string // of one of workload.other
	digest string // of the model, undisturbed; of runs that of their models
	cells  bool   // it is of runs, and has no model of its own
}

// study is an experiment that a client submits again and again, and the report that it must give.
type study struct {
	task   task   // of its one job
	spec   string // its text, with the verb %s for the name
	layout *experiment.Layout
	cells  []experiment.Run // by task
	report []byte           // undisturbed, without times
}

// workload is the data and the tasks of a run.
type workload struct {
	sources map[string]func() dataset.Source // of the datasets, by name
	long    map[string][]*task               // by algorithm: those that faults hit
	short   []*task                          // those of the clients, which pause and cancel
	other   []*task                          // one for each algorithm without long jobs, and of networks
	study   *study                           // nil: jobs of one algorithm are wanted
}

// The names of the data in the cluster: the trees' has more rows, so that a tree
// takes some tens of milliseconds.
const (
	stepsData = "chaos-steps"
	treesData = "chaos-trees"
)

// sizes of the generated jobs: long ones run for some tens of seconds on two
// cores, with steps of about a millisecond.
type sizes struct {
	rows, steps, treeRows, trees int
	shortSteps                   int
	waits                        time.Duration // how long a job may wait for a network's round trips
	seeds                        uint64        // tasks of each kind, which differ in their seeds
}

var (
	fullSizes  = sizes{rows: 2000, steps: 8000, treeRows: 20_000, trees: 100, shortSteps: 250, waits: time.Minute, seeds: 2}
	smallSizes = sizes{rows: 1000, steps: 2500, treeRows: 2000, trees: 30, shortSteps: 250, waits: 5 * time.Second, seeds: 1}
)

const dataSeed = 11

const (
	shortWaits = 5 * time.Second // sizes.waits of the short jobs
	leastSteps = 50
)

// on makes the jobs short enough for a round trip, for each step takes one at least.
func (z sizes) on(rtt time.Duration) sizes {
	if rtt > 0 {
		z.steps = max(leastSteps, min(z.steps, int(z.waits/rtt)))
		z.shortSteps = max(leastSteps, min(z.shortSteps, int(shortWaits/rtt)))
	}
	return z
}

// slowed makes the jobs as long as before where everything takes so many times longer.
func (z sizes) slowed(times int) sizes {
	z.steps, z.trees, z.shortSteps = z.steps/times, z.trees/times, max(leastSteps, z.shortSteps/times)
	return z
}

// reference runs the task undisturbed, in this process.
func (t *task) reference(ctx context.Context, data *local.Data) error {
	j, err := spec.Resolve(t.spec, data.Manifest)
	if err != nil {
		return fmt.Errorf("a job of the chaos test: %w", err)
	}
	o, err := local.Run(ctx, j, data, local.Options{Lanes: 1})
	if err != nil {
		return fmt.Errorf("a job of the chaos test, run without faults: %w", err)
	}
	t.digest = o.ModelDigest
	return nil
}

// named returns the task's spec with a name for one of its jobs.
func (t *task) named(name string) protocol.Spec {
	s := t.spec
	s.Name = name
	return s
}

// check holds a job that has ended against the task.
func (t *task) check(j *protocol.JobInfo) error {
	if j.State != protocol.Done {
		return fmt.Errorf("%w: the job %s (%d) should be done, but is %s %s", ErrFailed, j.Name, j.ID, j.State, j.Error)
	}
	if j.Suspect != "" {
		return fmt.Errorf("%w: the job %s (%d) is suspect: %s", ErrFailed, j.Name, j.ID, j.Suspect)
	}
	var o pipeline.Outcome
	if err := json.Unmarshal(j.Outcome, &o); err != nil {
		return fmt.Errorf("%w: the outcome of the job %s (%d) cannot be read: %w", ErrFailed, j.Name, j.ID, err)
	}
	models := len(j.Models) == 1 && j.Models[0].Digest == t.digest
	if t.cells {
		models = len(j.Models) == 0
	}
	if o.ModelDigest != t.digest || !models {
		return fmt.Errorf("%w: the job %s (%d) made the model %.12s, but without faults the model is %.12s", ErrFailed, j.Name, j.ID, o.ModelDigest, t.digest)
	}
	return nil
}
