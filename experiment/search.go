package experiment

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

var searchKeys = []string{"draws", "seed", "space"}

// axis is a setting with drawn values.
type axis struct {
	key string
	// value returns the value of a number from 0 to below 1.
	value  func(u float64) string
	values float64 // no fewer than the number of values
}

// search draws points at random: from each axis a value by the seed, the setting's name and the number
// of the draw alone. So another axis changes no values of this one, and more draws begin with the
// same. A draw that gives the same values as one before is passed over.
func (s *parser) search(r *Method, e entry) (points [][]param.Pair) {
	draws, seed, space, before := int64(0), s.Seed, entry{}, len(s.mistakes)
	for _, x := range s.mapping(e.value, "search", searchKeys) {
		switch x.key {
		case "draws":
			draws = s.number(x, 1, MaxMethods)
		case "seed":
			seed = s.seed(x)
		case "space":
			space = x
		}
	}
	if draws == 0 || space.value == nil {
		s.lack(before, e.at, "search: the keys draws (the number of points) and space (the values of each setting) are required")
	}
	axes := s.space(r, space)
	size := 1.0
	for _, a := range axes {
		size = min(size*a.values, MaxMethods)
	}
	if size < float64(draws) {
		s.fail(space.at, "search: space is too small: it has at most %s different points, want %s draws; numbers are rounded to %d digits", units.Count(int64(size)), units.Count(draws), digits)
	}
	most := max(20*draws, min(100*draws, 100_000)) // all points of a space of n are drawn after about n log n tries
	seen := make(map[string]bool)
	for n := int64(0); int64(len(points)) < draws; n++ {
		if n == most {
			s.fail(space.at, "search: space is too small: %s tries gave %s different points, want %s draws", units.Count(n), units.Count(len(points)), units.Count(draws))
		}
		goOn(s.ctx)
		var point []param.Pair
		for _, a := range axes {
			u := num.NewStream(num.NewKey(seed, "experiment/search/"+a.key), uint64(n), 0).Float64()
			point = append(point, param.Pair{Key: a.key, Value: a.value(u)})
		}
		if name := methodName("", point); !seen[name] {
			seen[name], points = true, append(points, point)
		}
	}
	return points
}

// space reads the axes of a search.
func (s *parser) space(r *Method, e entry) (axes []axis) {
	list := s.mapping(e.value, "space", nil)
	if len(list) == 0 {
		s.fail(e.at, "space: the space is empty")
	}
	ok := true
	for _, x := range list {
		ok = s.try(func() {
			if _, words := x.value.(*ast.SequenceNode); !words {
				axes = append(axes, s.interval(r, x))
				return
			}
			values := s.texts(x)
			for _, v := range values {
				s.check(r.Algorithm, x, x.key, v)
			}
			axes = append(axes, axis{x.key, func(u float64) string { return values[int(float64(u*float64(len(values))))] }, float64(len(values))})
		}) && ok
	}
	if !ok {
		panic(mistake{})
	}
	return axes
}

// intervalKeys are the ways to draw from an interval.
var intervalKeys = []string{"real", "log", "int"}

// interval is an axis of numbers between two: real, evenly; log, evenly in their logarithm; int, whole
// ones, each as likely.
func (s *parser) interval(r *Method, e entry) axis {
	ways := s.mapping(e.value, e.key, intervalKeys)
	if len(ways) != 1 {
		s.fail(e.at, "%s: want a list of values, or one of the keys %s with two bounds", e.key, strings.Join(intervalKeys, ", "))
	}
	way := ways[0]
	ends := s.texts(way)
	if len(ends) != 2 {
		s.fail(way.at, "%s: %s: want two numbers, the lower and the upper bound", e.key, way.key)
	}
	whole := way.key == "int"
	if a, err := registry.Find(r.Algorithm); err == nil {
		whole = whole || slices.ContainsFunc(a.Params(), func(p param.Param) bool { return p.Name == e.key && p.Kind == param.KindInt })
	}
	var bounds [2]float64
	for i, end := range ends {
		at := entry{key: e.key, at: e.at, valueAt: placeOf(s.sequence(way)[i])}
		v, err := parseNumber(end)
		if err != nil || whole && v != float64(int64(v)) {
			s.fail(at.valueAt, "%s: %q is not a number, or not a whole number if the setting needs one", e.key, end)
		}
		s.check(r.Algorithm, at, e.key, end)
		bounds[i] = v
	}
	low, high := bounds[0], bounds[1]
	switch {
	case !(low < high):
		s.fail(way.valueAt, "%s: the lower bound %s is not below the upper bound %s", e.key, ends[0], ends[1])
	case way.key == "log" && low <= 0:
		s.fail(way.valueAt, "%s: the lower bound %s of a logarithmic range is not above 0", e.key, ends[0])
	}
	return axis{e.key, between(way.key, low, high, whole), valuesBetween(low, high, whole)}
}

// valuesBetween returns no fewer than the number of values that between makes.
func valuesBetween(low, high float64, whole bool) float64 {
	if whole {
		return high - low + 1
	}
	if low <= 0 {
		return math.Inf(1) // values near 0 have their digits too
	}
	below := func(v float64) float64 { // about the number of values from 1 to below v
		decade := math.Floor(math.Log10(v))
		return (9*decade + v/math.Pow(10, decade) - 1) * math.Pow10(digits-1)
	}
	return math.Floor(below(high)-below(low)) + 3 // the bounds keep all their digits
}

// digits is how many digits a drawn number has, so that a report shows the value that was used.
const digits = 3

// between returns the function that makes a number between two of one from 0 to below 1.
func between(way string, low, high float64, whole bool) func(u float64) string {
	return func(u float64) string {
		var v float64
		switch {
		case way == "log":
			v = num.Exp(float64(num.Log(low) + float64(u*float64(num.Log(high)-num.Log(low)))))
		case whole:
			v = float64(low + float64(u*float64(high-low+1))) // each whole number has the same share
		default:
			v = float64(low + float64(u*float64(high-low)))
		}
		if whole {
			if way == "log" {
				v += 0.5
			}
			return strconv.FormatInt(min(int64(v), int64(high)), 10)
		}
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
		text := strconv.FormatFloat(max(low, min(rounded, high)), 'g', -1, 64)
		return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(text)
	}
}
