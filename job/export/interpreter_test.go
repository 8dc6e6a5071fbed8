package export

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
)

// The interpreter computes the operators of a graph by plain loops: the reference that models are compared with. All
// numbers are float64. Results of float32 operators are rounded.

// tensor is a value: numbers or texts.
type tensor struct {
	kind graph.Type
	dims []int
	v    []float64
	s    []string
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// made returns a tensor of zeros.
func made(kind graph.Type, dims ...int) *tensor {
	return &tensor{kind: kind, dims: slices.Clone(dims), v: make([]float64, size(dims))}
}

func (x *tensor) rounded() *tensor {
	if x.kind == graph.Float32 {
		for i, v := range x.v {
			x.v[i] = float64(float32(v))
		}
	}
	return x
}

func (x *tensor) ints() []int {
	all := make([]int, len(x.v))
	for i, v := range x.v {
		all[i] = int(v)
	}
	return all
}

// interpret returns the outputs of a graph.
func interpret(t testing.TB, g *graph.Graph, inputs map[graph.Value]*tensor) map[graph.Value]*tensor {
	t.Helper()
	values := make(map[graph.Value]*tensor)
	for name, x := range inputs {
		values[name] = x
	}
	for i := range g.Constants {
		c := &g.Constants[i]
		x := &tensor{dims: c.Dims}
		switch {
		case c.F32 != nil:
			x.kind = graph.Float32
			for _, v := range c.F32 {
				x.v = append(x.v, float64(v))
			}
		case c.F64 != nil:
			x.kind, x.v = graph.Float64, c.F64
		default:
			x.kind = graph.Int64
			for _, v := range c.I64 {
				x.v = append(x.v, float64(v))
			}
		}
		if size(x.dims) != len(x.v) {
			t.Fatalf("constant %s has %d values and the shape %v", c.Name, len(x.v), c.Dims)
		}
		values[c.Name] = x
	}
	return run(g, values)
}

// run computes the nodes of a graph or of a body. values has what the graph reads.
func run(g *graph.Graph, values map[graph.Value]*tensor) map[graph.Value]*tensor {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		step := &call{n: n, values: values}
		for _, name := range n.Inputs {
			x, ok := values[name]
			if !ok {
				panic(fmt.Sprintf("%s reads %s, which is not computed before", n.Op, name))
			}
			step.in = append(step.in, x)
		}
		results := step.compute()
		for k, name := range n.Outputs {
			if _, twice := values[name]; twice && g.Constants != nil {
				panic("two values have the name " + name)
			}
			values[name] = results[k]
		}
	}
	outputs := make(map[graph.Value]*tensor)
	for _, p := range g.Outputs {
		if outputs[p.Name] = values[p.Name]; p.Type != values[p.Name].kind {
			panic(fmt.Sprintf("output %s has type %d, not %d", p.Name, values[p.Name].kind, p.Type))
		}
	}
	return outputs
}

// call is an operator with its inputs.
type call struct {
	n      *graph.Node
	in     []*tensor
	values map[graph.Value]*tensor
}

func (c *call) attribute(name string) any {
	for _, a := range c.n.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	panic(c.n.Op + " lacks the attribute " + name)
}

// axis returns an axis, counted from the front.
func (c *call) axis() int { return c.from(c.attribute("axis").(int)) }

func (c *call) from(axis int) int {
	if axis < 0 {
		axis += len(c.in[0].dims)
	}
	return axis
}

var unary = map[string]func(float64) float64{
	"Neg": func(x float64) float64 { return -x }, "Exp": math.Exp, "Log": math.Log, "Abs": math.Abs, "Sqrt": math.Sqrt,
	"Tanh": math.Tanh, "Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Relu": func(x float64) float64 { return max(x, 0) }, "Identity": func(x float64) float64 { return x },
	"IsNaN": func(x float64) float64 { return truth(x != x) },
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

var pairs = map[string]func(x, y float64) float64{
	"Add": func(x, y float64) float64 { return x + y }, "Sub": func(x, y float64) float64 { return x - y },
	"Mul": func(x, y float64) float64 { return x * y }, "Div": func(x, y float64) float64 { return x / y },
	"Max": func(x, y float64) float64 { return max(x, y) }, "Min": func(x, y float64) float64 { return min(x, y) },
	"Less":           func(x, y float64) float64 { return truth(x < y) },
	"Equal":          func(x, y float64) float64 { return truth(x == y) },
	"GreaterOrEqual": func(x, y float64) float64 { return truth(x >= y) },
}

// booleans are operators whose results are true or false.
var booleans = []string{"IsNaN", "Less", "Equal", "GreaterOrEqual"}

func (c *call) kind() graph.Type {
	if slices.Contains(booleans, c.n.Op) {
		return graph.Bool
	}
	return c.in[0].kind
}

func (c *call) compute() []*tensor {
	x := c.in[0]
	if f, ok := unary[c.n.Op]; ok {
		y := made(c.kind(), x.dims...)
		for i, v := range x.v {
			y.v[i] = f(v)
		}
		return []*tensor{y.rounded()}
	}
	if f, ok := pairs[c.n.Op]; ok {
		if x.kind != c.in[1].kind {
			panic(fmt.Sprintf("%s of types %d and %d", c.n.Op, x.kind, c.in[1].kind))
		}
		return []*tensor{broadcast(c.kind(), func(v []float64) float64 { return f(v[0], v[1]) }, x, c.in[1]).rounded()}
	}
	f, ok := operators[c.n.Op]
	if !ok {
		f, ok = layers[c.n.Op]
	}
	if !ok {
		panic("the interpreter lacks the operator " + c.n.Op)
	}
	results := f(c)
	for _, y := range results {
		if size(y.dims) != max(len(y.v), len(y.s)) {
			panic(fmt.Sprintf("%s returns %d values with the shape %v", c.n.Op, len(y.v), y.dims))
		}
		y.rounded()
	}
	return results
}

// position returns where the element of a tensor is that is repeated at an index of another shape.
func (x *tensor) position(index []int) int {
	at := 0
	for i, d := range x.dims {
		k := index[len(index)-len(x.dims)+i]
		if d == 1 {
			k = 0
		}
		at = at*d + k
	}
	return at
}

// common returns the shape to which shapes are repeated.
func common(all ...[]int) []int {
	var dims []int
	for _, d := range all {
		for len(dims) < len(d) {
			dims = append([]int{1}, dims...)
		}
		for i, n := range d {
			at := len(dims) - len(d) + i
			if dims[at] != n && dims[at] != 1 && n != 1 {
				panic(fmt.Sprint("shapes that do not fit: ", all))
			}
			if n != 1 {
				dims[at] = n
			}
		}
	}
	return dims
}

// each calls f with each index of a shape.
func each(dims []int, f func(i int, index []int)) {
	index := make([]int, len(dims))
	for i := range size(dims) {
		f(i, index)
		for k := len(dims) - 1; k >= 0; k-- {
			if index[k]++; index[k] < dims[k] {
				break
			}
			index[k] = 0
		}
	}
}

func broadcast(kind graph.Type, f func([]float64) float64, in ...*tensor) *tensor {
	var shapes [][]int
	for _, x := range in {
		shapes = append(shapes, x.dims)
	}
	y, v := made(kind, common(shapes...)...), make([]float64, len(in))
	each(y.dims, func(i int, index []int) {
		for k, x := range in {
			v[k] = x.v[x.position(index)]
		}
		y.v[i] = f(v)
	})
	return y
}

// lines calls f with the elements of each line along an axis: from the number at with a stride.
func lines(dims []int, axis int, f func(line, at, stride int)) {
	stride := size(dims[axis+1:])
	for outer := range size(dims[:axis]) {
		for inner := range stride {
			f(outer*stride+inner, outer*dims[axis]*stride+inner, stride)
		}
	}
}

// reduce returns the reduction of each line along an axis.
func (c *call) reduce(axis int, f func(line []float64) float64) []*tensor {
	x := c.in[0]
	dims := slices.Clone(x.dims)
	dims[axis] = 1
	y, line := made(x.kind, dims...), make([]float64, x.dims[axis])
	lines(x.dims, axis, func(to, at, stride int) {
		for k := range line {
			line[k] = x.v[at+k*stride]
		}
		y.v[to] = f(line)
	})
	return []*tensor{y}
}

func sumOf(line []float64) (sum float64) {
	for _, v := range line {
		sum += v
	}
	return sum
}

// operators has the operators on tensors of any shape. layers has the others.
var operators = map[string]func(*call) []*tensor{
	"Cast": func(c *call) []*tensor {
		y := made(graph.Type(c.attribute("to").(int)), c.in[0].dims...)
		copy(y.v, c.in[0].v)
		return []*tensor{y}
	},
	"Where": func(c *call) []*tensor {
		return []*tensor{broadcast(c.in[1].kind, func(v []float64) float64 {
			if v[0] != 0 {
				return v[1]
			}
			return v[2]
		}, c.in...)}
	},
	"MatMul": func(c *call) []*tensor { return []*tensor{product(c.in[0], c.in[1])} },
	"Gather": func(c *call) []*tensor {
		x, at, axis := c.in[0], c.in[1], c.axis()
		y := made(x.kind, slices.Concat(x.dims[:axis], at.dims, x.dims[axis+1:])...)
		inner, n := size(x.dims[axis+1:]), len(at.v)
		for outer := range size(x.dims[:axis]) {
			for k, from := range at.ints() {
				copy(y.v[(outer*n+k)*inner:][:inner], x.v[(outer*x.dims[axis]+from)*inner:])
			}
		}
		return []*tensor{y}
	},
	"Concat": func(c *call) []*tensor {
		axis := c.axis()
		dims := slices.Clone(c.in[0].dims)
		for _, x := range c.in[1:] {
			dims[axis] += x.dims[axis]
		}
		y := made(c.in[0].kind, dims...)
		for outer, to := 0, y.v; outer < size(dims[:axis]); outer++ {
			for _, x := range c.in {
				n := size(x.dims[axis:])
				copy(to, x.v[outer*n:][:n])
				to = to[n:]
			}
		}
		return []*tensor{y}
	},
	"Reshape": func(c *call) []*tensor {
		dims, known, left := c.in[1].ints(), 1, -1
		for i, d := range dims {
			if d == 0 {
				dims[i] = c.in[0].dims[i]
			}
			if d == -1 {
				left = i
			} else {
				known *= dims[i]
			}
		}
		if left >= 0 {
			dims[left] = len(c.in[0].v) / known
		}
		return []*tensor{{kind: c.in[0].kind, dims: dims, v: c.in[0].v}}
	},
	"Unsqueeze": func(c *call) []*tensor {
		return []*tensor{{kind: c.in[0].kind, dims: slices.Insert(slices.Clone(c.in[0].dims), c.in[1].ints()[0], 1),
			v: c.in[0].v}}
	},
	"Transpose": func(c *call) []*tensor {
		x, order := c.in[0], c.attribute("perm").([]int)
		dims := make([]int, len(order))
		for i, k := range order {
			dims[i] = x.dims[k]
		}
		y, from := made(x.kind, dims...), make([]int, len(order))
		each(dims, func(i int, index []int) {
			for k, d := range order {
				from[d] = index[k]
			}
			y.v[i] = x.v[x.position(from)]
		})
		return []*tensor{y}
	},
	"Shape": func(c *call) []*tensor {
		y := made(graph.Int64, len(c.in[0].dims))
		for i, d := range c.in[0].dims {
			y.v[i] = float64(d)
		}
		return []*tensor{y}
	},
	"Expand": func(c *call) []*tensor {
		return []*tensor{broadcast(c.in[0].kind, func(v []float64) float64 { return v[0] }, c.in[0],
			made(graph.Int64, c.in[1].ints()...))}
	},
	"ReduceSum": func(c *call) []*tensor { return c.reduce(c.from(c.in[1].ints()[0]), sumOf) },
	"ReduceMean": func(c *call) []*tensor {
		return c.reduce(c.attribute("axes").([]int)[0], func(line []float64) float64 {
			return sumOf(line) / float64(len(line))
		})
	},
	"ReduceMax": func(c *call) []*tensor {
		return c.reduce(c.attribute("axes").([]int)[0], slices.Max[[]float64])
	},
	"CumSum": func(c *call) []*tensor {
		if len(c.in[1].dims) > 0 {
			panic("the axis of CumSum is a list")
		}
		x, axis := c.in[0], c.from(c.in[1].ints()[0])
		y := made(x.kind, x.dims...)
		lines(x.dims, axis, func(_, at, stride int) {
			sum := 0.0
			for k := range x.dims[axis] {
				sum += x.v[at+k*stride]
				y.v[at+k*stride] = sum
			}
		})
		return []*tensor{y}
	},
	"Softmax": func(c *call) []*tensor {
		x, axis := c.in[0], c.axis()
		y := made(x.kind, x.dims...)
		lines(x.dims, axis, func(_, at, stride int) {
			most, sum := math.Inf(-1), 0.0
			for k := range x.dims[axis] {
				most = max(most, x.v[at+k*stride])
			}
			for k := range x.dims[axis] {
				y.v[at+k*stride] = math.Exp(x.v[at+k*stride] - most)
				sum += y.v[at+k*stride]
			}
			for k := range x.dims[axis] {
				y.v[at+k*stride] /= sum
			}
		})
		return []*tensor{y}
	},
	"TopK": func(c *call) []*tensor {
		x, axis, k := c.in[0], c.axis(), c.in[1].ints()[0]
		dims := slices.Clone(x.dims)
		dims[axis] = k
		y, where, n := made(x.kind, dims...), made(graph.Int64, dims...), x.dims[axis]
		sign := float64(1 - 2*c.attribute("largest").(int)) // of what is sorted in ascending order
		for row := range len(x.v) / n {
			order, line := make([]int, n), x.v[row*n:]
			for i := range order {
				order[i] = i
			}
			sort.SliceStable(order, func(i, j int) bool { return sign*line[order[i]] < sign*line[order[j]] })
			for i, at := range order[:k] {
				y.v[row*k+i], where.v[row*k+i] = line[at], float64(at)
			}
		}
		return []*tensor{y, where}
	},
	"ArgMax": func(c *call) []*tensor {
		axis := c.axis()
		y := c.reduce(axis, func(line []float64) float64 {
			best := 0
			for i, v := range line {
				if v > line[best] {
					best = i
				}
			}
			return float64(best)
		})[0]
		if y.kind = graph.Int64; c.attribute("keepdims").(int) == 0 {
			y.dims = slices.Delete(y.dims, axis, axis+1)
		}
		return []*tensor{y}
	},
	"Slice": func(c *call) []*tensor {
		x, from, to, axes := c.in[0], c.in[1].ints(), c.in[2].ints(), c.in[3].ints()
		dims, start := slices.Clone(x.dims), make([]int, len(x.dims))
		for i, axis := range axes {
			dims[axis], start[axis] = to[i]-from[i], from[i]
		}
		y, at := made(x.kind, dims...), make([]int, len(dims))
		each(dims, func(i int, index []int) {
			for k := range index {
				at[k] = index[k] + start[k]
			}
			y.v[i] = x.v[x.position(at)]
		})
		return []*tensor{y}
	},
}
