package forest

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
