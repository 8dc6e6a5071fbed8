package experiment

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

var keysOfMethod = []string{"algorithm", "external", "name", "preset", "settings", "grid", "search", "choose", "budget",
	"enhance"}

// methods reads one item of methods: an algorithm, or a mapping, which is a method for each point of
// its grid or its search. An item with a mistake is no method.
func (s *parser) methods(n ast.Node) {
	before := len(s.mistakes)
	r := Method{At: placeOf(n)}
	if name, ok := yamltree.Scalar(n); ok {
		r.Algorithm = s.algorithm(r.At, name)
		r.trained = r.Algorithm
		s.addMethod(r, nil)
		return
	}
	at := make(map[string]entry)
	for _, e := range s.mapping(n, "a method", keysOfMethod) {
		at[e.key] = e
	}
	if e, ok := at["external"]; ok {
		s.external(r, e, at)
		return
	}
	e, ok := at["algorithm"]
	if !ok {
		s.lack(before, r.At, "the method has no key algorithm")
	}
	r.Algorithm = s.algorithm(e.valueAt, s.text(e))
	r.trained = r.Algorithm
	if e, ok := at["name"]; ok {
		s.try(func() { r.Name = s.methodNameOf(e) })
	}
	var settings []param.Pair
	if e, ok := at["preset"]; ok {
		s.try(func() {
			s.check(r.Algorithm, e, presetKey, s.text(e))
			settings = append(settings, param.Pair{Key: presetKey, Value: s.text(e)})
		})
	}
	if e, ok := at["settings"]; ok {
		s.try(func() {
			for _, given := range s.mapping(e.value, "settings", nil) {
				s.try(func() {
					value := strings.Join(s.values(given), ",") // may be a list of items
					s.check(r.Algorithm, given, given.key, value)
					settings = append(settings, param.Pair{Key: given.key, Value: value})
				})
			}
		})
	}
	if e, ok := at["budget"]; ok {
		s.try(func() {
			if _, err := parseNumber(s.text(e)); err == nil && (r.Algorithm == ensemble.Name || r.Algorithm == spec.Best) {
				s.fail(e.valueAt, "budget: %s is not a duration, such as 20m, which limits the computing time of the method; the "+
					"budget of work of %s is one of its settings: settings: {{budget: %[1]s}}", s.text(e), r.Algorithm)
			}
			r.Budget = &Budget{s.duration(e), fmt.Sprintf("line %d", r.At.Line)} // of all points together
		})
	}
	if e, ok := at["enhance"]; ok {
		s.try(func() { r.Enhance = s.enhancement(e) })
	}
	var points [][]param.Pair
	s.try(func() { points = s.points(&r, at) })
	if len(s.mistakes) > before {
		panic(mistake{})
	}
	if e, ok := at["choose"]; ok {
		s.choose(r, e, settings, points)
		return
	}
	for _, point := range points {
		s.addMethod(r, slices.Concat(settings, point))
	}
}

// external adds a method whose predictions come from another program.
func (s *parser) external(r Method, e entry, at map[string]entry) {
	before := len(s.mistakes)
	for key, other := range at {
		if key != "external" && key != "name" {
			s.wrong(other.at, "%s: a method with the key external can only have a name, because another program made its "+
				"predictions", key)
		}
	}
	r.Algorithm, r.External = external.Name, s.text(e)
	r.trained = r.Algorithm + ":" + r.External
	if r.External == "" {
		s.fail(e.valueAt, "external: want the folder of the predictions")
	}
	r.Name = path.Base(strings.ReplaceAll(r.External, `\`, "/"))
	if e, ok := at["name"]; ok {
		s.try(func() { r.Name = s.methodNameOf(e) })
	}
	if len(s.mistakes) > before {
		panic(mistake{})
	}
	s.addMethod(r, nil)
}

// check refuses a setting that the algorithm does not have, or a value that it cannot have.
func (s *reader) check(algorithm string, e entry, key, value string) {
	if key == spec.TrainFraction {
		if err := spec.Set(new(protocol.Spec), key, value); err != nil {
			s.fail(e.valueAt, "%v", err)
		}
		return
	}
	if slices.ContainsFunc(spec.Common(), func(p param.Param) bool { return p.Name == key }) {
		s.fail(e.at, "%s: a method gives only settings of its algorithm; %s is set for the whole experiment", key, key)
	}
	given := protocol.Spec{Algorithm: algorithm}
	err := spec.Set(&given, key, value)
	if err == nil {
		return
	}
	if a, found := spec.Choice(algorithm); found == nil {
		if names := settingNames(a.Params()); key != presetKey && !slices.Contains(names, key) {
			s.fail(e.at, "unknown setting %s of %s%s; its settings are %s", key, algorithm, param.Suggest(key, names),
				strings.Join(names, ", "))
		}
	}
	s.fail(e.valueAt, "%v", err)
}

// settingNames lists the names of settings.
func settingNames(settings []param.Param) (names []string) {
	for i := range settings {
		names = append(names, settings[i].Name)
	}
	return names
}

func (s *reader) algorithm(at yamltree.Place, name string) string {
	given := protocol.Spec{}
	if err := spec.Set(&given, "algorithm", name); err != nil {
		if name == "mean" {
			s.fail(at, "algorithm: %q is unknown; a spec does not list the mean baseline, because each report has it", name)
		}
		var names []string
		for _, a := range spec.Choices() {
			names = append(names, a.Name())
		}
		s.fail(at, "algorithm: %q is unknown%s; the algorithms are %s", name, param.Suggest(name, names),
			strings.Join(names, ", "))
	}
	return name
}

// inBraces finds what stands for the value of a setting in the name of a method.
var inBraces = regexp.MustCompile(`\{[\p{L}_][\p{L}\p{N}_]*\}`)

// filled returns the name of a method with the values of settings in the place of their names.
func (s *reader) filled(r *Method, settings []param.Pair) string {
	return inBraces.ReplaceAllStringFunc(r.Name, func(word string) string {
		var keys []string
		for _, p := range settings {
			if word == "{"+p.Key+"}" {
				return p.Value
			}
			keys = append(keys, p.Key)
		}
		has := "the method gives no settings"
		if len(keys) > 0 {
			has = "the method gives " + strings.Join(keys, ", ")
		}
		s.fail(r.At, "name: %q: this method does not give the setting %s%s; %s", r.Name, word,
			param.Suggest(strings.Trim(word, "{}"), keys), has)
		return ""
	})
}

func (s *parser) addMethod(r Method, settings []param.Pair) {
	switch {
	case r.Name == "":
		if r.Name = methodName(r.Algorithm, settings); r.Enhance != nil {
			r.Name += ", " + r.Enhance.Method
		}
	default: // of a grid each point has a name of its own
		r.Name = s.filled(&r, settings)
	}
	r.Settings = make(map[string]string)
	for _, p := range settings {
		if _, twice := r.Settings[p.Key]; twice {
			s.fail(r.At, "%s: the method gives this setting twice", p.Key)
		}
		r.Settings[p.Key] = p.Value
	}
	if len(s.Methods) == MaxMethods {
		s.fail(r.At, "the experiment has more than %s methods", units.Count(MaxMethods))
	}
	goOn(s.ctx)
	s.Methods = append(s.Methods, r)
}

// points lists the settings of a method in addition to the common settings, one list for each method of the table: the
// points of the grid or of the search, or else one empty list.
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
		s.lack(before, e.at, "search: the keys draws (the number of points) and space (the values of each setting) are "+
			"required")
	}
	axes := s.space(r, space)
	size := 1.0
	for _, a := range axes {
		size = min(size*a.values, MaxMethods)
	}
	if size < float64(draws) {
		s.fail(space.at, "search: space is too small: it has at most %s different points, want %s draws; numbers are "+
			"rounded to %d digits", units.Count(int64(size)), units.Count(draws), digits)
	}
	most := max(20*draws, min(100*draws, 100_000)) // all points of a space of n are drawn after about n log n tries
	seen := make(map[string]bool)
	for n := int64(0); int64(len(points)) < draws; n++ {
		if n == most {
			s.fail(space.at, "search: space is too small: %s tries gave %s different points, want %s draws", units.Count(n),
				units.Count(len(points)), units.Count(draws))
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
			axes = append(axes, axis{x.key, func(u float64) string {
				return values[int(float64(u*float64(len(values))))]
			}, float64(len(values))})
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
		s.fail(e.at, "%s: want a list of values, or one of the keys %s with two bounds", e.key,
			strings.Join(intervalKeys, ", "))
	}
	way := ways[0]
	ends := s.texts(way)
	if len(ends) != 2 {
		s.fail(way.at, "%s: %s: want two numbers, the lower and the upper bound", e.key, way.key)
	}
	whole := way.key == "int"
	if a, err := spec.Choice(r.Algorithm); err == nil {
		whole = whole || slices.ContainsFunc(a.Params(), func(p param.Param) bool {
			return p.Name == e.key && p.Kind == param.KindInt
		})
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

// chooseKeys are the keys of choose. One of them says which samples score the candidates.
var chooseKeys = []string{"inner", "validation"}

// choose adds a method that chooses among points in each run, by samples that the candidates are not trained on: an
// ensemble in which the best member has all the weight.
func (s *parser) choose(r Method, e entry, settings []param.Pair, points [][]param.Pair) {
	innerFolds, weights := s.choice(e)
	if r.Algorithm == ensemble.Name || r.Algorithm == spec.Best {
		s.fail(e.at, "choose: a method of %s is an ensemble, which cannot be a candidate of a choice; without the key "+
			"choose, each point is a method", r.Algorithm)
	}
	if len(points) < 2 {
		s.fail(e.at, "choose: the method has only one candidate; list values of its settings with the key grid, or draw "+
			"them with the key search")
	}
	var outer []param.Pair // a candidate is an algorithm with settings; what it is trained on is the method's
	settings = slices.DeleteFunc(settings, func(p param.Pair) bool {
		if p.Key == spec.TrainFraction {
			outer = append(outer, p)
		}
		return p.Key == spec.TrainFraction
	})
	var items []param.Item
	for _, point := range points {
		if slices.ContainsFunc(point, func(p param.Pair) bool { return p.Key == spec.TrainFraction }) {
			s.fail(e.at, "choose: %s cannot be chosen; give it with the key settings", spec.TrainFraction)
		}
		items = append(items, param.Item{Name: r.Algorithm, Set: slices.Concat(settings, point)})
	}
	members := param.FormatItems(items)
	s.check(ensemble.Name, e, "members", members)
	for _, point := range points {
		candidate := "default"
		if len(point) > 0 {
			candidate = strings.TrimPrefix(methodName(r.Algorithm, point), r.Algorithm+" ")
		}
		r.Candidates = append(r.Candidates, candidate)
	}
	if r.Name == "" {
		r.Name = methodName(r.Algorithm, settings) + ", chosen of " + strconv.Itoa(len(points))
	}
	r.Algorithm = ensemble.Name
	s.addMethod(r, append(outer, param.Pair{Key: "members", Value: members}, param.Pair{Key: "weights", Value: weights},
		param.Pair{Key: "inner_folds", Value: innerFolds}))
}

// choice reads how the runs of a method choose their settings. Each inner fold scores the candidates; with the weights
// validated, only the first one does.
func (s *parser) choice(e entry) (folds, weights string) {
	folds, weights = "5", "best"
	given := ""
	for _, x := range s.mapping(e.value, "choose", chooseKeys) {
		switch x.key {
		case "inner":
			folds = s.text(x)
			s.check(ensemble.Name, x, "inner_folds", folds)
		case "validation":
			folds, weights = strconv.Itoa(s.part(x)), "validated"
		}
		if given != "" {
			s.fail(x.at, "choose: the keys %s and %s exclude each other", x.key, given)
		}
		given = x.key
	}
	return folds, weights
}

// The training samples are divided into leastParts to mostParts parts. One part scores the candidates.
const (
	leastParts = 2
	mostParts  = 20
)

// part reads a share of the training samples, such as 0.1 or 1/9, and returns how many such parts
// there are.
func (s *reader) part(e entry) int {
	text := s.text(e)
	over, under, fraction := strings.Cut(text, "/")
	share, err := parseNumber(over)
	if fraction && err == nil {
		var parts float64
		parts, err = parseNumber(under)
		share /= parts
	}
	parts := math.Round(1 / share)
	if err != nil || !(parts >= leastParts && parts <= mostParts) || math.Abs(float64(share*parts)-1) > 0.02 {
		s.fail(e.valueAt, "choose: validation: %q is not 1/n of the training samples with a whole n from %d to %d, such as "+
			"0.1, 0.2 or 1/9", text, leastParts, mostParts)
	}
	return int(parts)
}
