package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

var keysOfMethod = []string{"algorithm", "name", "preset", "settings", "grid", "search", "choose", "budget"}

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
			s.check(r.Algorithm, e, "preset", s.text(e))
			settings = append(settings, param.Pair{Key: "preset", Value: s.text(e)})
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
		s.try(func() { r.Budget = &Budget{s.duration(e), fmt.Sprintf("line %d", r.At.Line)} }) // of all points together
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

// check refuses a setting that the algorithm does not have, or a value that it cannot have.
func (s *reader) check(algorithm string, e entry, key, value string) {
	if slices.ContainsFunc(spec.Common(), func(p param.Param) bool { return p.Name == key }) {
		s.fail(e.at, "%s: a method gives only settings of its algorithm; %s is set for the whole experiment", key, key)
	}
	given := protocol.Spec{Algorithm: algorithm}
	err := spec.Set(&given, key, value)
	if err == nil {
		return
	}
	if a, found := registry.Find(algorithm); found == nil {
		if names := settingNames(a.Params()); !slices.Contains(names, key) {
			s.fail(e.at, "unknown setting %s of %s%s; its settings are %s", key, algorithm, param.Suggest(key, names), strings.Join(names, ", "))
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
		names := registry.Names()
		if name == "mean" {
			s.fail(at, "algorithm: %q is unknown; a spec does not list the mean baseline, because each report has it", name)
		}
		s.fail(at, "algorithm: %q is unknown%s; the algorithms are %s", name, param.Suggest(name, names), strings.Join(names, ", "))
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
		s.fail(r.At, "name: %q: this method does not give the setting %s%s; %s", r.Name, word, param.Suggest(strings.Trim(word, "{}"), keys), has)
		return ""
	})
}

func (s *parser) addMethod(r Method, settings []param.Pair) {
	switch {
	case r.Name == "":
		r.Name = methodName(r.Algorithm, settings)
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
