package yamltree

import "github.com/goccy/go-yaml/token"

// maxPaths bounds the bytes of the paths of all nodes. The parser keeps a path with each node, so some kilobytes of deep
// nesting or long keys would take gigabytes.
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
