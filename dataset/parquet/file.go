// Package parquet reads and writes Parquet files of flat tables. It decodes a page of each chosen column at a time, so
// that memory does not grow with the rows of a file, and it trusts no length that a file claims.
//
// The container, the levels and the encodings of values are decoded here, because github.com/parquet-go/parquet-go
// allocates what a damaged footer claims. Snappy, zstd and Brotli are decoded by libraries.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// magic is at the beginning and at the end of each file. A file with an encrypted footer has magicEncrypted.
const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
)

// physical is how values of a column are stored.
type physical int32

const (
	physicalBool  physical = 0
	physicalInt32 physical = 1
	physicalInt64 physical = 2
	physicalInt96 physical = 3
	physicalFloat physical = 4
	physicalReal  physical = 5
	physicalBytes physical = 6
	physicalFixed physical = 7
)

// Kind is what the values of a column are.
type Kind uint8

// The kinds of columns.
const (
	Unreadable Kind = iota // Column.Why says why
	Bool
	Int
	Uint
	Float
	Half
	Double
	Decimal
	Text
	UUID
	Nothing // all values are missing
)

// Column is a column of a file.
type Column struct {
	Name string // of a field of a struct: with points between names
	Kind Kind
	Why  string // what an Unreadable column has, such as "timestamps"
	List bool   // each value is a list
	// Width is the number of items of each list, as the first list of the file has; 1 for other columns.
	Width int

	physical       physical
	size           int // of a value of physicalFixed, in bytes
	scale          int // of a Decimal
	maxDef, maxRep int
	itemDef        int // the definition level from which a list has an item
	leaf           int // its number among the columns of row groups
	nullList       int // the definition level below which a list is missing
}

// IsNumber reports whether the values are numbers or bools.
func (c *Column) IsNumber() bool { return c.Kind >= Bool && c.Kind <= Decimal || c.Kind == Nothing }

// chunk is a column of a row group.
type chunk struct {
	from, size int64
	values     int64
	codec      int32
	physical   physical
}

// group is a row group.
type group struct {
	rows   int64
	chunks []chunk // by leaf
}

// File is an open file.
type File struct {
	Columns []Column
	Rows    int64
	// Index is the name of the column in which pandas wrote an index without a name; empty: there is none.
	Index string

	in     io.ReaderAt
	size   int64
	groups []group
	leaves int
}

// readMetadata reads the metadata of a file of size bytes.
func readMetadata(in io.ReaderAt, size int64) (*File, error) {
	f := &File{in: in, size: size}
	const ends = 12 // a magic at both ends and a length
	if size < ends {
		return nil, errDamaged("a Parquet file has at least %d bytes", ends)
	}
	var tail [8]byte
	if err := readAt(in, tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case magic:
	case magicEncrypted:
		return nil, fmt.Errorf("the file is encrypted and cannot be read: write it without encryption: %w", ErrFormat)
	default:
		return nil, errDamaged("the file does not end as a Parquet file does: it is cut or no Parquet file")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-ends {
		return nil, errDamaged("the metadata has %d bytes, more than the file", n)
	}
	b := make([]byte, n)
	if err := readAt(in, b, size-8-n); err != nil {
		return nil, err
	}
	if err := f.decode(b); err != nil {
		return nil, err
	}
	if err := f.check(size - 8 - n); err != nil {
		return nil, err
	}
	return f, nil
}

// readAt fills b. The end of the file is an error.
func readAt(in io.ReaderAt, b []byte, at int64) error {
	n, err := in.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errDamaged("the file ends early")
	}
	return err
}

// element is a node of the schema.
type element struct {
	name              string
	kind              physical
	leaf              bool // it has a type
	size, children    int
	repetition        int32 // 0: required, 1: optional, 2: repeated
	converted         int32 // -1: none
	scale, precision  int32
	logical           int16 // the field of the union that is set; 0: none
	bits              int8
	signed, hasSigned bool
}

// decode decodes the metadata.
func (f *File) decode(b []byte) error {
	r := &thriftReader{b: b}
	var schema []element
	encrypted := false
	r.fields(func(id int16, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			r.list(thriftStruct, func() { schema = append(schema, decodeElement(r)) })
		case id == 3 && kind == thriftI64:
			f.Rows = r.int()
		case id == 4 && kind == thriftList:
			r.list(thriftStruct, func() { f.groups = append(f.groups, decodeGroup(r)) })
		case id == 5 && kind == thriftList:
			r.list(thriftStruct, func() { f.decodeKey(r) })
		case id == 8:
			encrypted = true
			r.skip(kind)
		default:
			r.skip(kind)
		}
	})
	switch {
	case r.err != nil:
		return r.err
	case encrypted:
		return fmt.Errorf("columns of the file are encrypted and cannot be read: write it without encryption: %w", ErrFormat)
	case len(schema) == 0:
		return errDamaged("the file has no schema")
	}
	w := schemaReader{file: f, rest: schema[1:]}
	for range schema[0].children {
		if err := w.node("", level{}); err != nil {
			return err
		}
	}
	if len(w.rest) > 0 {
		return errDamaged("the schema has more columns than its root")
	}
	f.leaves = w.leaves
	return nil
}

// decodeKey reads a key of the metadata with its value.
func (f *File) decodeKey(r *thriftReader) {
	var key, value []byte
	r.fields(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			key = r.bytes()
		case id == 2 && kind == thriftBinary:
			value = r.bytes()
		default:
			r.skip(kind)
		}
	})
	const unnamed = "__index_level_0__"
	if string(key) == "pandas" && strings.Contains(string(value), `"`+unnamed+`"`) {
		f.Index = unnamed
	}
}

func decodeElement(r *thriftReader) element {
	e := element{converted: -1}
	r.fields(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			e.kind, e.leaf = physical(r.int32()), true
		case id == 2 && kind == thriftI32:
			e.size = int(r.int32())
		case id == 3 && kind == thriftI32:
			e.repetition = r.int32()
		case id == 4 && kind == thriftBinary:
			e.name = string(r.bytes())
		case id == 5 && kind == thriftI32:
			e.children = int(r.int32())
		case id == 6 && kind == thriftI32:
			e.converted = r.int32()
		case id == 7 && kind == thriftI32:
			e.scale = r.int32()
		case id == 8 && kind == thriftI32:
			e.precision = r.int32()
		case id == 10 && kind == thriftStruct:
			e.decodeLogical(r)
		default:
			r.skip(kind)
		}
	})
	return e
}

// The fields of the union of logical types.
const (
	logicalString  = 1
	logicalMap     = 2
	logicalList    = 3
	logicalEnum    = 4
	logicalDecimal = 5
	logicalDate    = 6
	logicalTime    = 7
	logicalStamp   = 8
	logicalInteger = 10
	logicalNothing = 11
	logicalJSON    = 12
	logicalBSON    = 13
	logicalUUID    = 14
	logicalHalf    = 15
)

func (e *element) decodeLogical(r *thriftReader) {
	r.fields(func(id int16, kind byte) {
		if e.logical = id; kind != thriftStruct {
			r.skip(kind)
			return
		}
		r.fields(func(field int16, kind byte) {
			switch {
			case id == logicalDecimal && field == 1 && kind == thriftI32:
				e.scale = r.int32()
			case id == logicalInteger && field == 1 && kind == thriftByte:
				e.bits = int8(r.byte())
			case id == logicalInteger && field == 2 && (kind == thriftTrue || kind == thriftFalse):
				e.signed, e.hasSigned = kind == thriftTrue, true
			default:
				r.skip(kind)
			}
		})
	})
}

func decodeGroup(r *thriftReader) (g group) {
	r.fields(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftList:
			r.list(thriftStruct, func() { g.chunks = append(g.chunks, decodeChunk(r)) })
		case id == 3 && kind == thriftI64:
			g.rows = r.int()
		default:
			r.skip(kind)
		}
	})
	return g
}

func decodeChunk(r *thriftReader) (c chunk) {
	var data, dictionary int64
	r.fields(func(id int16, kind byte) {
		switch {
		case id == 1: // the path of another file
			c.codec = -1
			r.skip(kind)
		case id == 3 && kind == thriftStruct:
			r.fields(func(id int16, kind byte) {
				switch {
				case id == 1 && kind == thriftI32:
					c.physical = physical(r.int32())
				case id == 4 && kind == thriftI32:
					c.codec = r.int32()
				case id == 5 && kind == thriftI64:
					c.values = r.int()
				case id == 7 && kind == thriftI64:
					c.size = r.int()
				case id == 9 && kind == thriftI64:
					data = r.int()
				case id == 11 && kind == thriftI64:
					dictionary = r.int()
				default:
					r.skip(kind)
				}
			})
		default:
			r.skip(kind)
		}
	})
	if c.from = data; dictionary > 0 && dictionary < data {
		c.from = dictionary
	}
	return c
}

// level is where in the schema a node is.
type level struct {
	def, rep int
	depth    int
	list     bool   // in a list whose items are next
	itemDef  int    // see Column
	nullList int    // see Column
	why      string // why nothing below can be read
}

// schemaReader makes columns of the nodes of a schema.
type schemaReader struct {
	file   *File
	rest   []element
	leaves int
}

// node reads the next node with everything below it.
func (w *schemaReader) node(prefix string, at level) error {
	if len(w.rest) == 0 {
		return errDamaged("the schema ends early")
	}
	e := w.rest[0]
	w.rest = w.rest[1:]
	name := e.name
	if prefix != "" {
		name = prefix + "." + e.name
	}
	if at.depth++; at.depth > maxDepth {
		return errDamaged("the columns of the schema are too deep")
	}
	before := at.def
	switch e.repetition {
	case 0:
	case 1:
		at.def++
	case 2:
		if at.def, at.rep = at.def+1, at.rep+1; at.rep > 1 {
			at.why = "lists of lists"
		}
		at.itemDef, at.nullList = at.def, before
	default:
		return errDamaged("column %.100q of the schema has the repetition %d", name, e.repetition)
	}
	if e.leaf {
		return w.leaf(name, &e, at)
	}
	if e.children <= 0 || e.children > len(w.rest) {
		return errDamaged("the group %.100q of the schema has %d columns", name, e.children)
	}
	switch {
	case e.logical == logicalMap || e.converted == 1 || e.converted == 2:
		at.why = "maps"
	case e.logical == logicalList || e.converted == 3:
		// the items of a list are below a repeated group: NAME.list.element
		if at.list && at.why == "" {
			at.why = "lists of lists"
		}
		if e.children == 1 && len(w.rest) > 0 && w.rest[0].repetition == 2 {
			at.list = true
			return w.items(name, at)
		}
	case at.rep > 0 && at.why == "":
		at.why = "lists of structs"
	}
	for range e.children {
		if err := w.node(name, at); err != nil {
			return err
		}
	}
	return nil
}

// items reads the repeated node of a list, and names what is below as the list.
func (w *schemaReader) items(name string, at level) error {
	e := &w.rest[0]
	if e.leaf || e.children != 1 {
		if e.name = ""; !e.leaf && at.why == "" {
			at.why = "lists of structs"
		}
		return w.renamed(name, at)
	}
	before := at.def
	if at.def, at.rep = at.def+1, at.rep+1; at.rep > 1 && at.why == "" {
		at.why = "lists of lists"
	}
	at.itemDef, at.nullList = at.def, before
	w.rest = w.rest[1:]
	if len(w.rest) == 0 {
		return errDamaged("the schema ends early")
	}
	if at.depth++; at.depth > maxDepth {
		return errDamaged("the columns of the schema are too deep")
	}
	return w.renamed(name, at)
}

// renamed reads the next node under another name.
func (w *schemaReader) renamed(name string, at level) error {
	w.rest[0].name = name
	return w.node("", at)
}

// leaf adds a column.
func (w *schemaReader) leaf(name string, e *element, at level) error {
	c := Column{Name: name, List: at.rep > 0, Width: 1, physical: e.kind, size: e.size, scale: int(e.scale),
		maxDef: at.def, maxRep: at.rep, itemDef: at.itemDef, nullList: at.nullList, leaf: w.leaves}
	if c.Kind, c.Why = e.kindOf(); at.why != "" {
		c.Kind, c.Why = Unreadable, at.why
	}
	if c.List && c.Kind != Unreadable && !c.IsNumber() {
		c.Kind, c.Why = Unreadable, "lists of texts"
	}
	if e.kind == physicalFixed && (e.size < 1 || e.size > maxText) {
		return errDamaged("column %.100q of the schema has values of %d bytes", name, e.size)
	}
	if w.leaves++; w.leaves > maxColumns {
		return errDamaged("the schema has more than %d columns", maxColumns)
	}
	w.file.Columns = append(w.file.Columns, c)
	return nil
}

// kindOf returns what the values of a leaf are, and why they cannot be read.
func (e *element) kindOf() (Kind, string) {
	switch {
	case e.logical == logicalNothing:
		return Nothing, ""
	case e.logical == logicalStamp || e.converted == 9 || e.converted == 10 || e.kind == physicalInt96:
		return Unreadable, "timestamps"
	case e.logical == logicalDate || e.converted == 6:
		return Unreadable, "dates"
	case e.logical == logicalTime || e.converted == 7 || e.converted == 8:
		return Unreadable, "times"
	case e.logical == logicalBSON || e.converted == 20:
		return Unreadable, "BSON documents"
	case e.converted == 21:
		return Unreadable, "intervals of time"
	case e.logical == logicalDecimal || e.converted == 5:
		switch {
		case e.scale < 0 || e.scale > 400 || e.kind == physicalBool || e.kind == physicalFloat || e.kind == physicalReal:
			return Unreadable, "decimals with an unknown scale"
		}
		return Decimal, ""
	}
	switch e.kind {
	case physicalBool:
		return Bool, ""
	case physicalInt32, physicalInt64:
		if e.hasSigned && !e.signed || e.converted >= 11 && e.converted <= 14 {
			return Uint, ""
		}
		return Int, ""
	case physicalFloat:
		return Float, ""
	case physicalReal:
		return Double, ""
	case physicalBytes:
		return Text, ""
	case physicalFixed:
		switch {
		case e.logical == logicalHalf && e.size == 2:
			return Half, ""
		case e.logical == logicalUUID && e.size == 16:
			return UUID, ""
		case e.logical == logicalString || e.converted == 0 || e.logical == logicalEnum || e.converted == 4:
			return Text, ""
		}
		return Unreadable, "bytes that are no text"
	}
	return Unreadable, fmt.Sprintf("values of the unknown type %d", e.kind)
}

// check compares the row groups with the schema and with the bytes of the file before end.
func (f *File) check(end int64) error {
	if len(f.Columns) == 0 {
		return errDamaged("the file has no columns")
	}
	rows, values, most := int64(0), int64(0), max(freeValues, maxValues*f.size)
	for i := range f.groups {
		g := &f.groups[i]
		if len(g.chunks) != f.leaves {
			return errDamaged("row group %d has %d columns, want %d", i, len(g.chunks), f.leaves)
		}
		if g.rows < 0 || g.rows > math.MaxInt64-rows {
			return errDamaged("row group %d has %d rows", i, g.rows)
		}
		rows += g.rows
		for k := range g.chunks {
			c, column := &g.chunks[k], &f.Columns[k]
			switch {
			case c.codec < 0:
				return errDamaged("column %.100q of row group %d is in another file", column.Name, i)
			case c.physical != column.physical:
				return errDamaged("column %.100q of row group %d has values of type %d, want %d", column.Name, i, c.physical,
					column.physical)
			case c.from < int64(len(magic)) || c.size < 0 || c.from > end || c.size > end-c.from:
				return errDamaged("column %.100q of row group %d is not in the file: %d bytes from byte %d", column.Name, i,
					c.size, c.from)
			case c.values < 0 || !column.List && c.values != g.rows || c.values < g.rows:
				return errDamaged("column %.100q of row group %d has %d values for %d rows", column.Name, i, c.values, g.rows)
			}
			if c.values > most-values {
				return fmt.Errorf("the file has more than %d values and more than %d for each of its bytes: %w", freeValues,
					maxValues, ErrFormat)
			}
			values += c.values
			// What older writers leave out of the size, as Arrow does.
			const padding = 100
			c.size = min(c.size+padding, end-c.from)
		}
	}
	if rows != f.Rows {
		return errDamaged("the row groups have %d rows, the file says %d", rows, f.Rows)
	}
	return nil
}

// mostUnpacked bounds the bytes of the pages in memory.
func (f *File) mostUnpacked() int64 { return max(freeUnpacked, maxRatio*f.size) }
