package spec

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/yamltree"
)

// items returns the text of a list of items (param.FormatItems): each is a name, or a mapping
// with the name and settings of the item. Where the key takes no list, a list is no value.
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
