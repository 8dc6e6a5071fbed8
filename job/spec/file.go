package spec

import (
	"errors"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxBytes bounds a spec's text.
const MaxBytes = 16 << 10

var kind = yamltree.Kind{Name: "a spec", Bytes: MaxBytes, Brackets: 100,
	Looks: `must have lines "key: value", with values that are not lists or mappings`}

// Error is an error in a spec file, at a line and column (from 1); line 0: in the file as a
// whole.
type Error struct {
	File         string
	Line, Column int
	Reason       errtext.Text
}

// Error returns file:line:column and the reason, on one line.
func (e *Error) Error() string {
	_, text := e.Formed()
	return text.String()
}

// Formed implements errtext.Formed.
func (e *Error) Formed() (errtext.Code, errtext.Text) {
	if e.Line == 0 {
		return errtext.WrongSpec, errtext.Sprintf("%s: %s", e.File, e.Reason)
	}
	return errtext.WrongSpec, errtext.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// File is a spec that was read from a file.
type File struct {
	protocol.Spec
	name string
	keys map[string]yamltree.Place // the place of each value
}

// Parse reads a spec file. algorithm, unless empty, replaces the algorithm of the file. Parse
// checks every key and value except for what depends on the dataset; see Locate. Errors are
// *Error.
func Parse(name string, b []byte, algorithm string) (*File, error) {
	f := &File{name: name, keys: make(map[string]yamltree.Place)}
	root, fault := kind.Mapping(b)
	if fault != nil {
		return nil, f.errorAt(fault.Place, "%s", fault.Reason)
	}
	if root == nil {
		return f, nil
	}
	if err := f.fill(root.Values, algorithm); err != nil {
		return nil, err
	}
	return f, nil
}

// fill sets the keys: the algorithm first, since the other keys depend on it.
func (f *File) fill(values []*ast.MappingValueNode, algorithm string) error {
	texts, err := f.texts(values)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(texts, func(t text) bool { return t.key == "algorithm" }); at >= 0 {
		if err := f.set(texts[at]); err != nil {
			return err
		}
		texts = slices.Delete(texts, at, at+1)
	}
	if algorithm != "" {
		f.Algorithm = algorithm
	}
	for _, t := range texts {
		if err := f.set(t); err != nil {
			return err
		}
	}
	return nil
}

// text is one line of a spec: a key and the text of its value.
type text struct {
	key, value   string
	at, valuesAt yamltree.Place
	list         *ast.SequenceNode // the value instead of a text
}

func (f *File) texts(values []*ast.MappingValueNode) ([]text, error) {
	var texts []text
	seen := make(map[string]yamltree.Place)
	for _, n := range values {
		at := yamltree.PlaceOf(n.Key.GetToken())
		k, ok := n.Key.(*ast.StringNode)
		if !ok {
			return nil, f.errorAt(at, "found %s, want a plain word as key", kindOf(n.Key))
		}
		if first, ok := seen[k.Value]; ok {
			return nil, f.errorAt(at, "%s: the key occurs twice; the first is in line %d", k.Value, first.Line)
		}
		seen[k.Value] = at
		t := text{key: k.Value, at: at, valuesAt: yamltree.PlaceOf(n.Value.GetToken())}
		if t.value, ok = yamltree.Scalar(n.Value); !ok {
			if t.list, ok = n.Value.(*ast.SequenceNode); !ok {
				return nil, f.notValue(at, k.Value, n.Value)
			}
		}
		texts = append(texts, t)
	}
	return texts, nil
}

func (f *File) notValue(at yamltree.Place, key string, n ast.Node) *Error {
	return f.errorAt(at, "%s: found %s, want a number, true, false or a word", key, kindOf(n))
}

func (f *File) set(t text) error {
	f.keys[t.key] = t.valuesAt
	if t.list != nil {
		value, err := f.items(t)
		if err != nil {
			return err
		}
		t.value = value
	}
	err := Set(&f.Spec, t.key, t.value)
	if err == nil {
		return nil
	}
	var p *param.Error
	if errors.As(err, &p) && !f.known(t.key) {
		f.keys[t.key] = t.at
	}
	return f.Locate(err)
}

func (f *File) known(name string) bool {
	_, err := setting(f.Algorithm, name)
	return err == nil || slices.ContainsFunc(common, func(k key) bool { return k.Name == name })
}

// Locate adds the file, line and column to an error about one of the file's
// values, such as Resolve returns; other errors are returned as they are.
func (f *File) Locate(err error) error {
	var p *param.Error
	if !errors.As(err, &p) {
		return err
	}
	at, ok := f.keys[p.Name]
	if !ok {
		return err
	}
	return f.errorAt(at, "%s", p.Error())
}

func (f *File) errorAt(at yamltree.Place, format string, args ...any) *Error {
	return &Error{File: f.name, Line: at.Line, Column: at.Column, Reason: errtext.Sprintf(format, args...)}
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

// items returns the text of a list of items (param.FormatItems): each is a name, or a mapping
// with the name and settings of the item. If the key takes no list, a list is no value.
func (f *File) items(t text) (string, error) {
	p, err := setting(f.Algorithm, t.key)
	if err != nil || p.ItemKey == "" {
		return "", f.notValue(t.at, t.key, t.list)
	}
	var items []param.Item
	for _, n := range t.list.Values {
		item, err := f.item(p, n)
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return "", f.errorAt(t.at, "%s: the list is empty", t.key)
	}
	return param.FormatItems(items), nil
}

func (f *File) item(p *param.Param, n ast.Node) (item param.Item, err error) {
	at := yamltree.PlaceOf(n.GetToken())
	if name, ok := yamltree.Scalar(n); ok {
		return param.Item{Name: name}, nil
	}
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return item, f.errorAt(at, "%s: found %s, want a name or a mapping with the key %s", p.Name, kindOf(n), p.ItemKey)
	}
	texts, err := f.texts(values)
	if err != nil {
		return item, err
	}
	named := false
	for _, t := range texts {
		switch {
		case t.list != nil:
			return item, f.notValue(t.at, t.key, t.list)
		case t.key == p.ItemKey:
			item.Name, named = t.value, true
		default:
			item.Set = append(item.Set, param.Pair{Key: t.key, Value: t.value})
		}
	}
	if !named {
		return item, f.errorAt(at, "%s: the mapping must have the key %s", p.Name, p.ItemKey)
	}
	return item, nil
}
