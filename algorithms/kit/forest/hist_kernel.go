package forest

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of the rounds of histograms.
const (
	opBins   uint8 = iota + 2 // the number of the training rows, and their values by column
	opCounts                  // the counts of some nodes
	opRows                    // the rows of some nodes
)

// The variables of these rounds: the bins, and the nodes that a round is about.
const (
	varBins  = 1
	varNodes = 2
)

// appendNodes appends the encoded nodes that a round is about: the first tree at work and the number of these, then of
// each node its tree, its depth, and of each step to it the column and the bin, the latter twice, plus 1 if the node
// is on the right.
func (g *growth) appendNodes(dst []byte, asks []ask) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, g.trees[0].number)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(g.trees)))
	var steps []step
	for _, a := range asks {
		t := &g.trees[a.tree]
		steps = t.stepsTo(steps[:0], a.node)
		dst = binary.LittleEndian.AppendUint32(dst, t.number)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(steps)))
		for _, s := range steps {
			bin := uint32(2 * s.bin)
			if s.right {
				bin++
			}
			dst = binary.LittleEndian.AppendUint32(dst, uint32(s.column))
			dst = binary.LittleEndian.AppendUint32(dst, bin)
		}
	}
	return dst
}

// wantedNode is a node that a round is about.
type wantedNode struct {
	tree  uint32
	path  uint64
	steps []step
}

var errNodes = fmt.Errorf("forest: the request for nodes: %w", binning.ErrBins)

// wantedNodes reads what appendNodes wrote.
type wantedNodes struct {
	first, trees uint32
	rest         []uint32
	node         wantedNode
}

func (w *wantedNodes) begin(b []byte) error {
	words := num.Uint32s(b[:len(b)&^3])
	if len(b)%4 != 0 || len(words) < 2 {
		return errNodes
	}
	w.first, w.trees, w.rest = words[0], words[1], words[2:]
	return nil
}

// next reads the next node. It reports false after the last one.
func (w *wantedNodes) next(e *edges) (bool, error) {
	if len(w.rest) == 0 {
		return false, nil
	}
	n := &w.node
	if len(w.rest) < 2 || w.rest[1] > maxDepth || uint32(len(w.rest)) < 2+2*w.rest[1] ||
		w.rest[0]-w.first >= w.trees {
		return false, errNodes
	}
	steps := w.rest[2 : 2+2*w.rest[1]]
	n.tree, n.path, n.steps, w.rest = w.rest[0], 1, n.steps[:0], w.rest[2+len(steps):]
	for ; len(steps) > 0; steps = steps[2:] {
		s := step{int(steps[0]), int(steps[1] / 2), steps[1]%2 == 1}
		if s.column >= len(e.Columns) || s.bin >= len(e.Columns[s.column].Cuts) {
			return false, fmt.Errorf("%w: there is no bin %d of column %d", errNodes, s.bin, s.column)
		}
		n.steps = append(n.steps, s)
		if n.path *= 2; s.right {
			n.path++
		}
	}
	return true, nil
}

var (
	_ round.ReduceKernel   = (*countedKernel)(nil)
	_ round.GatherKernel   = (*countedKernel)(nil)
	_ round.MemoryReleaser = (*countedKernel)(nil)
	_ round.Demanding      = (*countedKernel)(nil)
)

// countedKernel computes the rounds of countedTrainer. It is safe for concurrent use.
type countedKernel struct {
	variant  Variant
	cfg      *Config
	classes  int
	binKey   num.Key
	features num.Key
	poisson  *poisson
	needs    int64 // see Demand

	mu    sync.Mutex // guards all that follows
	data  *dataset.Data
	edges *edges
	known map[[2]int]*countedPart // by range of shards
}

// countedPart is what a kernel keeps of the rows of a task. Another kernel makes all of it again.
type countedPart struct {
	mu      sync.Mutex
	numbers []uint32 // of the rows in the dataset; nil: nothing is known yet
	countedRows
	trees map[uint32]*countedTree
}

func newCountedKernel(v Variant, c *Config, m *dataset.Manifest, seed uint64) *countedKernel {
	return &countedKernel{
		variant: v, cfg: c, classes: v.Classes(m.Labels), binKey: num.NewKey(seed, v.Name+"/bins"),
		features: num.NewKey(seed, v.Name+"/features"), poisson: newPoisson(c, num.NewKey(seed, v.Name+"/poisson")),
		needs: countedDemand(c, m, v.Classes(m.Labels)),
	}
}

// countedScratch is the scratch of a lane.
type countedScratch struct {
	edges   *edges
	counter *rowCounter
	wanted  wantedNodes
}

// NewScratch implements round.Kernel.
func (k *countedKernel) NewScratch() any { return new(countedScratch) }

// Demand implements round.Demanding.
func (k *countedKernel) Demand() (bytes int64, what string) {
	return k.needs, "bins and nodes of all samples; fewer bins need less"
}

// ReleaseMemory implements round.MemoryReleaser. A later task makes everything again.
func (k *countedKernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == nil {
		return
	}
	k.data, k.edges, k.known = nil, nil, nil
	runtime.GC()
}

// part returns what is kept of a task's rows, and the bins.
func (k *countedKernel) part(u round.Task, d *dataset.Data, v round.Vars) (*countedPart, *edges, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		k.data, k.edges, k.known = d, nil, make(map[[2]int]*countedPart)
	}
	if k.edges == nil {
		e, err := decodeEdges(v.Get(varBins), d.Manifest, k.cfg.Bins)
		if err != nil {
			return nil, nil, err
		}
		k.edges = e
	}
	lo, hi := u.Shards(len(d.Manifest.Shards))
	p := k.known[[2]int{lo, hi}]
	if p == nil {
		p = &countedPart{trees: make(map[uint32]*countedTree)}
		k.known[[2]int{lo, hi}] = p
	}
	return p, k.edges, nil
}

// read reads the rows of a task.
func (p *countedPart) read(k *countedKernel, u round.Task, d *dataset.Data, e *edges) {
	refs := u.Rows(d)
	p.numbers, p.class = make([]uint32, len(refs)), make([]uint32, len(refs))
	for i, ref := range refs {
		shard := d.Shard(int(ref.Shard))
		p.numbers[i], p.class[i] = shard.Row[ref.Pos], k.variant.Counted.Class(shard.Label(int(ref.Pos)))
	}
	p.codes = binning.Find(d, refs, &e.Bins)
}

// wanted calls f for each node that a round is about, with the node's rows and how often its tree has each.
func (k *countedKernel) wanted(u round.Task, d *dataset.Data, v round.Vars, s *countedScratch,
	f func(p *countedPart, t *countedTree, rows []uint32) error) error {
	p, e, err := k.part(u, d, v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.numbers == nil {
		p.read(k, u, d, e)
	}
	if s.edges != e {
		s.edges, s.counter = e, newRowCounter(newLayouts(k.cfg, e, k.classes, k.features))
	}
	w := &s.wanted
	if err := w.begin(v.Get(varNodes)); err != nil {
		return err
	}
	for tree := range p.trees {
		if tree-w.first >= w.trees {
			delete(p.trees, tree)
		}
	}
	for {
		if more, err := w.next(e); !more {
			return err
		}
		t := p.trees[w.node.tree]
		if t == nil {
			t = newCountedTree(k.poisson, w.node.tree, p.numbers)
			p.trees[w.node.tree] = t
		}
		rows := t.find(&p.countedRows, w.node.steps, s.counter.spareFor(len(p.numbers)), &e.Bins)
		if err := f(p, t, rows); err != nil {
			return err
		}
	}
}

// Derive implements round.ReduceKernel.
func (k *countedKernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel: it counts the rows of nodes.
func (k *countedKernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	scratch any) error {
	if u.Op != opCounts {
		return fmt.Errorf("forest: the task has the unknown operation %d", u.Op)
	}
	s, rest := scratch.(*countedScratch), dst.F64
	err := k.wanted(u, d, v, s, func(p *countedPart, t *countedTree, rows []uint32) error {
		l := s.counter.layouts.layoutOf(s.wanted.node.tree, s.wanted.node.path)
		n := s.counter.layouts.numbersOf(l)
		if n > len(rest) {
			return errNodes
		}
		s.counter.add(rest[:n], rows, &p.countedRows, t.copies, l)
		rest = rest[n:]
		return nil
	})
	if err == nil && len(rest) > 0 {
		err = errNodes
	}
	return err
}

// Gather implements round.GatherKernel: it returns the number of the task's rows with their values, or the rows of
// nodes.
func (k *countedKernel) Gather(_ context.Context, u round.Task, d *dataset.Data, v round.Vars, scratch any) ([]byte,
	error) {
	switch u.Op {
	case opBins:
		rows := u.Rows(d)
		return binning.AppendValues(binary.LittleEndian.AppendUint32(nil, uint32(len(rows))), k.binKey, rows, d, nil), nil
	case opRows:
	default:
		return nil, fmt.Errorf("forest: the task has the unknown operation %d", u.Op)
	}
	var encoded []byte
	s := scratch.(*countedScratch)
	err := k.wanted(u, d, v, s, func(p *countedPart, t *countedTree, rows []uint32) error {
		encoded = p.appendRows(encoded, rows, t.copies, s.edges.Dense)
		return nil
	})
	return encoded, err
}
