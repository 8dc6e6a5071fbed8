package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/report"
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
	fullSizes = sizes{rows: 2000, steps: 8000, treeRows: 20_000, trees: 100, shortSteps: 250,
		waits: time.Minute, seeds: 2}
	smallSizes = sizes{rows: 400, steps: 2500, treeRows: 2000, trees: 30, shortSteps: 250,
		waits: 5 * time.Second, seeds: 1}
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

// newWorkload makes the data and computes what every task gives undisturbed.
func newWorkload(ctx context.Context, c *Config) (*workload, error) {
	z := fullSizes
	if c.Small {
		z = smallSizes
		switch c.Algorithm { // no other job is hit: those of one kind must last for some commits
		case structRF:
			z.treeRows, z.trees = fullSizes.treeRows, fullSizes.trees
		case ldlf:
			z.steps = fullSizes.steps
		}
	}
	z = z.slowed(slowdown)
	if c.Network != nil {
		z = z.on(c.Network.RTT)
	}
	w := &workload{long: make(map[string][]*task), sources: map[string]func() dataset.Source{
		stepsData: func() dataset.Source { return generate.Artificial(z.rows, dataSeed) },
	}}
	if c.Algorithm != ldlf {
		w.sources[treesData] = func() dataset.Source { return generate.Artificial(z.treeRows, dataSeed) }
	}
	tasks := w.tasks(c, z)
	return w, w.compute(ctx, tasks, c.Algorithm == "", z.shortSteps)
}

// tasks makes the tasks.
func (w *workload) tasks(c *Config, z sizes) (all []*task) {
	for seed := uint64(1); seed <= z.seeds; seed++ {
		for _, a := range Algorithms {
			if c.Algorithm == "" || c.Algorithm == a {
				t := &task{spec: longSpec(a, seed, z)}
				w.long[a], all = append(w.long[a], t), append(all, t)
			}
		}
		t := &task{spec: shortSpec(seed, z)}
		w.short, all = append(w.short, t), append(all, t)
	}
	if c.Algorithm == "" {
		w.other = w.others()
		all = append(all, w.other...)
	}
	return all
}

// compute runs every task undisturbed, and, where it is wanted, the experiment, whose forests take
// so many steps.
func (w *workload) compute(ctx context.Context, tasks []*task, study bool, steps int) error {
	data := make(map[string]*local.Data)
	for name, source := range w.sources {
		manifest, shards, err := importer.Build(source(), importer.Options{})
		if err != nil {
			return err
		}
		data[name] = &local.Data{Manifest: manifest, Shards: shards}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	if study {
		g.Go(func() (err error) {
			w.study, err = newStudy(ctx, data[stepsData], steps)
			return err
		})
	}
	for _, t := range tasks {
		g.Go(func() error { return t.reference(ctx, data[t.spec.Dataset]) })
	}
	return g.Wait()
}

func longSpec(algorithm string, seed uint64, z sizes) protocol.Spec {
	if algorithm == ldlf {
		return protocol.Spec{Algorithm: ldlf, Dataset: stepsData, Seed: &seed, Set: forest(z.steps)}
	}
	return protocol.Spec{
		Algorithm: structRF, Dataset: treesData, Seed: &seed, TestFraction: 0.1,
		Set: map[string]string{"preset": "paper", "trees": strconv.Itoa(z.trees), "max_depth": "8"},
	}
}

func shortSpec(seed uint64, z sizes) protocol.Spec {
	return protocol.Spec{Algorithm: ldlf, Dataset: stepsData, Seed: &seed, Set: forest(z.shortSteps)}
}

// forest is the settings of a small label distribution learning forest that runs
// all its steps.
func forest(steps int) map[string]string {
	return map[string]string{
		"steps": strconv.Itoa(steps), "trees": "3", "depth": "5", "batch_size": "256", "leaf_batches": "50",
		"validation_fraction": "0",
	}
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
		return fmt.Errorf("%w: the job %s (%d) made the model %.12s, but without faults the model is %.12s", ErrFailed,
			j.Name, j.ID, o.ModelDigest, t.digest)
	}
	return nil
}

// numbersData is the data of algorithms that predict numbers, and targetsData of algorithms that predict targets.
const (
	numbersData = "chaos-numbers"
	targetsData = "chaos-targets"
)

// otherSettings are those of the algorithms without long jobs: with them a job takes
// about a second. An algorithm that is absent has its defaults.
var otherSettings = map[string]map[string]string{
	"dldl":   {"hidden": "32", "steps": "2000", "patience": "1000"},
	"rf":     {"trees": "20", "max_depth": "8"},
	"sa-iis": {"iterations": "100"},
}

// networks are jobs of algorithms that have others too, by a name for them.
var networks = []struct {
	name, algorithm string
	set             map[string]string
}{
	{"ldlf-mlp", ldlf, map[string]string{"features": "mlp", "hidden": "32", "layer_norm": "true", "steps": "1000",
		"trees": "2", "depth": "4", "patience": "1000"}},
	{"ldlf-conv", ldlf, convolution(map[string]string{"trees": "2", "depth": "4"})},
	{"dldl-conv", "dldl", convolution(map[string]string{"validation_steps": "50"})},
}

// convolution adds the settings of a small convolution, on rows that are images of one line.
func convolution(set map[string]string) map[string]string {
	for key, value := range map[string]string{
		"features": "conv", "shape": "row", "channels": "4", "kernel": "3", "pool": "1", "hidden": "16", "steps": "600",
		"patience": "1000",
	} {
		set[key] = value
	}
	return set
}

// otherRows is how many rows the data of numbers have.
const otherRows = 400

// others makes a task for each algorithm without long jobs, and for networks.
func (w *workload) others() (list []*task) {
	w.sources[numbersData] = func() dataset.Source { return numbers{generate.Artificial(otherRows, dataSeed)} }
	w.sources[targetsData] = func() dataset.Source { return targets{generate.Artificial(otherRows, dataSeed)} }
	seed := uint64(1)
	for _, a := range registry.All() {
		if slices.Contains(Algorithms, a.Name()) {
			continue
		}
		s := protocol.Spec{Algorithm: a.Name(), Dataset: stepsData, Seed: &seed, TestFraction: 0.1,
			Set: otherSettings[a.Name()]}
		switch a.Predicts() {
		case algorithms.Number:
			s.Dataset = numbersData
		case algorithms.Targets:
			s.Dataset = targetsData
		}
		list = append(list, &task{spec: s, name: a.Name()})
	}
	for _, n := range networks {
		list = append(list, &task{name: n.name, spec: protocol.Spec{Algorithm: n.algorithm, Dataset: stepsData, Seed: &seed,
			TestFraction: 0.1, Set: n.set}})
	}
	return list
}

// numbers are rows whose labels are a scale: the number of a row is its expected label.
type numbers struct{ dataset.Source }

// Info implements dataset.Source.
func (n numbers) Info() dataset.Info {
	info := n.Source.Info()
	info.LabelType, info.HasValues = dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueValue}}, true
	return info
}

// Scan implements dataset.Source.
func (n numbers) Scan(f func(*dataset.Row) error) error {
	return n.Source.Scan(func(r *dataset.Row) error {
		r.Value = 0
		for label, share := range r.Labels {
			r.Value += float64(label) * share
		}
		return f(r)
	})
}

// targets are rows whose labels are targets in bounds: the degrees, in the bounds of the training samples.
type targets struct{ dataset.Source }

// Info implements dataset.Source.
func (s targets) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType.Bounds = new(dataset.Bounds)
	return info
}

// studySpec is the experiment: runs of some milliseconds to about a second, and one row that
// does not go with the data.
const studySpec = `
name: %%s
datasets: [{dataset: ` + stepsData + `}]
folds: {k: 3, repeats: 2}
measures: [kl, clark]
methods:
  - aa-knn
  - ranking
  - {algorithm: structrf, settings: {trees: 10, max_depth: 6}}
  - {algorithm: ldlf, settings: {trees: 2, depth: 4, batch_size: 128}, grid: {steps: [%d, %d]}}
`

// newStudy plans the experiment on its data and runs it undisturbed, in this process.
func newStudy(ctx context.Context, data *local.Data, steps int) (*study, error) {
	y := &study{task: task{cells: true}, spec: fmt.Sprintf(studySpec, steps, 2*steps)}
	s, err := experiment.Parse(ctx, "study", fmt.Appendf(nil, y.spec, "study"))
	if err != nil {
		return nil, fmt.Errorf("the experiment of the chaos test: %w", err)
	}
	plan, err := experiment.NewPlan(ctx, s, &s.Datasets[0], &experiment.Data{Manifest: data.Manifest})
	if err != nil {
		return nil, err
	}
	if y.layout, err = experiment.NewLayout(s, []*experiment.Plan{plan}, nil); err != nil {
		return nil, err
	}
	if y.cells, err = plan.Runs(); err != nil {
		return nil, err
	}
	o, err := local.Run(ctx, plan.Job, data, local.Options{Lanes: 1})
	if err != nil {
		return nil, fmt.Errorf("the experiment of the chaos test, run without faults: %w", err)
	}
	y.task.digest = o.ModelDigest
	records := make(map[string]*experiment.Record)
	for unit := range o.CellCount {
		b, err := o.Cell(unit)
		if err != nil {
			return nil, err
		}
		of, err := pipeline.DecodeOutcome(b)
		if err != nil {
			return nil, err
		}
		records[y.cells[unit].Key] = &experiment.Record{Key: y.cells[unit].Key, Outcome: of}
	}
	y.report, err = y.reportOf(records)
	return y, err
}

// reportOf writes the report of records, without times.
func (y *study) reportOf(records map[string]*experiment.Record) ([]byte, error) {
	var b bytes.Buffer
	err := report.Write(&b, y.layout.Fill(records), "json", report.Options{NoTimes: true, Level: 0.05})
	return b.Bytes(), err
}
