package spec

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

// DefaultAlgorithm is the algorithm of a spec that names none.
const DefaultAlgorithm = "ldlf"

// Best is a second name of the ensemble with preset best: it trains the best algorithm by validation.
const Best = ensemble.PresetBest

// errOtherPreset refuses a preset of Best that is another one.
var errOtherPreset = param.Errorf(presetKey, "algorithm %s has no other preset; with algorithm %s, any preset is "+
	"possible", Best, ensemble.Name)

// presetKey is the setting that selects among the defaults of an algorithm.
const presetKey = "preset"

// Choices lists what a spec may name as its algorithm, in the order of help texts: all algorithms, and Best. They are
// for lists and descriptions; Resolve makes a job of a name.
func Choices() []algorithms.Algorithm {
	all := registry.All()
	for _, a := range all {
		if a.Name() == ensemble.Name {
			all = append(all, best{a})
		}
	}
	return all
}

// Choice returns the algorithm of Choices that has a name. The error is about the key algorithm.
func Choice(name string) (algorithms.Algorithm, error) {
	for _, a := range Choices() {
		if a.Name() == name {
			return a, nil
		}
	}
	names := choiceNames()
	return nil, param.Errorf("algorithm", "algorithm %.80q is unknown%s; the algorithms are %s", name,
		param.Suggest(name, names), strings.Join(names, ", "))
}

func choiceNames() (names []string) {
	for _, a := range Choices() {
		names = append(names, a.Name())
	}
	return names
}

// best describes Best. Its other methods are the methods of the ensemble.
type best struct{ algorithms.Algorithm }

// Name implements algorithms.Algorithm.
func (best) Name() string { return Best }

// Doc implements algorithms.Algorithm.
func (best) Doc() string {
	return fmt.Sprintf("the best algorithm by validation; the same as %s with preset %s", ensemble.Name,
		ensemble.PresetBest)
}

// About implements algorithms.Algorithm.
func (b best) About() algorithms.About {
	return algorithms.About{
		Class:   b.Algorithm.About().Class,
		Summary: "the best of several algorithms by validation",
		When: fmt.Sprintf("Use it if you do not know which algorithm suits the data, and minutes do not matter. It compares "+
			"as many of these algorithms as the budget allows, and trains the best one: %s.",
			strings.Join(ensemble.Candidates(), ", ")),
	}
}

// Params implements algorithms.Algorithm: the settings of the ensemble but for the preset, with the defaults of preset
// best.
func (b best) Params() (all []param.Param) {
	const only = "with preset " + ensemble.PresetBest + ": "
	for _, p := range b.Algorithm.Params() {
		if p.Name == presetKey {
			continue
		}
		p.Default, p.Presets, p.Doc = p.Of(ensemble.PresetBest), nil, strings.TrimPrefix(p.Doc, only)
		if _, own, ok := strings.Cut(p.Default, only); ok {
			p.Default = own
		}
		all = append(all, p)
	}
	return all
}
