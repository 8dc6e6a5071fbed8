package forest

import "github.com/coppice-ldl/coppice/algorithms/kit/graph"

// The ways in which trees are joined, as ONNX names them.
const (
	Average = "AVERAGE"
	Sum     = "SUM"
)

// JoinGraph adds the trees as one operator, which computes the mean or the sum of the leaves that a sample reaches. Of
// trees about one label, it is always the sum. A row goes left if x < threshold. The thresholds are rounded up to
// float32, so each float32 takes the branch that it takes here.
func (m *Ensemble) JoinGraph(b *graph.Builder, x graph.Value, how string) graph.Value {
	var at, trees, features, yes, no, targets, leafTrees, leafNodes []int
	var modes []string
	var thresholds, weights []float32
	for tree, t := range m.trees {
		for node, feature := range t.feature {
			at, trees = append(at, node), append(trees, tree)
			if feature != leafMark {
				modes = append(modes, "BRANCH_LT")
				features, thresholds = append(features, int(feature)), append(thresholds, ceil32(t.threshold[node]))
				yes, no = append(yes, int(t.left[node])), append(no, int(t.left[node])+1)
				continue
			}
			modes = append(modes, "LEAF")
			features, thresholds = append(features, 0), append(thresholds, 0)
			yes, no = append(yes, 0), append(no, 0)
			before := len(weights)
			for c, v := range t.Distribution(int(t.left[node])) {
				if v == 0 && (c+1 < t.Labels || len(weights) > before) { // a leaf has a weight at least
					continue
				}
				if t.Labels < m.labels {
					c = tree % m.labels
				}
				targets, weights = append(targets, c), append(weights, v)
				leafTrees, leafNodes = append(leafTrees, tree), append(leafNodes, node)
			}
		}
	}
	return b.WithML("TreeEnsembleRegressor", graph.Attributes{
		"n_targets": m.labels, "aggregate_function": how, "post_transform": "NONE",
		"nodes_treeids": trees, "nodes_nodeids": at, "nodes_modes": modes, "nodes_featureids": features,
		"nodes_values": thresholds, "nodes_truenodeids": yes, "nodes_falsenodeids": no,
		"target_treeids": leafTrees, "target_nodeids": leafNodes, "target_ids": targets, "target_weights": weights,
	}, x)
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	return m.JoinGraph(b, x, Average), nil
}
