package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/protocol"
)

// numbersData is the data of algorithms that predict numbers.
const numbersData = "chaos-numbers"

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
	{"ldlf-mlp", ldlf, map[string]string{"features": "mlp", "hidden": "32", "layer_norm": "true", "steps": "1000", "trees": "2", "depth": "4", "patience": "1000"}},
	{"ldlf-conv", ldlf, convolution(map[string]string{"trees": "2", "depth": "4"})},
	{"dldl-conv", "dldl", convolution(map[string]string{"validation_steps": "50"})},
}

// convolution adds the settings of a small convolution, on rows that are images of one line.
func convolution(set map[string]string) map[string]string {
	for key, value := range map[string]string{
		"features": "conv", "shape": "row", "channels": "4", "kernel": "3", "pool": "1", "hidden": "16", "steps": "600", "patience": "1000",
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
	seed := uint64(1)
	for _, a := range registry.All() {
		if slices.Contains(Algorithms, a.Name()) {
			continue
		}
		s := protocol.Spec{Algorithm: a.Name(), Dataset: stepsData, Seed: &seed, TestFraction: 0.1, Set: otherSettings[a.Name()]}
		if a.Predicts() == algorithms.Number {
			s.Dataset = numbersData
		}
		list = append(list, &task{spec: s, name: a.Name()})
	}
	for _, n := range networks {
		list = append(list, &task{name: n.name, spec: protocol.Spec{Algorithm: n.algorithm, Dataset: stepsData, Seed: &seed, TestFraction: 0.1, Set: n.set}})
	}
	return list
}

// feedOthers submits jobs of the algorithms without long jobs and of networks, in an order drawn by rng, and
// checks each model.
func (c *clients) feedOthers(ctx context.Context, rng *rand.Rand) error {
	order := slices.Clone(c.work.other)
	for i := 0; !c.stopped(); i++ {
		k := i % len(order)
		if k == 0 {
			rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		}
		j, err := c.submit(ctx, i, order[k], fmt.Sprintf("other-%s-%d", order[k].name, i+1))
		if err != nil {
			return err
		}
		if _, err := c.follow(ctx, j, order[k], func(*protocol.JobInfo) {}); err != nil {
			return err
		}
		if err := c.rest(ctx, leastPause+time.Duration(rng.Int64N(int64(mostPause-leastPause)))); err != nil {
			return err
		}
	}
	return nil
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
