package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// The simulation's dataset.
const (
	dataName     = "canaries"
	dataRows     = 8 * canaryUnits
	dataFeatures = 3
	dataLabels   = 3
)

// material is what every simulation shares: the dataset, and what jobs come to
// undisturbed.
type material struct {
	manifest *dataset.Manifest
	shards   map[string][]byte // encoded, by digest
	data     map[uint64]*reference
	study    map[round.Cell][]byte // the encoded outcomes of the experiment's cells
}

// reference is a job computed undisturbed, in one process.
type reference struct {
	job    *round.Job
	digest string // of the model
	rounds []referenceRound
	states []string     // after so many rounds, from 1 on
	curves []string     // likewise, as curveText writes them
	curve  string       // in the end
	cells  []round.Cell // of the experiment, by unit; nil: it is no job of cells
}

// referenceRound is what a round comes to.
type referenceRound struct {
	nodes map[node]string // bytes of each node of the reduction, of a summed round
	root  string
	parts []string // digests, of a collected round
}

// node is a node of the reduction tree.
type node struct{ level, index int }

// theMaterial is made once: a simulation cannot change it.
var theMaterial = sync.OnceValues(makeMaterial)

// variants are the jobs that simulations submit, by seed.
var variants = []canaryParams{
	{Rounds: 24},
	{Rounds: 12, Collect: true},
	{Rounds: 16},
	{Rounds: 8, Collect: true},
	{Rounds: 150}, // to be cancelled
}

// longVariant is the seed of the job that does not end by itself.
const longVariant = 5

func makeMaterial() (*material, error) {
	registry.Register(canary{})
	manifest, shards, err := dataset.Build(dataset.Artificial(dataRows, 1), dataset.ImportOptions{})
	if err != nil {
		return nil, err
	}
	m := &material{manifest: manifest, shards: make(map[string][]byte), data: make(map[uint64]*reference)}
	if len(shards) != canaryUnits {
		return nil, fmt.Errorf("sim: %d shards where %d units are", len(shards), canaryUnits)
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
}

// compute runs a job undisturbed and notes what each node and part is.
func compute(params canaryParams, seed uint64, m *dataset.Manifest, shards []*dataset.Rows) (*reference, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	r := &reference{job: &round.Job{
		Algorithm: Canary, Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Params: body,
		Split: dataset.Split{Seed: seed, TestFraction: 0.2}, Predictions: 1 << 20,
	}}
	job, err := open.Open(r.job, m, nil)
	if err != nil {
		return nil, err
	}
	for i, rows := range shards {
		if _, err := job.AddShard(i, rows); err != nil {
			return nil, err
		}
	}
	t, err := pipeline.New(r.job, m, nil)
	if err != nil {
		return nil, err
	}
	x := &recorder{Local: engine.NewLocal(job.Kernel, job.Data, 1, nil), r: r, job: job, kept: engine.NewDerivedCache(engine.DerivedLimit)}
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

// curveText writes steps and losses of a curve.
func curveText(c *curve.Curve) string {
	var b strings.Builder
	for _, p := range c.Points() {
		fmt.Fprintln(&b, p.Step, p.Training, p.Validation)
	}
	return b.String()
}

// recorder is engine.Local that notes what each node and part is.
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
	if r.How == round.Collect {
		for _, part := range res.Collected {
			found.parts = append(found.parts, blobs.Sum(part))
		}
	} else {
		found.root = string(partialBytes(res.Sum))
		for level := 0; 1<<level <= r.Units; level++ {
			for i := range r.Units >> level {
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

// node computes a node of the tree from the units below it; their number is a
// power of two.
func (x *recorder) node(r *round.Round, level, i int) (string, error) {
	var tree engine.Tree
	tree.Reset(r.Units, r.Shape)
	for u := i << level; u < (i+1)<<level; u++ {
		p := tree.Partial()
		if err := engine.RunUnit(p, x.job.Kernel, r.Unit(u), x.job.Data, r.Vars, x.kept, x.job.Kernel.NewScratch()); err != nil {
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
