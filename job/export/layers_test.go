package export

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
)

// product is the product of matrices, which are repeated along the dimensions before the last two.
func product(x, y *tensor) *tensor {
	if x.kind != y.kind {
		panic(fmt.Sprintf("a product of types %d and %d", x.kind, y.kind))
	}
	a, b := len(x.dims)-2, len(y.dims)-2
	rows, inner, columns := x.dims[a], x.dims[a+1], y.dims[b+1]
	if y.dims[b] != inner {
		panic(fmt.Sprintf("the product of %v and %v", x.dims, y.dims))
	}
	batch := common(x.dims[:a], y.dims[:b])
	z := made(x.kind, append(slices.Clone(batch), rows, columns)...)
	left, right := &tensor{dims: x.dims[:a]}, &tensor{dims: y.dims[:b]}
	each(batch, func(i int, index []int) {
		p, q := x.v[left.position(index)*rows*inner:], y.v[right.position(index)*inner*columns:]
		for r := range rows {
			to := z.v[(i*rows+r)*columns:][:columns]
			for k, v := range p[r*inner:][:inner] {
				for c, w := range q[k*columns:][:columns] {
					to[c] += v * w
				}
			}
		}
	})
	return z
}

// layers has the operators of images, loops, categories and trees.
var layers map[string]func(*call) []*tensor

func init() {
	layers = map[string]func(*call) []*tensor{
		"Conv": convolution, "MaxPool": pool, "AveragePool": pool, "Scan": scan, "OneHotEncoder": oneHot,
		"TreeEnsembleRegressor": treeEnsemble,
	}
}

// windows calls f with each output of a window that goes over images, and with each input that the output reads: its
// channel, and its row and column in the window.
func windows(x *tensor, channels, side, stride, padding int, f func(image, channel, at int,
	inputs func(func(from, row, column int)))) (height, width int) {
	height, width = (x.dims[2]+2*padding-side)/stride+1, (x.dims[3]+2*padding-side)/stride+1
	for image := range x.dims[0] {
		for channel := range channels {
			for at := range height * width {
				top, left := at/width*stride-padding, at%width*stride-padding
				f(image, channel, at, func(use func(from, row, column int)) {
					for row := range side {
						for column := range side {
							i, k := top+row, left+column
							if i >= 0 && k >= 0 && i < x.dims[2] && k < x.dims[3] {
								use(i*x.dims[3]+k, row, column)
							}
						}
					}
				})
			}
		}
	}
	return height, width
}

func convolution(c *call) []*tensor {
	x, w := c.in[0], c.in[1]
	side, stride := c.attribute("kernel_shape").([]int)[0], c.attribute("strides").([]int)[0]
	outputs, channels, area := w.dims[0], w.dims[1], x.dims[2]*x.dims[3]
	var sums []float64
	height, width := windows(x, outputs, side, stride, c.attribute("pads").([]int)[0], func(image, channel, _ int,
		inputs func(func(from, row, column int))) {
		sum := 0.0
		if len(c.in) > 2 {
			sum = c.in[2].v[channel]
		}
		inputs(func(from, row, column int) {
			for k := range channels {
				sum += w.v[((channel*channels+k)*side+row)*side+column] * x.v[(image*channels+k)*area+from]
			}
		})
		sums = append(sums, sum)
	})
	return []*tensor{{kind: x.kind, dims: []int{x.dims[0], outputs, height, width}, v: sums}}
}

func pool(c *call) []*tensor {
	x, side := c.in[0], c.attribute("kernel_shape").([]int)[0]
	channels, area := x.dims[1], x.dims[2]*x.dims[3]
	var results []float64
	height, width := windows(x, channels, side, c.attribute("strides").([]int)[0], 0, func(image, channel, _ int,
		inputs func(func(from, row, column int))) {
		sum, most := 0.0, math.Inf(-1)
		inputs(func(from, _, _ int) {
			v := x.v[(image*channels+channel)*area+from]
			sum, most = sum+v, max(most, v)
		})
		if c.n.Op == "AveragePool" {
			most = sum / float64(side*side)
		}
		results = append(results, most)
	})
	return []*tensor{{kind: x.kind, dims: []int{x.dims[0], channels, height, width}, v: results}}
}

func scan(c *call) []*tensor {
	body, over := c.attribute("body").(*graph.Graph), c.attribute("num_scan_inputs").(int)
	state, elements := c.in[0], c.in[1:]
	if len(elements) != over || len(body.Inputs) != over+1 {
		panic("a loop has other inputs than its body")
	}
	for i := range elements[0].dims[0] {
		values := maps.Clone(c.values)
		values[body.Inputs[0].Name] = state
		for k, x := range elements {
			n := size(x.dims[1:])
			values[body.Inputs[k+1].Name] = &tensor{kind: x.kind, dims: x.dims[1:], v: x.v[i*n:][:n]}
		}
		next := run(body, values)[body.Outputs[0].Name]
		if !slices.Equal(next.dims, state.dims) {
			panic(fmt.Sprintf("a loop changes a state of the shape %v to %v", state.dims, next.dims))
		}
		state = next
	}
	return []*tensor{state}
}

func oneHot(c *call) []*tensor {
	levels := c.attribute("cats_strings").([]string)
	y := made(graph.Float32, append(slices.Clone(c.in[0].dims), len(levels))...)
	for i, s := range c.in[0].s {
		at := slices.Index(levels, s)
		if at < 0 {
			panic(fmt.Sprintf("%q is not a level", s))
		}
		y.v[i*len(levels)+at] = 1
	}
	return []*tensor{y}
}

// treeEnsemble walks each sample from the first node of each tree.
func treeEnsemble(c *call) []*tensor {
	ints := func(name string) []int { return c.attribute(name).([]int) }
	type place struct{ tree, node int }
	nodes, trees := make(map[place]int), make(map[int]int) // the first node of each tree
	ids := ints("nodes_nodeids")
	for i, tree := range ints("nodes_treeids") {
		if nodes[place{tree, ids[i]}] = i; len(nodes) != i+1 {
			panic("two nodes of a tree have the same number")
		}
		if _, ok := trees[tree]; !ok {
			trees[tree] = i
		}
	}
	leaves := make(map[place][]int)
	targetNodes := ints("target_nodeids")
	for i, tree := range ints("target_treeids") {
		at := place{tree, targetNodes[i]}
		leaves[at] = append(leaves[at], i)
	}
	x, n := c.in[0], c.attribute("n_targets").(int)
	modes, features, values := c.attribute("nodes_modes").([]string), ints("nodes_featureids"),
		c.attribute("nodes_values").([]float32)
	yes, no := ints("nodes_truenodeids"), ints("nodes_falsenodeids")
	weights, targets := c.attribute("target_weights").([]float32), ints("target_ids")
	y := made(graph.Float32, x.dims[0], n)
	for row := range x.dims[0] {
		for tree := range len(trees) {
			at := trees[tree]
			for modes[at] != "LEAF" {
				next := no[at]
				if modes[at] != "BRANCH_LT" {
					panic("a node has the mode " + modes[at])
				}
				if x.v[row*x.dims[1]+features[at]] < float64(values[at]) {
					next = yes[at]
				}
				at = nodes[place{tree, next}]
			}
			for _, i := range leaves[place{tree, ids[at]}] {
				y.v[row*n+targets[i]] += float64(weights[i])
			}
		}
		if c.attribute("aggregate_function") == "AVERAGE" {
			for k := range n {
				y.v[row*n+k] /= float64(len(trees))
			}
		}
	}
	return []*tensor{y}
}
