package ndf

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

var (
	_ round.GatherKernel  = (*kernel)(nil)
	_ algorithms.Composer = (*kernel)(nil)
)

// kernel implements round.GatherKernel. It is safe for concurrent use.
type kernel struct {
	cfg   Config
	seed  uint64
	trees treeShape

	mu    sync.Mutex // held while the table is made: other lanes wait for it
	data  *dataset.Data
	table *table
	idle  []*grower
}

// NewScratch implements round.Kernel. There is no scratch: the kernel owns all growers, so that
// ReleaseMemory can free them.
func (k *kernel) NewScratch() any { return nil }

// ReleaseMemory implements pipeline.MemoryReleaser.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.table == nil {
		return
	}
	k.data, k.table, k.idle = nil, nil, nil
	runtime.GC()
}

// Gather implements round.GatherKernel: it grows one tree and returns its encoded form.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	if u.Op != forest.OpGrow {
		return nil, fmt.Errorf("ndf: the task has the unknown operation %d", u.Op)
	}
	g, err := k.acquire(u, d)
	if err != nil {
		return nil, err
	}
	tree, err := g.grow(ctx, uint32(u.ID))
	if err != nil {
		return nil, err
	}
	k.release(g, d)
	return tree.AppendBinary(make([]byte, 0, tree.Size())), nil
}

// Compose implements algorithms.Composer.
func (k *kernel) Compose(pieces []round.Chunk) (algorithms.Model, error) {
	trees, err := forest.Compose(pieces, k.trees.decode)
	if err != nil {
		return nil, err
	}
	return k.trees.model(trees), nil
}

// acquire returns an idle grower, or a new one. The first unit makes the table.
func (k *kernel) acquire(u round.Task, d *dataset.Data) (*grower, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		t, err := newTable(&k.cfg, u, d)
		if err != nil {
			return nil, err
		}
		k.data, k.table, k.idle = d, t, nil
	}
	if n := len(k.idle); n > 0 {
		g := k.idle[n-1]
		k.idle = k.idle[:n-1]
		return g, nil
	}
	return newGrower(&k.cfg, k.seed, k.table), nil
}

// release keeps a grower for the next unit, unless its data is no longer that of the kernel.
func (k *kernel) release(g *grower, d *dataset.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == d {
		k.idle = append(k.idle, g)
	}
}
