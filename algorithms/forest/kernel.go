package forest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opGrow grows tree number Unit.ID on the whole dataset's training rows.
const opGrow uint8 = 1

// kernel is the worker's half: see algorithms.Kernel and engine.Collector. It is
// shared by lanes.
type kernel struct {
	family Family
	cfg    Config
	seed   uint64
	labels int

	mu    sync.Mutex // held while the table is made: other lanes wait for it
	data  *dataset.Data
	table *table
}

// NewScratch implements algorithms.Kernel.
func (k *kernel) NewScratch() any {
	g := &grower{
		cfg: k.cfg, classes: k.family.Classes(k.labels), labeller: k.family.NewLabeller(k.seed),
		sampling: num.NewKey(k.seed, k.family.Name+"/bootstrap"),
	}
	g.choice.key = num.NewKey(k.seed, k.family.Name+"/features")
	return g
}

// Derive implements algorithms.Kernel: nothing is derived from a base.
func (k *kernel) Derive(algorithms.Unit, *dataset.Data, algorithms.Vars, any) (any, error) {
	return nil, nil
}

// Run implements algorithms.Kernel: no round of a forest is summed.
func (k *kernel) Run(_ *algorithms.Partial, u algorithms.Unit, _ *dataset.Data, _ algorithms.Vars, _, _ any) error {
	return fmt.Errorf("forest: operation %d is not summed", u.Op)
}

// Collect implements engine.Collector: it grows one tree and returns its encoded
// form.
func (k *kernel) Collect(ctx context.Context, u algorithms.Unit, d *dataset.Data, _ algorithms.Vars, scratch any) ([]byte, error) {
	if u.Op != opGrow {
		return nil, fmt.Errorf("forest: operation %d is unknown", u.Op)
	}
	t, err := k.sorted(u, d)
	if err != nil {
		return nil, err
	}
	tree, err := scratch.(*grower).grow(ctx, t, uint32(u.ID))
	if err != nil {
		return nil, err
	}
	return tree.AppendBinary(make([]byte, 0, tree.Size())), nil
}

// sorted returns the sorted columns of the unit's rows. They are made by the first
// unit that needs them and kept for the others.
func (k *kernel) sorted(u algorithms.Unit, d *dataset.Data) (*table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == d {
		return k.table, nil
	}
	refs := u.Rows(d)
	if len(refs) == 0 {
		return nil, errors.New("forest: the split leaves no training rows")
	}
	t, err := newTable(&k.cfg, d, refs)
	if err != nil {
		return nil, err
	}
	k.data, k.table = d, t
	return t, nil
}
