package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// DefaultAlgorithm is the algorithm of a spec that names none.
const DefaultAlgorithm = "ldlf"

// DefaultSeed is the seed of a spec that gives none: never the clock.
const DefaultSeed = 1

// MaxFolds bounds folds: a fold's number is stored in 16 bits.
const MaxFolds = 1 << 16

// DefaultPredictions and MaxPredictions are the default and the greatest value of
// keep_predictions, in bytes: the predictions of a job are one blob.
const (
	DefaultPredictions = 64 << 20
	MaxPredictions     = 256 << 20
)

// key is one of the keys that every spec may have.
type key struct {
	param.Param
	set func(s *protocol.Spec, value any) // a value that Param.Parse returned
}

// common lists the keys of every spec, in the order of help texts.
var common = []key{
	{
		param.Param{Name: "algorithm", Kind: param.KindWord, Doc: "algorithm to train", Default: DefaultAlgorithm, Words: registry.Names()},
		func(s *protocol.Spec, value any) { s.Algorithm = value.(string) },
	},
	{
		param.Param{Name: "dataset", Kind: param.KindText, Doc: "name of an imported dataset", Default: "the dataset of --data or --dataset", Form: nameForm, Check: protocol.CheckName},
		func(s *protocol.Spec, value any) { s.Dataset = value.(string) },
	},
	{
		param.Param{Name: "name", Kind: param.KindText, Doc: "name of the job and its model", Default: "the job's number", Form: nameForm, Check: protocol.CheckName},
		func(s *protocol.Spec, value any) { s.Name = value.(string) },
	},
	{
		param.Param{Name: "seed", Kind: param.KindText, Doc: "seed of all random numbers", Default: "1", Form: "a whole number from 0 to 2^64 - 1", Check: checkSeed},
		func(s *protocol.Spec, value any) {
			seed, _ := strconv.ParseUint(value.(string), 10, 64) // checked
			s.Seed = &seed
		},
	},
	{
		param.Param{Name: "test_fraction", Kind: param.KindFloat, Doc: "fraction of the samples held out for testing, only without folds; 0: the model is evaluated on the training samples", Default: "0", Min: 0, Max: math.Nextafter(1, 0)},
		func(s *protocol.Spec, value any) { s.TestFraction = value.(float64) },
	},
	{
		param.Param{Name: "folds", Kind: param.KindInt, Doc: "number of folds of cross-validation, at least 2 and at most the number of samples; 0: one training on all samples", Default: "0", Min: 0, Max: MaxFolds},
		func(s *protocol.Spec, value any) { s.Folds = int(value.(int64)) },
	},
	{
		param.Param{Name: "group_folds", Kind: param.KindBool, Doc: "cross-validation that tests each group of the dataset once (groups are read with --groups); only without folds", Default: "false"},
		func(s *protocol.Spec, value any) { s.GroupFolds = value.(bool) },
	},
	{
		param.Param{Name: "keep_predictions", Kind: param.KindInt, Doc: "maximum size, in bytes, of held-out predictions that are stored with the job; 0: none are stored", Default: strconv.Itoa(DefaultPredictions), Min: 0, Max: MaxPredictions},
		func(s *protocol.Spec, value any) {
			n := value.(int64)
			s.KeepPredictions = &n
		},
	},
	{
		param.Param{Name: "measures", Kind: param.KindWord, Doc: "measures of predicted distributions: ten, or all, which adds Spearman, Jensen-Shannon, zero-one loss and error probability", Default: ten, Words: []string{ten, pipeline.AllMeasures}},
		func(s *protocol.Spec, value any) { s.Measures = unless(ten, value) },
	},
	{
		param.Param{Name: "clip", Kind: param.KindWord, Doc: "clipping of probabilities in measures: pyldl (to at least 2.2e-16, as PyLDL does for K-L, Sørensen, squared χ², Clark, Canberra and Jensen-Shannon) or none", Default: none, Words: []string{none, string(measures.PyLDL)}},
		func(s *protocol.Spec, value any) { s.Clip = unless(none, value) },
	},
}

// ten and none are the defaults of measures and clip, which a spec stores as an empty text.
const (
	ten  = "ten"
	none = "none"
)

// unless returns a word, or an empty text where it is the default.
func unless(standard string, value any) string {
	if word := value.(string); word != standard {
		return word
	}
	return ""
}

// nameForm is what protocol.CheckName lets pass.
const nameForm = "1 to 100 letters, digits, dots, underscores and hyphens, with a letter or digit first and not only digits"

// Common lists the keys that every spec may have, in the order of help texts.
func Common() []param.Param {
	var params []param.Param
	for _, k := range common {
		params = append(params, k.Param)
	}
	return params
}

// Set sets a key of s, one of the common keys or a setting of s.Algorithm (DefaultAlgorithm
// if that is empty), to the value of text. Errors are *param.Error.
func Set(s *protocol.Spec, name, text string) error {
	for _, k := range common {
		if k.Name == name {
			value, err := k.Parse(text)
			if err == nil {
				k.set(s, value)
			}
			return err
		}
	}
	p, err := setting(s.Algorithm, name)
	if err != nil {
		return err
	}
	if _, err := p.Parse(text); err != nil {
		return err
	}
	if s.Set == nil {
		s.Set = make(map[string]string)
	}
	s.Set[name] = text
	return nil
}

// setting finds a setting of an algorithm.
func setting(algorithm, name string) (*param.Param, error) {
	a, err := find(algorithm)
	if err != nil {
		return nil, err
	}
	params := a.Params()
	for i := range params {
		if params[i].Name == name {
			return &params[i], nil
		}
	}
	return nil, unknownKey(a, name)
}

func find(algorithm string) (algorithms.Algorithm, error) {
	if algorithm == "" {
		algorithm = DefaultAlgorithm
	}
	a, err := registry.Find(algorithm)
	if err != nil {
		names := registry.Names()
		return nil, param.Errorf("algorithm", "algorithm %q is unknown%s; the algorithms are %s", algorithm, param.Suggest(algorithm, names), strings.Join(names, ", "))
	}
	return a, nil
}

// unknownKey returns the error about an unknown key, with the keys that exist.
func unknownKey(a algorithms.Algorithm, name string) error {
	names := keyNames(a)
	return param.Errorf(name, "there is no such key%s; the keys are %s", param.Suggest(name, names), strings.Join(names, ", "))
}

func keyNames(a algorithms.Algorithm) []string {
	var names []string
	for _, p := range slices.Concat(Common(), a.Params()) {
		names = append(names, p.Name)
	}
	return names
}

func checkSeed(text string) error {
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return fmt.Errorf("not a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	return nil
}
