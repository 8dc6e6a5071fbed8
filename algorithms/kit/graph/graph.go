// Package graph describes a prediction as a graph of operators. Names and meanings of operators, attributes and types
// are as in ONNX: version 17 of its operators, and version 3 of ai.onnx.ml. A model adds its operators with a Builder.
// Package job/export writes the graph to a file.
//
// The operators have the types that Predict computes in: float64 where Predict has float64. Then results differ only by
// the order of sums and by the rounding of exponentials.
package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The versions of the operators.
const (
	Version   = 17
	VersionML = 3
	// Trees is the domain of operators of decision trees and categories.
	Trees = "ai.onnx.ml"
)

// Type is the type of the elements of a tensor.
type Type int32

// The types, with their numbers in ONNX.
const (
	Float32 Type = 1
	Int64   Type = 7
	String  Type = 8
	Bool    Type = 9
	Float64 Type = 11
)

// Value is the name of a tensor in a graph.
type Value string

// Graph is a list of operators, each after the operators whose results it reads.
type Graph struct {
	Nodes     []Node
	Constants []Constant
	Inputs    []Port
	Outputs   []Port
}

// Port is an input or an output of a graph.
type Port struct {
	Name Value
	Type Type
	// Columns is the number of columns of a matrix with a row for each sample; 0: there is one value for each sample; -1:
	// the shape is not stated.
	Columns int
	Doc     string
}

// Node is an operator.
type Node struct {
	Op         string
	Domain     string // empty for ONNX's own
	Inputs     []Value
	Outputs    []Value
	Attributes []Attribute // by name
}

// Attribute is an attribute of an operator. Its value is an int, []int, []float32, string, []string or *Graph.
type Attribute struct {
	Name  string
	Value any
}

// Constant is a tensor that the graph holds. One of its slices has the elements, in row-major order.
type Constant struct {
	Name Value
	Dims []int
	F32  []float32
	F64  []float64
	I64  []int64
}

// Model is implemented by models that have a graph.
type Model interface {
	// Graph adds operators that compute what Predict does. x has the samples (float32, samples×features). The result is
	// float32 with as many columns as Predict writes for a sample. An error wraps ErrNone.
	Graph(b *Builder, x Value) (Value, error)
}

// ErrNone is wrapped by the error about a model that no operators describe.
var ErrNone = errors.New("no ONNX operators describe the model")

// None returns an error that wraps ErrNone, with a reason.
func None(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNone, fmt.Errorf(format, args...))
}

// Of adds the graph of a model that may have none.
func Of(model any, b *Builder, x Value) (Value, error) {
	m, ok := model.(Model)
	if !ok {
		return "", None("the algorithm has no graph")
	}
	return m.Graph(b, x)
}

// Builder adds operators to a graph.
type Builder struct {
	Graph *Graph
	root  *root
}

// root is what the builders of a graph and of the bodies of its loops share. Bodies read the constants of the graph.
type root struct {
	graph *Graph
	names int
	lists map[string]Value // constants that are lists of whole numbers
}

// New returns the builder of an empty graph.
func New() *Builder {
	g := new(Graph)
	return &Builder{g, &root{graph: g, lists: make(map[string]Value)}}
}

// Attributes are the attributes of an operator: see Attribute.
type Attributes map[string]any

// fresh returns a name that no other value has.
func (b *Builder) fresh(kind string) Value {
	b.root.names++
	return Value(fmt.Sprintf("%s_%d", kind, b.root.names))
}

// Input adds an input.
func (b *Builder) Input(p Port) Value {
	b.Graph.Inputs = append(b.Graph.Inputs, p)
	return p.Name
}

// Output makes a value an output of another name.
func (b *Builder) Output(p Port, v Value) {
	b.Graph.Nodes = append(b.Graph.Nodes, Node{Op: "Identity", Inputs: []Value{v}, Outputs: []Value{p.Name}})
	b.Graph.Outputs = append(b.Graph.Outputs, p)
}

// Op adds an operator without attributes and returns its result.
func (b *Builder) Op(op string, inputs ...Value) Value { return b.With(op, nil, inputs...) }

// With adds an operator with attributes and returns its result.
func (b *Builder) With(op string, a Attributes, inputs ...Value) Value {
	return b.add("", op, a, inputs, 1)[0]
}

// WithML adds an operator of the domain Trees.
func (b *Builder) WithML(op string, a Attributes, inputs ...Value) Value {
	return b.add(Trees, op, a, inputs, 1)[0]
}

func (b *Builder) add(domain, op string, a Attributes, inputs []Value, results int) []Value {
	n := Node{Op: op, Domain: domain, Inputs: inputs}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		n.Attributes = append(n.Attributes, Attribute{name, a[name]})
	}
	for range results {
		n.Outputs = append(n.Outputs, b.fresh(op))
	}
	b.Graph.Nodes = append(b.Graph.Nodes, n)
	return n.Outputs
}

func (b *Builder) constant(c Constant) Value {
	c.Name = b.fresh("constant")
	b.root.graph.Constants = append(b.root.graph.Constants, c)
	return c.Name
}

// F32 adds a constant; without dims it is a number.
func (b *Builder) F32(v []float32, dims ...int) Value {
	return b.constant(Constant{F32: v, Dims: dims})
}

// F64 adds a constant; without dims it is a number.
func (b *Builder) F64(v []float64, dims ...int) Value {
	return b.constant(Constant{F64: v, Dims: dims})
}

// Number adds a constant that is a float64.
func (b *Builder) Number(x float64) Value { return b.F64([]float64{x}) }

// List adds a constant that is a list of whole numbers. Equal lists are one constant.
func (b *Builder) List(v ...int) Value {
	key := fmt.Sprint(v)
	if name, ok := b.root.lists[key]; ok {
		return name
	}
	numbers := make([]int64, len(v))
	for i, x := range v {
		numbers[i] = int64(x)
	}
	b.root.lists[key] = b.constant(Constant{I64: numbers, Dims: []int{len(v)}})
	return b.root.lists[key]
}

// Cast converts the elements of x.
func (b *Builder) Cast(x Value, to Type) Value { return b.With("Cast", Attributes{"to": int(to)}, x) }

// Reshape changes the shape of x. A 0 in dims keeps a dimension, and -1 takes what is left.
func (b *Builder) Reshape(x Value, dims ...int) Value { return b.Op("Reshape", x, b.List(dims...)) }

// Unsqueeze inserts a dimension of 1.
func (b *Builder) Unsqueeze(x Value, axis int) Value { return b.Op("Unsqueeze", x, b.List(axis)) }

// Transpose orders the dimensions of x.
func (b *Builder) Transpose(x Value, order ...int) Value {
	return b.With("Transpose", Attributes{"perm": order}, x)
}

// Gather takes elements of x along an axis.
func (b *Builder) Gather(x Value, axis int, at ...int) Value {
	return b.With("Gather", Attributes{"axis": axis}, x, b.List(at...))
}

// Concat joins tensors along an axis.
func (b *Builder) Concat(axis int, parts ...Value) Value {
	return b.With("Concat", Attributes{"axis": axis}, parts...)
}

// Sum adds the elements along an axis, which is kept with the dimension 1.
func (b *Builder) Sum(x Value, axis int) Value { return b.Op("ReduceSum", x, b.List(axis)) }

// Mean is the mean along an axis, which is kept with the dimension 1.
func (b *Builder) Mean(x Value, axis int) Value {
	return b.With("ReduceMean", Attributes{"axes": []int{axis}}, x)
}

// Max is the maximum along an axis, which is kept with the dimension 1.
func (b *Builder) Max(x Value, axis int) Value {
	return b.With("ReduceMax", Attributes{"axes": []int{axis}}, x)
}

// CumSum returns the sums of the elements up to each along an axis, added one after the other.
func CumSum(b *Builder, x Value, axis int) Value {
	return b.Op("CumSum", x, b.constant(Constant{I64: []int64{int64(axis)}}))
}

// OrderedSum adds so many elements along an axis one after the other, as a loop does: other sums are added in any
// order. The axis is kept with the dimension 1.
func OrderedSum(b *Builder, x Value, axis, elements int) Value {
	return b.Gather(CumSum(b, x, axis), axis, elements-1)
}

// Softmax is exp(x) / Σ exp(x) along the last axis.
func (b *Builder) Softmax(x Value) Value { return b.With("Softmax", Attributes{"axis": -1}, x) }

// TopK returns the k greatest elements along the last axis in order, or the k least if least is true, and their
// positions. Of equal elements, the first comes first.
func (b *Builder) TopK(x Value, k int, least bool) (values, at Value) {
	largest := 1
	if least {
		largest = 0
	}
	both := b.add("", "TopK", Attributes{"axis": -1, "largest": largest, "sorted": 1}, []Value{x, b.List(k)}, 2)
	return both[0], both[1]
}

// Linear returns x·w + the offsets, in float64. w has a row of outputs for each feature, then the offsets.
func Linear(b *Builder, x Value, w []float64, features, outputs int) Value {
	matrix := b.F64(w[:features*outputs], features, outputs)
	return b.Op("Add", b.Op("MatMul", b.Cast(x, Float64), matrix), b.F64(w[features*outputs:], outputs))
}

// Repeat returns a constant of a shape for each sample of x: samples×shape.
func Repeat(b *Builder, constant, x Value, shape ...int) Value {
	samples := b.Gather(b.Op("Shape", x), 0, 0)
	return b.Op("Expand", constant, b.Concat(0, samples, b.List(shape...)))
}

// Scan returns the last of a chain of states: step computes a state from the one before and the next element of each
// of over, along its first axis. All are float64. Step must read at least one element.
func (b *Builder) Scan(state Value, step func(b *Builder, state Value, elements []Value) Value, over ...Value) Value {
	body := &Builder{new(Graph), b.root}
	open := func(kind string) Value {
		return body.Input(Port{Name: b.fresh(kind), Type: Float64, Columns: -1})
	}
	before := open("state")
	elements := make([]Value, len(over))
	for i := range over {
		elements[i] = open("element")
	}
	body.Output(Port{Name: b.fresh("next"), Type: Float64, Columns: -1}, step(body, before, elements))
	return b.With("Scan", Attributes{"body": body.Graph, "num_scan_inputs": len(over)},
		append([]Value{state}, over...)...)
}

// Products returns products of factors (factors×samples) along paths, and the paths in the order of the rows of the
// result (paths×samples). A path is a list of at least one factor. Products of equal beginnings of paths are computed
// once, from the first factor on.
func Products(b *Builder, factors Value, paths [][]int) (products Value, order []int) {
	type prefix struct{ parent, factor int }
	var done []Value
	at := make([]int, len(paths)) // of each path its prefix at the level
	level := Value("")
	for depth := 0; len(order) < len(paths); depth++ {
		known, list := make(map[prefix]int), []prefix(nil)
		for i, path := range paths {
			if depth >= len(path) {
				continue
			}
			p := prefix{at[i], path[depth]}
			if _, ok := known[p]; !ok {
				known[p], list = len(list), append(list, p)
			}
			at[i] = known[p]
		}
		parents, own := make([]int, len(list)), make([]int, len(list))
		for i, p := range list {
			parents[i], own[i] = p.parent, p.factor
		}
		next := b.Gather(factors, 0, own...)
		if depth > 0 {
			next = b.Op("Mul", b.Gather(level, 0, parents...), next)
		}
		level = next
		var ended []int
		for i, path := range paths {
			if depth == len(path)-1 {
				order, ended = append(order, i), append(ended, at[i])
			}
		}
		if len(ended) > 0 {
			done = append(done, b.Gather(level, 0, ended...))
		}
	}
	if len(done) == 1 {
		return done[0], order
	}
	return b.Concat(0, done...), order
}

// Operators lists the operators of the graph and of its loops, each once, in alphabetical order.
func (g *Graph) Operators() (names []string) {
	seen := make(map[string]bool)
	var visit func(*Graph)
	visit = func(g *Graph) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			seen[strings.TrimPrefix(n.Domain+":"+n.Op, ":")] = true
			for _, a := range n.Attributes {
				if body, ok := a.Value.(*Graph); ok {
					visit(body)
				}
			}
		}
	}
	visit(g)
	return slices.Sorted(maps.Keys(seen))
}
