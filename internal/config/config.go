// Package config reads configuration files: YAML in which values of flags stand under
// their names, at the top for every command, or in a section of one. It knows no flags:
// it says what stands where.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a file: a YAML parser takes long over deep nesting.
const (
	MaxBytes    = 64 << 10
	maxBrackets = 200
	maxDepth    = 4
)

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
type Place struct{ Line, Column int }

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
	if len(b) > MaxBytes {
		return nil, s.Errorf(Place{}, "%d bytes; a configuration has at most %d", len(b), MaxBytes)
	}
	if n := bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")); n > maxBrackets {
		return nil, s.Errorf(Place{}, "%d brackets; a configuration has at most %d", n, maxBrackets)
	}
	root, err := s.tree(b)
	if err != nil || root == nil {
		return s, err
	}
	return s, s.fill(root.Values, 1)
}

// tree parses YAML and returns its only mapping, or nil for an empty file.
func (s *Section) tree(b []byte) (*ast.MappingNode, error) {
	parsed, err := parser.ParseBytes(b, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, s.Errorf(placeOf(syntax.GetToken()), "%s", oneLine(syntax.GetMessage()))
		}
		return nil, s.Errorf(Place{}, "not YAML: %s", oneLine(err.Error()))
	}
	var root ast.Node
	for _, doc := range parsed.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType:
		case root != nil:
			return nil, s.Errorf(placeOf(doc.Body.GetToken()), "a second document; a configuration is one")
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
	return nil, s.Errorf(placeOf(root.GetToken()), "a configuration is lines \"flag: value\", and sections of commands")
}

func (s *Section) fill(values []*ast.MappingValueNode, depth int) error {
	for _, n := range values {
		at := placeOf(n.Key.GetToken())
		name, ok := n.Key.(*ast.StringNode)
		if !ok {
			return s.Errorf(at, "a key is a plain word")
		}
		k := Key{Name: name.Value, Place: at, ValueAt: placeOf(n.Value.GetToken())}
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
			return s.Errorf(k.Place, "%s: commands do not go so deep", k.Name)
		}
		k.Section = &Section{File: s.File}
		return k.Section.fill(n.Values, depth+1)
	case *ast.SequenceNode:
		k.List = []string{}
		for _, one := range n.Values {
			text, ok := scalar(one)
			if !ok {
				return s.Errorf(placeOf(one.GetToken()), "%s: a list holds numbers, true, false or words", k.Name)
			}
			k.List = append(k.List, text)
		}
		return nil
	}
	text, ok := scalar(n)
	if !ok {
		return s.Errorf(k.Place, "%s: want a number, true, false, a word, or a list of these", k.Name)
	}
	k.Value = text
	return nil
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

func placeOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{}
	}
	return Place{t.Position.Line, t.Position.Column}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
