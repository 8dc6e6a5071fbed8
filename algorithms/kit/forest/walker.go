package forest

import (
	"cmp"
	"math/bits"
	"slices"
)

// walker is a forest in the form that prediction reads. It is derived from the trees and
// never stored.
type walker struct {
	nodes   walkNodes
	roots   []uint32 // by tree: its root among the nodes
	depths  []int    // by tree
	compact []uint32 // by feature: its place among the used ones, or unused
	used    int      // features that split a node
	width   int      // values of a row in walks: used, at least 1
	fits    bool     // nodes are made: all numbers fit in a walkNode

	splits   int  // of all trees
	fitsSets bool // the trees can be a setForest
}

const unused = 1<<32 - 1

// build derives the walker from a checked model.
func (w *walker) build(m *Ensemble) {
	w.order(m)
	size, furthest, leaves := 0, uint32(0), 0
	for _, t := range m.trees {
		size, leaves = size+t.Nodes(), max(leaves, t.Leaves())
		for i, feature := range t.feature {
			if feature != leafMark {
				furthest = max(furthest, t.left[i]-uint32(i))
			}
		}
	}
	w.width = max(1, w.used)
	w.splits, w.fitsSets = (size-len(m.trees))/2, leaves <= 1<<maxPlanes
	w.nodes.bits = uint32(bits.Len32(furthest))
	w.fits = int(w.nodes.bits)+bits.Len(uint(4*(w.width-1))) <= 32 && leaves <= maxLeaves && uint64(size) <= 1<<31
	if !w.fits {
		return
	}
	w.nodes.list = make([]walkNode, 0, size)
	for _, t := range m.trees {
		w.add(t)
	}
}

// add adds a tree.
func (w *walker) add(t *Tree) {
	w.roots = append(w.roots, uint32(len(w.nodes.list)))
	depth, deepest := make([]uint8, t.Nodes()), uint8(0)
	for i, feature := range t.feature {
		if feature == leafMark {
			deepest = max(deepest, depth[i])
			w.nodes.list = append(w.nodes.list, walkNode{limit: leafLimit + t.left[i]})
			continue
		}
		child := t.left[i]
		depth[child], depth[child+1] = depth[i]+1, depth[i]+1
		w.nodes.list = append(w.nodes.list, walkNode{
			limit: orderedBits(ceil32(t.threshold[i])),
			step:  4*w.compact[feature]<<w.nodes.bits | (child - uint32(i)),
		})
	}
	w.depths = append(w.depths, int(deepest))
}

// order numbers the used features by how many samples passed their nodes: features that
// most rows read are neighbours in memory, and stay in the processor's cache.
func (w *walker) order(m *Ensemble) {
	visits := make([]uint64, m.features)
	for _, t := range m.trees {
		for i, feature := range t.feature {
			if feature != leafMark {
				visits[feature] += 1 + uint64(t.samples[i])
			}
		}
	}
	w.compact = make([]uint32, m.features)
	var used []uint32
	for i, n := range visits {
		if w.compact[i] = unused; n > 0 {
			used = append(used, uint32(i))
		}
	}
	slices.SortFunc(used, func(a, b uint32) int { return cmp.Or(cmp.Compare(visits[b], visits[a]), cmp.Compare(a, b)) })
	for place, feature := range used {
		w.compact[feature] = uint32(place)
	}
	w.used = len(used)
}
