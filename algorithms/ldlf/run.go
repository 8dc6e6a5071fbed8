package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Run implements round.Kernel.
func (k *kernel) Run(dst *round.Partial, unit round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = unit
	u := &s.unit
	if err := checkWindow(u); err != nil {
		return err
	}
	if k.descent.Run(dst, u, d, v, &s.loss, &s.Scratch) {
		return nil
	}
	s.Values.Read(v)
	switch u.Op {
	case opLeaves:
		r, _ := derived.(*routing)
		k.leafSums(dst, u, d, &s.Values, r, s)
	case opShrink:
		k.shrunkLosses(dst, u, d, v, s)
	default:
		return fmt.Errorf("ldlf: the task has the unknown operation %d", u.Op)
	}
	return nil
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	s := newScratch(&k.sizes, k.descent.Function)
	s.loss = forestLoss{k, s}
	return s
}

// Derive implements round.Kernel: the routing of a leaf update's unit, or nil
// where there is no room for it.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, working any) (round.Derived, error) {
	if err := checkWindow(&u); err != nil {
		return nil, err
	}
	s := working.(*scratch)
	refs := u.Rows(d)
	w := &s.window
	k.count(w, &u, refs, d)
	if !u.TryReserve(routingBytes(&k.sizes, len(w.Rows), s.block.width)) {
		return nil, nil
	}
	r := k.spare.get()
	r.shape(&k.sizes, len(w.Rows), s.block.width)
	r.drawn = num.Sum64(w.Weights)
	s.Values.Read(v)
	x := &s.leaves.routed
	*x = routed{k: k, r: r, refs: refs, data: d, values: &s.Values, of: w}
	if blocks := (len(w.Rows) + r.width - 1) / r.width; blocks > 1 && u.Helpers() > 0 {
		u.Lanes.Do(blocks, x)
	} else {
		for i := range blocks {
			x.Part(i, s)
		}
	}
	*x = routed{}
	return r, nil
}
