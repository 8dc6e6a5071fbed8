package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// The dataset of the simulation.
const (
	dataName     = "canaries"
	dataRows     = 8 * canaryTasks
	dataFeatures = 3
	dataLabels   = 3
)

// The experiment of the simulation. Its methods are canaries, and the last one comes with
// an extension.
const (
	studyName    = "study"
	studySeed    = 77
	studyMethods = 3
	studyFolds   = 3
	firstStudy   = "study-0" // the token of its first submission
	freeMethods  = 1         // methods of the first submission without a budget
	maxBudget    = 250 * time.Millisecond
)

// material is what all simulations share: the dataset, and what jobs compute undisturbed.
// It does not change.
type material struct {
	manifest *dataset.Manifest
	shards   map[string][]byte // encoded, by digest
	data     map[uint64]*reference
	study    map[round.Cell][]byte // the encoded outcomes of the runs of the experiment
}

// reference is a job computed undisturbed, in one process.
type reference struct {
	job    *round.Job
	digest string // of the model
	rounds []referenceRound
	states []string     // states[i] is the state after i+1 rounds
	curves []string     // likewise, as curveText writes them
	curve  string       // at the end
	runs   []round.Cell // of the experiment, by task; nil: it is no job of runs
}

// referenceRound is the result of a round.
type referenceRound struct {
	nodes map[node]string // of a reduce round: the bytes of each node of the tree
	root  string
	parts []string // of a gather round: the digests of the results
}

// node is a node of the reduction tree.
type node struct{ level, index int }

// variants are the jobs that simulations submit. The seed of a job is its place, from 1
// on.
var variants = []canaryParams{
	{Rounds: 24},
	{Rounds: 12, Gather: true},
	{Rounds: 16},
	{Rounds: 8, Gather: true},
	{Rounds: 150},
}

// longVariant is the seed of a job that is cancelled before it ends.
const longVariant = 5

// theMaterial makes the material once.
var theMaterial = sync.OnceValues(func() (*material, error) {
	registry.Register(canary{})
	manifest, shards, err := importer.Build(generate.Artificial(dataRows, 1), importer.Options{})
	if err != nil {
		return nil, err
	}
	m := &material{manifest: manifest, shards: make(map[string][]byte), data: make(map[uint64]*reference)}
	if len(shards) != canaryTasks {
		return nil, fmt.Errorf("sim: %d shards, want %d, one for each task", len(shards), canaryTasks)
	}
	for i, rows := range shards {
		m.shards[manifest.Shards[i].Digest] = dataset.EncodeShard(rows, nil)
	}
	for i, params := range variants {
		seed := uint64(i + 1)
		if m.data[seed], err = compute(params, seed, manifest, shards); err != nil {
			return nil, err
		}
	}
	m.study, err = computeStudy(manifest, shards)
	return m, err
})

// openJob prepares a job as a worker does that has all shards.
func openJob(j *round.Job, m *dataset.Manifest, shards []*dataset.Rows) (*open.Job, error) {
	job, err := open.Open(j, m, nil)
	for i := 0; i < len(shards) && err == nil; i++ {
		_, err = job.AddShard(i, shards[i])
	}
	return job, err
}

// compute runs a job undisturbed, and notes the bytes of each node and result.
func compute(params canaryParams, seed uint64, m *dataset.Manifest, shards []*dataset.Rows) (*reference, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	r := &reference{job: &round.Job{
		Algorithm: Canary, Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Params: body,
		Split: dataset.Split{Seed: seed, TestFraction: 0.2}, Predictions: 1 << 20,
	}}
	job, err := openJob(r.job, m, shards)
	if err != nil {
		return nil, err
	}
	t, err := pipeline.New(r.job, m, nil)
	if err != nil {
		return nil, err
	}
	x := &recorder{Local: engine.NewLocal(job.Kernel, job.Data, 1, nil), r: r, job: job,
		kept: engine.NewDerivedCache(engine.DerivedLimit)}
	line := curve.NewRecorder(curve.JobPoints, nil)
	line.Observe(t.Progress(), curve.Unknown)
	note := func(_ uint64, t round.Trainer) error {
		line.Observe(t.Progress(), curve.Unknown)
		r.curves = append(r.curves, curveText(line.Curve()))
		b, err := t.AppendState(nil)
		r.states = append(r.states, string(b))
		return err
	}
	if err := engine.Drive(context.Background(), t, 0, x, note); err != nil {
		return nil, err
	}
	outcome, err := t.Outcome()
	if err != nil {
		return nil, err
	}
	line.End()
	r.digest, r.curve = outcome.ModelDigest, curveText(line.Curve())
	return r, nil
}

// curveText writes the steps and losses of a curve.
func curveText(c *curve.Curve) string {
	var b strings.Builder
	for _, p := range c.Points() {
		fmt.Fprintln(&b, p.Step, p.Training, p.Validation)
	}
	return b.String()
}

// recorder is an engine.Local that notes the bytes of each node and result.
type recorder struct {
	*engine.Local
	r    *reference
	job  *open.Job
	kept *engine.DerivedCache
}

// Do implements engine.Executor.
func (x *recorder) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if err := x.Local.Do(ctx, n, r, res); err != nil {
		return err
	}
	found := referenceRound{nodes: make(map[node]string)}
	if r.Gather() != nil {
		for _, part := range res.Gathered {
			found.parts = append(found.parts, blobs.Sum(part))
		}
	} else {
		found.root = string(partialBytes(res.Sum))
		for level := 0; 1<<level <= r.Tasks; level++ {
			for i := range r.Tasks >> level {
				p, err := x.node(r, level, i)
				if err != nil {
					return err
				}
				found.nodes[node{level, i}] = p
			}
		}
	}
	x.r.rounds = append(x.r.rounds, found)
	return nil
}

// node computes a node of the tree from the tasks below it. Their number is a power of
// two.
func (x *recorder) node(r *round.Round, level, i int) (string, error) {
	var tree engine.Tree
	tree.Reset(r.Tasks, r.Reduce().Shape)
	for u := i << level; u < (i+1)<<level; u++ {
		p := tree.Partial()
		if err := engine.RunTask(p, x.job.Kernel, r.Task(u), x.job.Data, r.Vars, x.kept,
			x.job.Kernel.NewScratch()); err != nil {
			return "", err
		}
		if _, err := tree.Put(0, u, p); err != nil {
			return "", err
		}
	}
	var found string
	tree.Nodes(func(l, j int, p *round.Partial) {
		if l == level && j == i {
			found = string(partialBytes(p))
		}
	})
	return found, nil
}

// studyJob is the job of some runs of the experiment, which are ascending by fold.
func studyJob(m *dataset.Manifest, runs []round.Cell) *round.Job {
	folds := make(map[int][]int) // by method
	for _, run := range runs {
		folds[run.Row] = append(folds[run.Row], run.Fold)
	}
	c := &round.Cells{Repeats: 1, Folds: studyFolds}
	for method := range studyMethods {
		if len(folds[method]) == 0 {
			continue
		}
		params, err := json.Marshal(canaryParams{Rounds: uint64(method + 1), Method: method + 1})
		if err != nil {
			panic(fmt.Sprintf("sim: settings do not marshal: %v", err))
		}
		c.Rows = append(c.Rows, round.CellRow{Algorithm: Canary, Params: params, Only: folds[method]})
	}
	return &round.Job{
		Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: studySeed, Dataset: m.Digest(), Cells: c,
		Split: dataset.Split{Seed: studySeed, Folds: studyFolds}, Params: json.RawMessage(`{}`),
		Measures: pipeline.EveryMeasures,
	}
}

// studyRuns lists the runs of the first methods of the experiment, by fold.
func studyRuns(methods int) (list []round.Cell) {
	for fold := range studyFolds {
		for method := range methods {
			list = append(list, round.Cell{Row: method, Fold: fold})
		}
	}
	return list
}

// runsOf lists the runs of the experiment that a job has, by task.
func runsOf(j *round.Job) []round.Cell {
	list, methods := j.Cells.All(), methodsOf(j)
	for i := range list {
		list[i].Row = methods[list[i].Row]
	}
	return list
}

// methodsOf lists the methods of the experiment that a job has, in its order.
func methodsOf(j *round.Job) (list []int) {
	for i := range j.Cells.Rows {
		var params canaryParams
		if err := json.Unmarshal(j.Cells.Rows[i].Params, &params); err != nil {
			panic(fmt.Sprintf("sim: settings of a method: %v", err))
		}
		list = append(list, params.Method-1)
	}
	return list
}

// computeStudy computes each run of the experiment undisturbed, and returns the encoded
// outcomes.
func computeStudy(m *dataset.Manifest, shards []*dataset.Rows) (map[round.Cell][]byte, error) {
	j := studyJob(m, studyRuns(studyMethods))
	parent, err := openJob(j, m, shards)
	if err != nil {
		return nil, err
	}
	outcomes := make(map[round.Cell][]byte)
	for task, run := range runsOf(j) {
		child, err := pipeline.Cell(j, task)
		if err != nil {
			return nil, err
		}
		if outcomes[run], err = local.SubJob(context.Background(), parent, child,
			local.Options{Kept: engine.NewDerivedMemory(engine.DerivedLimit)}); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// reference returns what a job computes undisturbed.
func (m *material) reference(j *round.Job) *reference {
	if j.Cells == nil {
		return m.data[j.Seed]
	}
	r, found := &reference{job: j, runs: runsOf(j)}, referenceRound{}
	var encoded [][]byte
	for _, run := range r.runs {
		encoded = append(encoded, m.study[run])
		found.parts = append(found.parts, blobs.Sum(m.study[run]))
	}
	r.rounds = []referenceRound{found}
	r.digest = m.digestOf(j, encoded)
	return r
}

// digestOf returns the digest of a job of runs with these outcomes.
func (m *material) digestOf(j *round.Job, encoded [][]byte) string {
	t, err := pipeline.New(j, m.manifest, nil)
	if err == nil {
		err = t.Fold(&round.Result{Gathered: encoded})
	}
	var o *pipeline.Outcome
	if err == nil {
		o, err = t.Outcome()
	}
	if err != nil {
		panic(fmt.Sprintf("sim: the runs of an experiment: %v", err))
	}
	return o.ModelDigest
}
