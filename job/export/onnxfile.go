package export

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/internal/num"
)

// An ONNX file is a message ModelProto of onnx.proto. The numbers of the fields are written below their messages.

// fileFormat is the version of the file format (ir_version), which belongs to operators of version 17.
const fileFormat = 8

// mostBytes bounds a message of Protocol Buffers.
const mostBytes = 1<<31 - 1

// message is an encoded message in pieces. Large arrays are pieces of their own, which are not copied.
type message struct {
	pieces [][]byte
	size   int
	open   bool // true if the last piece may grow
}

// mostCopied is the greatest length of bytes that are copied into a piece.
const mostCopied = 1 << 12

// add adds bytes, which must not change afterwards.
func (m *message) add(b []byte) {
	m.size += len(b)
	switch last := len(m.pieces) - 1; {
	case len(b) > mostCopied:
		m.pieces, m.open = append(m.pieces, b), false
	case m.open:
		m.pieces[last] = append(m.pieces[last], b...)
	default:
		m.pieces, m.open = append(m.pieces, bytes.Clone(b)), true
	}
}

// bytes adds a field of a length and bytes.
func (m *message) bytes(field protowire.Number, b []byte) {
	m.add(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(len(b))))
	m.add(b)
}

func (m *message) text(field protowire.Number, s string) { m.bytes(field, []byte(s)) }

func (m *message) number(field protowire.Number, v int64) {
	m.add(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(v)))
}

// part adds a field that is a message.
func (m *message) part(field protowire.Number, p *message) {
	m.add(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(p.size)))
	for _, b := range p.pieces {
		m.add(b)
	}
}

// writeONNX writes a file of a graph.
func writeONNX(w io.Writer, g *graph.Graph, version string, properties [][2]string) error {
	var m message // ModelProto
	m.number(1, fileFormat)
	m.text(2, "coppice") // producer_name, producer_version
	m.text(3, version)
	m.part(7, graphMessage(g, "coppice"))
	for _, set := range []struct {
		domain  string
		version int64
	}{{"", graph.Version}, {graph.Trees, graph.VersionML}} {
		var o message // OperatorSetIdProto
		o.text(1, set.domain)
		o.number(2, set.version)
		m.part(8, &o)
	}
	for _, p := range properties {
		var entry message // StringStringEntryProto
		entry.text(1, p[0])
		entry.text(2, p[1])
		m.part(14, &entry)
	}
	if m.size > mostBytes {
		return graph.None("the file would have %d bytes, and ONNX allows %d", m.size, mostBytes)
	}
	for _, b := range m.pieces {
		if _, err := io.Copy(w, bytes.NewReader(b)); err != nil {
			return err
		}
	}
	return nil
}

// graphMessage returns a GraphProto.
func graphMessage(g *graph.Graph, name string) *message {
	m := new(message)
	for i := range g.Nodes {
		m.part(1, nodeMessage(&g.Nodes[i]))
	}
	m.text(2, name)
	for i := range g.Constants {
		c := &g.Constants[i]
		var t message // TensorProto
		for _, d := range c.Dims {
			t.number(1, int64(d))
		}
		kind, data := bytesOf(c)
		t.number(2, int64(kind))
		t.text(8, string(c.Name))
		t.bytes(9, data)
		m.part(5, &t)
	}
	for field, ports := range [][]graph.Port{g.Inputs, g.Outputs} {
		for i := range ports {
			m.part(protowire.Number(11+field), portMessage(&ports[i]))
		}
	}
	return m
}

// portMessage returns a ValueInfoProto.
func portMessage(p *graph.Port) *message {
	var rows, columns, shape, tensor, kind message // Dimension, TensorShapeProto, Tensor, TypeProto
	rows.text(2, "samples")
	shape.part(1, &rows)
	if p.Columns > 0 {
		columns.number(1, int64(p.Columns))
		shape.part(1, &columns)
	}
	tensor.number(1, int64(p.Type))
	if p.Columns >= 0 {
		tensor.part(2, &shape)
	}
	kind.part(1, &tensor)
	m := new(message)
	m.text(1, string(p.Name))
	m.part(2, &kind)
	if p.Doc != "" {
		m.text(3, p.Doc)
	}
	return m
}

// nodeMessage returns a NodeProto.
func nodeMessage(n *graph.Node) *message {
	m := new(message)
	for _, v := range n.Inputs {
		m.text(1, string(v))
	}
	for _, v := range n.Outputs {
		m.text(2, string(v))
	}
	m.text(3, string(n.Outputs[0]))
	m.text(4, n.Op)
	for i := range n.Attributes {
		m.part(5, attributeMessage(&n.Attributes[i]))
	}
	if n.Domain != "" {
		m.text(7, n.Domain)
	}
	return m
}

// attributeMessage returns an AttributeProto. Field 20 is its type.
func attributeMessage(a *graph.Attribute) *message {
	m := new(message)
	m.text(1, a.Name)
	kind := 0
	switch v := a.Value.(type) {
	case int:
		kind = 2
		m.number(3, int64(v))
	case string:
		kind = 3
		m.text(4, v)
	case *graph.Graph:
		kind = 5
		m.part(6, graphMessage(v, a.Name))
	case []float32:
		kind = 6
		var packed []byte
		for _, x := range v {
			packed = protowire.AppendFixed32(packed, math.Float32bits(x))
		}
		m.bytes(7, packed)
	case []int:
		kind = 7
		var packed []byte
		for _, x := range v {
			packed = protowire.AppendVarint(packed, uint64(int64(x)))
		}
		m.bytes(8, packed)
	case []string:
		kind = 8
		for _, s := range v {
			m.text(9, s)
		}
	default:
		panic(fmt.Sprintf("export: an attribute is a %T", a.Value))
	}
	m.number(20, int64(kind))
	return m
}

// bytesOf returns the type of a constant and its elements, as files have them.
func bytesOf(c *graph.Constant) (graph.Type, []byte) {
	switch {
	case c.F32 != nil:
		return graph.Float32, num.Bytes32(c.F32)
	case c.F64 != nil:
		return graph.Float64, num.Bytes64(c.F64)
	}
	b := make([]byte, 0, 8*len(c.I64))
	for _, v := range c.I64 {
		for shift := range 8 {
			b = append(b, byte(v>>(8*shift)))
		}
	}
	return graph.Int64, b
}
