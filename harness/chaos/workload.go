package chaos

import (
	"context"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
	"golang.org/x/sync/errgroup"
)

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
