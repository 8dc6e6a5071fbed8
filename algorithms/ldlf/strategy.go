package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The words of the setting strategy: which trees a mini-batch trains (section 4.3 and Fig. 4 of
// Shen et al. 2017 compare joint training with "learned alternatively").
const (
	strategyJoint  = "joint"
	strategyRotate = "rotate"
	strategyRandom = "random-tree"
)

// strategySettings lists the settings of the order in which trees learn.
var strategySettings = param.Table[Config]{
	param.Word("strategy", "trees that a mini-batch trains: joint (all trees), rotate (one tree for leaf_batches mini-batches and a leaf update, then the next tree) or random-tree (a random tree for each mini-batch)",
		func(c *Config) *string { return &c.Strategy }, strategyJoint, strategyRotate, strategyRandom),
	param.Bool("reset_momentum", "with strategy rotate, set the optimizer's moments to 0 before the next tree is trained", false, func(c *Config) *bool { return &c.ResetMomentum }).
		Says("true with strategy rotate, else false"),
	param.Bool("own_units", "give each tree outputs of its own; outputs is then trees × 2^(depth-1)", false, func(c *Config) *bool { return &c.OwnUnits }),
}

// fillStrategy sets what follows from the order in which trees learn, and was not given.
func (c *Config) fillStrategy(given param.Values) {
	if c.Strategy == strategyRotate {
		param.StandIn(given, "reset_momentum", &c.ResetMomentum, true)
	}
	if c.OwnUnits && c.shaped() {
		param.StandIn(given, "outputs", &c.Outputs, c.ownOutputs())
	}
}

// shaped reports whether trees and depth are within their bounds.
func (c *Config) shaped() bool {
	return c.Depth >= minDepth && c.Depth <= maxDepth && c.Trees >= 1 && c.Trees <= maxTrees
}

// ownOutputs returns the output units of trees that share none.
func (c *Config) ownOutputs() int { return c.Trees << (c.Depth - 1) }

// checkStrategy returns a *param.Error where the order in which trees learn contradicts another setting.
func (c *Config) checkStrategy() error {
	if c.ResetMomentum && c.Strategy != strategyRotate {
		return param.Errorf("reset_momentum", "needs strategy rotate")
	}
	if c.OwnUnits && c.Outputs != c.ownOutputs() {
		return param.Errorf("outputs", "must be %d with own_units, which is %d trees × 2^(depth-1)", c.ownOutputs(), c.Trees)
	}
	return nil
}

// turns says which trees a mini-batch trains.
type turns struct {
	strategy string
	trees    int
	interval uint64 // mini-batches from one leaf update to the next
	key      num.Key
}

func newTurns(c *Config, seed uint64) turns {
	return turns{c.Strategy, c.Trees, uint64(c.LeafBatches), num.NewKey(seed, "ldlf/tree")}
}

// all reports whether each mini-batch trains all trees.
func (o *turns) all() bool { return o.strategy == strategyJoint || o.trees == 1 }

// at returns the trees, from the first one to below the end, that mini-batch step trains.
func (o *turns) at(step uint64) (first, end int) {
	switch {
	case o.all():
		return 0, o.trees
	case o.strategy == strategyRotate:
		first = int(step / o.interval % uint64(o.trees))
	default:
		first = int(num.NewStream(o.key, step, 0).Uint64n(uint64(o.trees)))
	}
	return first, first + 1
}

// updated returns the trees of the leaf update that comes after so many steps.
func (o *turns) updated(steps uint64) (first, end int) {
	if o.strategy != strategyRotate || steps == 0 {
		return 0, o.trees
	}
	return o.at(steps - 1)
}

// terms returns the trees that a mini-batch trains.
func (o *turns) terms() int {
	first, end := o.at(0)
	return end - first
}

// idler finds the output units that only trees read which a mini-batch does not train.
type idler struct {
	turns turns
	size  sizes
	phi   []uint32
	idle  []bool
}

// units returns, for each output unit, whether it rests in a step; nil: none does.
func (x *idler) units(step uint64) []bool {
	first, end := x.turns.at(step)
	if end-first == x.size.trees {
		return nil
	}
	for i := range x.idle {
		x.idle[i] = true
	}
	for k := first; k < end; k++ {
		for _, unit := range x.size.treePhi(x.phi, k) {
			x.idle[unit] = false
		}
	}
	return x.idle
}
