// Package config reads configuration files: YAML in which values of flags stand under
// their names, at the top for every command, or in a section of one. It knows no flags:
// it says what stands where.
package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/internal/yamltree"
)

// The bounds of a file.
const (
	MaxBytes = 64 << 10
	maxDepth = 4
)

var kind = yamltree.Kind{Name: "a configuration", Bytes: MaxBytes, Brackets: 200,
	Looks: `consists of lines "flag: value" and of sections for commands`}

// Error is a fault in a file, at the line and column (from 1) where it stands. Line 0:
// nowhere in particular.
type Error struct {
	File string
	Place
	Reason string
}

// Error returns file:line:column and the reason, on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Place is a position in a file.
type Place = yamltree.Place

// Section is a list of keys, in the order of the file; none is there twice.
type Section struct {
	File string
	Keys []Key
}

// Key is a name with one value, a list of values, or a section; exactly one of these is
// there.
type Key struct {
	Name string
	Place
	Value   string
	List    []string
	Section *Section

	ValueAt Place
}

// Errorf returns an *Error at a key.
func (s *Section) Errorf(at Place, format string, args ...any) error {
	return &Error{s.File, at, fmt.Sprintf(format, args...)}
}

// Get returns the key of a name, or nil.
func (s *Section) Get(name string) *Key {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return &s.Keys[i]
		}
	}
	return nil
}

// Parse reads a file. Errors are *Error.
func Parse(name string, b []byte) (*Section, error) {
	s := &Section{File: name}
	root, fault := kind.Mapping(b)
	if fault != nil {
		return nil, s.Errorf(fault.Place, "%s", fault.Reason)
	}
	if root == nil {
		return s, nil
	}
	return s, s.fill(root.Values, 1)
}

func (s *Section) fill(values []*ast.MappingValueNode, depth int) error {
	for _, n := range values {
		at := yamltree.PlaceOf(n.Key.GetToken())
		name, ok := n.Key.(*ast.StringNode)
		if !ok {
			return s.Errorf(at, "every key must be a plain word")
		}
		k := Key{Name: name.Value, Place: at, ValueAt: yamltree.PlaceOf(n.Value.GetToken())}
		if err := s.value(&k, n.Value, depth); err != nil {
			return err
		}
		s.Keys = append(s.Keys, k)
	}
	return nil
}

func (s *Section) value(k *Key, n ast.Node, depth int) error {
	switch n := n.(type) {
	case *ast.MappingNode:
		if depth == maxDepth {
			return s.Errorf(k.Place, "%s: the section is nested deeper than any command", k.Name)
		}
		k.Section = &Section{File: s.File}
		return k.Section.fill(n.Values, depth+1)
	case *ast.SequenceNode:
		k.List = []string{}
		for _, one := range n.Values {
			text, ok := yamltree.Scalar(one)
			if !ok {
				return s.Errorf(yamltree.PlaceOf(one.GetToken()), "%s: a list can hold only numbers, true, false or words", k.Name)
			}
			k.List = append(k.List, text)
		}
		return nil
	}
	text, ok := yamltree.Scalar(n)
	if !ok {
		return s.Errorf(k.Place, "%s: want a number, true, false, a word, or a list of these", k.Name)
	}
	k.Value = text
	return nil
}
