// Package yamltree parses YAML files that are one mapping, as job specs and
// configurations are, and says what is wrong with others and where.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Place is a line and a column, from 1; zero: nowhere in particular.
type Place struct{ Line, Column int }

// PlaceOf returns where a token stands.
func PlaceOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{}
	}
	return Place{t.Position.Line, t.Position.Column}
}

// Fault is what is wrong with a file, and where.
type Fault struct {
	Place
	Reason string
}

// Kind is a kind of file: its name in faults, its bounds (a YAML parser takes long over
// deep nesting), and what it looks like, for one that looks otherwise.
type Kind struct {
	Name            string // "a spec"
	Bytes, Brackets int
	Looks           string
}

// Mapping parses a file and returns its mapping; nil where the file is empty.
func (k *Kind) Mapping(b []byte) (*ast.MappingNode, *Fault) {
	if len(b) > k.Bytes {
		return nil, fault(nil, "the file has %d bytes, but %s has at most %d", len(b), k.Name, k.Bytes)
	}
	if n := bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")); n > k.Brackets {
		return nil, fault(nil, "the file has %d brackets, which is too many; %s %s", n, k.Name, k.Looks)
	}
	tokens := lexer.Tokenize(string(b))
	if at := tooLong(tokens); at != nil {
		return nil, fault(at, "the keys up to here are too long or too deeply nested; %s %s", k.Name, k.Looks)
	}
	parsed, err := parser.Parse(tokens, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, fault(syntax.GetToken(), "%s", oneLine(syntax.GetMessage()))
		}
		return nil, fault(nil, "the file is not valid YAML: %s", oneLine(err.Error()))
	}
	return k.only(parsed)
}

// only returns the mapping of the only document that is not empty.
func (k *Kind) only(file *ast.File) (*ast.MappingNode, *Fault) {
	var root ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType:
		case root != nil:
			return nil, fault(doc.Body.GetToken(), "the file has a second YAML document; %s is a single document", k.Name)
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
	return nil, fault(root.GetToken(), "%s %s", k.Name, k.Looks)
}

func fault(at *token.Token, format string, args ...any) *Fault {
	return &Fault{PlaceOf(at), fmt.Sprintf(format, args...)}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Scalar returns the text of a plain or quoted value; of anything else, false.
func Scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// maxPaths bounds the bytes of the paths of all nodes. The parser keeps a path with each node, so some kilobytes of
// deep nesting or long keys would take gigabytes.
const maxPaths = 32 << 20

// level is a key, an entry of a list, or a bracket, as a part of paths.
type level struct {
	column, bytes  int
	entry, bracket bool
}

// indexBytes is about the length of the number of a list's entry in a path.
const indexBytes = 8

// tooLong returns the token at which the paths of the nodes exceed maxPaths, or nil.
func tooLong(tokens token.Tokens) *token.Token {
	var open []level
	path, all, brackets := 0, 0, 0
	closeWhile := func(inner func(l *level) bool) {
		for n := len(open); n > 0 && inner(&open[n-1]); n-- {
			path -= open[n-1].bytes
			open = open[:n-1]
		}
	}
	push := func(l level) { open, path = append(open, l), path+l.bytes }
	line, begins := 0, 0 // the column at which the key begins, with its tag
	for i, t := range tokens {
		at := t.Position
		if at == nil {
			continue
		}
		if at.Line != line || tokens[i-1].Type == token.SequenceEntryType {
			line, begins = at.Line, at.Column
		}
		switch {
		case t.Type == token.SequenceStartType || t.Type == token.MappingStartType:
			brackets++
			push(level{bytes: indexBytes, bracket: true})
		case t.Type == token.SequenceEndType || t.Type == token.MappingEndType:
			closeWhile(func(l *level) bool { return !l.bracket })
			if n := len(open); n > 0 {
				brackets, path, open = brackets-1, path-open[n-1].bytes, open[:n-1]
			}
		case t.Type == token.CollectEntryType:
			closeWhile(func(l *level) bool { return !l.bracket })
		case t.Type == token.SequenceEntryType:
			if brackets == 0 {
				closeWhile(func(l *level) bool { return l.column > at.Column || l.column == at.Column && l.entry })
			}
			push(level{column: at.Column, bytes: indexBytes, entry: true})
		case i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType:
			if brackets == 0 {
				closeWhile(func(l *level) bool { return l.column >= begins })
			}
			push(level{column: begins, bytes: len(t.Value) + 1})
		}
		if all += path; all > maxPaths {
			return t
		}
	}
	return nil
}
