package forest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

var (
	_ round.GatherKernel  = (*kernel)(nil)
	_ algorithms.Composer = (*kernel)(nil)
	_ round.Demanding     = (*kernel)(nil)
)

// kernel implements round.GatherKernel. It is safe for concurrent use.
type kernel struct {
	variant          Variant
	cfg              Config
	seed             uint64
	features, labels int
	otherwise        string // see Demand

	mu          sync.Mutex // held while the table is made: other slots wait for it
	data        *dataset.Data
	table       *Table
	idleGrowers []*grower
}

// NewScratch implements round.Kernel. There is no scratch: the kernel owns all
// growers, so that ReleaseMemory can free them.
func (k *kernel) NewScratch() any { return nil }

func (k *kernel) newGrower() *grower {
	newLabeller := func() Labeller { return k.variant.NewLabeller(k.seed) }
	g := &grower{
		cfg: k.cfg, classes: k.variant.Classes(k.labels), labeller: newLabeller(),
		sampling: num.NewKey(k.seed, k.variant.Name+"/bootstrap"), tree: new(Tree),
		subtrees: subtrees{fraction: innerFraction, few: fewRows, newLabeller: newLabeller},
	}
	g.features.key = num.NewKey(k.seed, k.variant.Name+"/features")
	return g
}

// acquireGrower returns the idle grower that was used last, or a new one.
func (k *kernel) acquireGrower() *grower {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.idleGrowers); n > 0 {
		g := k.idleGrowers[n-1]
		k.idleGrowers = k.idleGrowers[:n-1]
		return g
	}
	return k.newGrower()
}

func (k *kernel) releaseGrower(g *grower) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idleGrowers = append(k.idleGrowers, g)
}

// ReleaseMemory implements round.MemoryReleaser. Growers and table may be as large as
// the dataset, and the model that is evaluated next may be larger. A later tree makes them
// again.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.table == nil && k.idleGrowers == nil {
		return
	}
	k.data, k.table, k.idleGrowers = nil, nil, nil
	runtime.GC() // the model is one large allocation
}

// Gather implements round.GatherKernel: it grows one tree and returns its encoded
// form.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	if u.Op != OpGrow {
		return nil, fmt.Errorf("forest: the task has the unknown operation %d", u.Op)
	}
	t, err := k.trainingTable(u, d)
	if err != nil {
		return nil, err
	}
	g := k.acquireGrower()
	tree, err := g.grow(ctx, t, uint32(u.ID))
	if err != nil {
		return nil, err
	}
	encoded := tree.Encode()
	k.releaseGrower(g)
	return encoded, nil
}

// Compose implements algorithms.Composer.
func (k *kernel) Compose(pieces []round.Chunk) (algorithms.Model, error) {
	trees, err := Compose(pieces, decoder(k.features, k.labels))
	if err != nil {
		return nil, err
	}
	return newModel(trees, k.features, k.labels), nil
}

// Demand implements round.Demanding: a tree needs the memory of any task on the whole dataset.
func (k *kernel) Demand() (bytes int64, what string) { return 0, k.otherwise }

// trainingTable returns the table of the unit's rows. The first unit makes it, and the
// others share it.
func (k *kernel) trainingTable(u round.Task, d *dataset.Data) (*Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == d {
		return k.table, nil
	}
	refs := u.Rows(d)
	if len(refs) == 0 {
		return nil, errors.New("forest: no training samples are left after the split of the data")
	}
	t, err := newTable(&k.cfg, d, refs)
	if err != nil {
		return nil, err
	}
	t.computeRowValues(k.variant.RowValue)
	k.data, k.table = d, t
	return t, nil
}
