package ldlf

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Where lanes have nothing to do they share a unit's leaf update by its trees: nothing of
// one is read in another. A tree alone they share in two halves: first g and the ratios, by
// rows, then T, by leaves. Each sum takes its rows in the order that it takes them in one
// lane.
const (
	// shareFrom is how many products of a row and a value of q are worth to be shared.
	shareFrom = 1 << 19
	// sharedValues bounds the ratios and K-L at hand between the two halves: 8 MiB.
	sharedValues = 1 << 20
	// sharedLeaves is how many leaves of a tree a lane takes at a time.
	sharedLeaves = 32
)

// leafShare is an iteration of Eq. 12 over kept routing, as lanes share it.
type leafShare struct {
	k         *kernel
	kept      *routing
	q         []float32
	t         []float64 // trees×labels×leaves
	tellsLoss bool

	from, to int       // the rows at hand: whole blocks
	r        []float64 // trees×labels×columns of each block: ratios
	kl       []float64 // trees×columns of each block
}

// sharedTrees are the trees.
type sharedTrees leafShare

// Part implements algorithms.Parts.
func (p *sharedTrees) Part(i int, working any) {
	x, s := (*leafShare)(p), working.(*scratch)
	s.leaves.begin(x.k.labels, s.abreast.width, x.k.treeQ())
	x.tree(i, s)
}

// sharedRatios are the parts of the first half: one for each block of rows.
type sharedRatios leafShare

// sharedSums are the parts of the second: one for each tree and sharedLeaves of its leaves.
type sharedSums leafShare

// sharedSums is keptSums in several lanes.
func (k *kernel) sharedSums(dst []float64, lanes algorithms.Lanes, l *leafSpace) {
	x := &l.share
	each := k.trees * (k.labels + 1)
	rows := max(1, sharedValues/(each*x.kept.width)) * x.kept.width
	tiles := (k.leaves + sharedLeaves - 1) / sharedLeaves
	for x.from = 0; x.from < x.kept.rows; x.from = x.to {
		x.to = min(x.from+rows, x.kept.rows)
		columns := allColumns(x.to-x.from, x.kept.width)
		l.shared = slices.Grow(l.shared[:0], each*columns)[:each*columns]
		x.r, x.kl = l.shared[:k.trees*k.labels*columns], l.shared[k.trees*k.labels*columns:]
		lanes.Do((columns+x.kept.width-1)/x.kept.width, (*sharedRatios)(x))
		lanes.Do(k.trees*tiles, (*sharedSums)(x))
		x.count(dst)
	}
	k.leavesFirst(x.t, l)
	*x = leafShare{}
}

// ratios returns tree i's ratios of the block that begins with column from.
func (x *leafShare) ratios(i, from int, b leafBlock) []float64 {
	return treeOf(x.r[(from-x.from)*x.k.trees*x.k.labels:], i, x.k.labels*b.columns)
}

// losses returns all trees' K-L of the block that begins with column from; nil: nobody
// wants them.
func (x *leafShare) losses(from int, b leafBlock) []float64 {
	return x.kept.losses(x.kl, from-x.from, b, x.k.trees, x.tellsLoss)
}

// count adds the rows at hand up; see leafBlock.count.
func (x *leafShare) count(dst []float64) {
	for from := x.from; from < x.to; from += x.kept.width {
		b := x.kept.block(from, &x.k.sizes)
		b.count(dst, x.losses(from, b))
	}
}

// Part implements algorithms.Parts.
func (p *sharedRatios) Part(i int, working any) {
	x, s := (*leafShare)(p), working.(*scratch)
	k, from := x.k, x.from+i*x.kept.width
	s.abreast.ready()
	s.leaves.begin(k.labels, s.abreast.width, k.treeQ())
	b := x.kept.block(from, &k.sizes)
	for tree := range k.trees {
		p := x.kept.leaves(from, b.columns, tree, &k.sizes)
		k.blockRatios(x.ratios(tree, from, b), x.losses(from, b), tree, b, p, x.q, s)
	}
}

// Part implements algorithms.Parts.
func (p *sharedSums) Part(i int, working any) {
	x, s := (*leafShare)(p), working.(*scratch)
	k := x.k
	s.leaves.begin(k.labels, s.abreast.width, k.treeQ())
	tiles := (k.leaves + sharedLeaves - 1) / sharedLeaves
	tree, first := i/tiles, i%tiles*sharedLeaves
	end := min(first+sharedLeaves, k.leaves)
	t := treeOf(x.t, tree, k.treeQ())
	for from := x.from; from < x.to; from += x.kept.width {
		b := x.kept.block(from, &k.sizes)
		p := x.kept.leaves(from, b.columns, tree, &k.sizes)[first*b.columns : end*b.columns]
		var next []float32
		if last := from+x.kept.width >= x.to; !last {
			next = x.kept.after(from, tree, &k.sizes)[first*x.kept.width:]
		}
		num.AddProduct64T(t[first:], k.leaves, x.ratios(tree, from, b), p, b.n, b.columns, next, s.leaves.tile)
	}
}
