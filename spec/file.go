package spec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of a spec's text: a YAML parser takes long over deep nesting, and a
// spec has none.
const (
	MaxBytes    = 16 << 10
	maxBrackets = 100
)

// Error is a fault in a spec file, at the line and column (from 1) where it
// stands. Line 0: nowhere in particular.
type Error struct {
	File         string
	Line, Column int
	Reason       string
}

// Error returns file:line:column and the reason, on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// File is a spec that was read from a file.
type File struct {
	protocol.Spec
	name string
	keys map[string]place // where a value stands
}

type place struct{ line, column int }

// Parse reads a spec file. algorithm, where not empty, stands in for the one that
// the file names. Every key and value is checked but for what depends on the
// dataset; see Locate. Errors are *Error.
func Parse(name string, b []byte, algorithm string) (*File, error) {
	f := &File{name: name, keys: make(map[string]place)}
	if len(b) > MaxBytes {
		return nil, f.errorAt(place{}, "%d bytes; a spec has at most %d", len(b), MaxBytes)
	}
	if n := bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")); n > maxBrackets {
		return nil, f.errorAt(place{}, "%d brackets; a spec is a list of lines \"key: value\" without lists or mappings in them", n)
	}
	root, err := f.tree(b)
	if err != nil || root == nil {
		return f, err
	}
	if err := f.fill(root.Values, algorithm); err != nil {
		return nil, err
	}
	return f, nil
}

// tree parses YAML and returns its only mapping, or nil for an empty file.
func (f *File) tree(b []byte) (*ast.MappingNode, error) {
	parsed, err := parser.ParseBytes(b, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, f.errorAt(placeOf(syntax.GetToken()), "%s", oneLine(syntax.GetMessage()))
		}
		return nil, f.errorAt(place{}, "not YAML: %s", oneLine(err.Error()))
	}
	var root ast.Node
	for _, doc := range parsed.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType:
		case root != nil:
			return nil, f.errorAt(placeOf(doc.Body.GetToken()), "a second document; a spec is one")
		default:
			root = doc.Body
		}
	}
	switch n := root.(type) {
	case nil:
		return nil, nil
	case *ast.MappingNode:
		return n, nil
	}
	return nil, f.errorAt(placeOf(root.GetToken()), "a spec is a list of lines \"key: value\"")
}

// fill takes the keys over: the algorithm first, since it says which others there
// are.
func (f *File) fill(values []*ast.MappingValueNode, algorithm string) error {
	texts, err := f.texts(values)
	if err != nil {
		return err
	}
	for _, t := range texts {
		if t.key == "algorithm" {
			if err := f.set(t); err != nil {
				return err
			}
		}
	}
	if algorithm != "" {
		f.Algorithm = algorithm
	}
	for _, t := range texts {
		if t.key == "algorithm" {
			continue
		}
		if err := f.set(t); err != nil {
			return err
		}
	}
	return nil
}

// text is one line of a spec: a key and the text of its value.
type text struct {
	key, value   string
	at, valuesAt place
}

func (f *File) texts(values []*ast.MappingValueNode) ([]text, error) {
	var texts []text
	seen := make(map[string]place)
	for _, n := range values {
		at := placeOf(n.Key.GetToken())
		k, ok := n.Key.(*ast.StringNode)
		if !ok {
			return nil, f.errorAt(at, "a key is a plain word, not %s", kindOf(n.Key))
		}
		if first, ok := seen[k.Value]; ok {
			return nil, f.errorAt(at, "%s: given a second time; the first is in line %d", k.Value, first.line)
		}
		seen[k.Value] = at
		value, ok := scalar(n.Value)
		if !ok {
			return nil, f.errorAt(at, "%s: %s is not a value; a value is a number, true, false or a word", k.Value, kindOf(n.Value))
		}
		texts = append(texts, text{k.Value, value, at, placeOf(n.Value.GetToken())})
	}
	return texts, nil
}

func (f *File) set(t text) error {
	f.keys[t.key] = t.valuesAt
	err := Set(&f.Spec, t.key, t.value)
	if err == nil {
		return nil
	}
	var p *algorithms.ParamError
	if errors.As(err, &p) && !f.known(t.key) {
		f.keys[t.key] = t.at
	}
	return f.Locate(err)
}

func (f *File) known(name string) bool {
	for _, k := range common {
		if k.Name == name {
			return true
		}
	}
	_, err := setting(f.Algorithm, name)
	return err == nil
}

// Locate adds the file, line and column to an error about one of the file's
// values, such as Resolve returns; other errors are returned as they are.
func (f *File) Locate(err error) error {
	var p *algorithms.ParamError
	if !errors.As(err, &p) {
		return err
	}
	at, ok := f.keys[p.Name]
	if !ok {
		return err
	}
	return f.errorAt(at, "%s", p.Error())
}

func (f *File) errorAt(at place, format string, args ...any) *Error {
	return &Error{File: f.name, Line: at.line, Column: at.column, Reason: fmt.Sprintf(format, args...)}
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{t.Position.Line, t.Position.Column}
}

// scalar returns the text of a plain or quoted value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.LiteralNode:
		return "a block of text"
	}
	return "this"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
