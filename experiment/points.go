package experiment

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/units"
)

// points lists the settings of a method in addition to the common settings, one list for each method of the table: the points of
// the grid or of the search, or else one empty list.
func (s *parser) points(r *Method, at map[string]entry) [][]param.Pair {
	grid, hasGrid := at["grid"]
	search, hasSearch := at["search"]
	switch {
	case hasGrid && hasSearch:
		s.fail(search.at, "search: the keys grid and search exclude each other: give one of them")
	case hasGrid:
		return s.grids(r, grid)
	case hasSearch:
		return s.search(r, search)
	}
	return [][]param.Pair{nil}
}

// grids lists the points of a grid, or of several in a list.
func (s *parser) grids(r *Method, e entry) (points [][]param.Pair) {
	list, several := e.value.(*ast.SequenceNode)
	if !several {
		before := len(s.mistakes)
		if points = s.grid(r, e); len(points) == 1 && points[0] == nil {
			s.lack(before, e.at, "grid: the grid is empty")
		}
		return points
	}
	for _, n := range s.sequence(e) {
		points = append(points, s.grid(r, entry{key: e.key, at: placeOf(n), valueAt: placeOf(n), value: n})...)
		if len(points) > MaxMethods {
			s.fail(placeOf(list), "grid: want at most %s points, got more", units.Count(MaxMethods))
		}
	}
	return points
}

// grid lists the points of one grid: each of its settings has a list of values, or a single one.
func (s *parser) grid(r *Method, e entry) [][]param.Pair {
	points, before := [][]param.Pair{nil}, len(s.mistakes)
	for _, axis := range s.mapping(e.value, "grid", nil) {
		var values []string
		if !s.try(func() { values = s.values(axis) }) {
			continue
		}
		if len(points)*len(values) > MaxMethods {
			s.fail(axis.at, "grid: want at most %s points, got more", units.Count(MaxMethods))
		}
		for _, v := range values {
			s.try(func() { s.check(r.Algorithm, axis, axis.key, v) })
		}
		if len(s.mistakes) > before {
			continue // the method is left out
		}
		var next [][]param.Pair
		for _, point := range points {
			for _, v := range values {
				next = append(next, slices.Concat(point, []param.Pair{{Key: axis.key, Value: v}}))
			}
		}
		points = next
	}
	return points
}

// values lists the texts of a list of values, or of the only one.
func (s *reader) values(e entry) []string {
	if _, list := e.value.(*ast.SequenceNode); list {
		return s.texts(e)
	}
	return []string{s.text(e)}
}
