package export

import (
	"encoding/binary"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
)

// field is a field of a message.
type field struct {
	number protowire.Number
	v      uint64 // of a varint
	b      []byte // of bytes
}

// fieldsOf lists the fields of a message.
func fieldsOf(t testing.TB, b []byte) (all []field) {
	t.Helper()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.b, n = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d has type %d", number, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		all, b = append(all, f), b[n:]
	}
	return all
}

// decodeONNX reads a file that ONNX wrote: its graph and its properties.
func decodeONNX(t testing.TB, b []byte) (g *graph.Graph, properties map[string]string) {
	t.Helper()
	properties = make(map[string]string)
	sets := make(map[string]uint64)
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			if f.v != fileFormat {
				t.Errorf("the format is %d", f.v)
			}
		case 7:
			g = decodeGraph(t, f.b)
		case 8:
			set := fieldsOf(t, f.b)
			sets[string(set[0].b)] = set[1].v
		case 14:
			entry := fieldsOf(t, f.b)
			properties[string(entry[0].b)] = string(entry[1].b)
		}
	}
	if sets[""] != graph.Version || sets[graph.Trees] != graph.VersionML {
		t.Errorf("the versions of operators are %v", sets)
	}
	return g, properties
}

func decodeGraph(t testing.TB, b []byte) *graph.Graph {
	g := new(graph.Graph)
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			g.Nodes = append(g.Nodes, decodeNode(t, f.b))
		case 5:
			g.Constants = append(g.Constants, decodeConstant(t, f.b))
		case 11:
			g.Inputs = append(g.Inputs, decodePort(t, f.b))
		case 12:
			g.Outputs = append(g.Outputs, decodePort(t, f.b))
		}
	}
	return g
}

func decodeConstant(t testing.TB, b []byte) (c graph.Constant) {
	kind := graph.Type(0)
	c.Dims = []int{}
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			c.Dims = append(c.Dims, int(f.v))
		case 2:
			kind = graph.Type(f.v)
		case 8:
			c.Name = graph.Value(f.b)
		case 9:
			for at := f.b; len(at) > 0; {
				switch kind {
				case graph.Float32:
					c.F32 = append(c.F32, math.Float32frombits(binary.LittleEndian.Uint32(at)))
					at = at[4:]
				case graph.Float64:
					c.F64 = append(c.F64, math.Float64frombits(binary.LittleEndian.Uint64(at)))
					at = at[8:]
				default:
					c.I64 = append(c.I64, int64(binary.LittleEndian.Uint64(at)))
					at = at[8:]
				}
			}
		}
	}
	return c
}

func decodePort(t testing.TB, b []byte) (p graph.Port) {
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			p.Name = graph.Value(f.b)
		case 2:
			tensor := fieldsOf(t, fieldsOf(t, f.b)[0].b)
			if p.Type, p.Columns = graph.Type(tensor[0].v), -1; len(tensor) > 1 {
				p.Columns = 0
				if dims := fieldsOf(t, tensor[1].b); len(dims) > 1 {
					p.Columns = int(fieldsOf(t, dims[1].b)[0].v)
				}
			}
		case 3:
			p.Doc = string(f.b)
		}
	}
	return p
}

func decodeNode(t testing.TB, b []byte) (n graph.Node) {
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			n.Inputs = append(n.Inputs, graph.Value(f.b))
		case 2:
			n.Outputs = append(n.Outputs, graph.Value(f.b))
		case 4:
			n.Op = string(f.b)
		case 5:
			n.Attributes = append(n.Attributes, decodeAttribute(t, f.b))
		case 7:
			n.Domain = string(f.b)
		}
	}
	return n
}

func decodeAttribute(t testing.TB, b []byte) (a graph.Attribute) {
	var texts []string
	for _, f := range fieldsOf(t, b) {
		switch f.number {
		case 1:
			a.Name = string(f.b)
		case 3:
			a.Value = int(int64(f.v))
		case 4:
			a.Value = string(f.b)
		case 6:
			a.Value = decodeGraph(t, f.b)
		case 7:
			var v []float32
			for at := f.b; len(at) > 0; at = at[4:] {
				v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(at)))
			}
			a.Value = v
		case 8:
			var v []int
			for at := f.b; len(at) > 0; {
				x, n := protowire.ConsumeVarint(at)
				v, at = append(v, int(int64(x))), at[n:]
			}
			a.Value = v
		case 9:
			texts = append(texts, string(f.b))
		case 20:
			if f.v == 8 {
				a.Value = texts
			}
		}
	}
	return a
}
