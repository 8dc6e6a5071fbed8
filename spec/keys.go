package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
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
	algorithms.Param
	set func(s *protocol.Spec, text string) error // text passed ParseValue
}

// common lists the keys of every spec, in the order of help texts.
var common = []key{
	{
		algorithms.Param{Name: "algorithm", Kind: algorithms.Word, Doc: "what to train", Default: DefaultAlgorithm, Words: registry.Names()},
		func(s *protocol.Spec, text string) error { s.Algorithm = text; return nil },
	},
	{
		algorithms.Param{Name: "dataset", Kind: algorithms.Text, Doc: "name of an imported dataset", Default: "the one of --data or --dataset", Check: protocol.CheckName},
		func(s *protocol.Spec, text string) error { s.Dataset = text; return nil },
	},
	{
		algorithms.Param{Name: "name", Kind: algorithms.Text, Doc: "name of the job and its model", Default: "the job's number", Check: protocol.CheckName},
		func(s *protocol.Spec, text string) error { s.Name = text; return nil },
	},
	{
		algorithms.Param{Name: "seed", Kind: algorithms.Text, Doc: "seed of everything random: a whole number from 0 to 2^64 - 1", Default: "1", Check: checkSeed},
		setSeed,
	},
	{
		algorithms.Param{Name: "test_fraction", Kind: algorithms.Float, Doc: "share of the rows held out for testing; not with folds", Default: "0", Min: 0, Max: math.Nextafter(1, 0)},
		func(s *protocol.Spec, text string) (err error) {
			s.TestFraction, err = strconv.ParseFloat(text, 64)
			return err
		},
	},
	{
		algorithms.Param{Name: "folds", Kind: algorithms.Int, Doc: "cross-validation: train once for each of so many folds; 0: once on all", Default: "0", Min: 0, Max: MaxFolds},
		func(s *protocol.Spec, text string) (err error) {
			s.Folds, err = strconv.Atoi(text)
			return err
		},
	},
	{
		algorithms.Param{Name: "keep_predictions", Kind: algorithms.Int, Doc: "bytes that the predictions of held-out rows may take to be kept with the job; 0: none are", Default: strconv.Itoa(DefaultPredictions), Min: 0, Max: MaxPredictions},
		func(s *protocol.Spec, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			s.KeepPredictions = &n
			return err
		},
	},
}

// Common lists the keys that every spec may have, in the order of help texts.
func Common() []algorithms.Param {
	var params []algorithms.Param
	for _, k := range common {
		params = append(params, k.Param)
	}
	return params
}

// Set sets a key of s, one of the common keys or a setting of s.Algorithm (DefaultAlgorithm
// if that is empty), to the value of text. Errors are *algorithms.ParamError.
func Set(s *protocol.Spec, name, text string) error {
	for _, k := range common {
		if k.Name != name {
			continue
		}
		if _, err := ParseValue(&k.Param, text); err != nil {
			return err
		}
		if err := k.set(s, text); err != nil {
			return wrong(&k.Param, text)
		}
		return nil
	}
	p, err := setting(s.Algorithm, name)
	if err != nil {
		return err
	}
	if _, err := ParseValue(p, text); err != nil {
		return err
	}
	if s.Set == nil {
		s.Set = make(map[string]string)
	}
	s.Set[name] = text
	return nil
}

// setting finds a setting of an algorithm.
func setting(algorithm, name string) (*algorithms.Param, error) {
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
	return nil, &algorithms.ParamError{Name: name, Reason: unknownKey(a, name)}
}

func find(algorithm string) (algorithms.Algorithm, error) {
	if algorithm == "" {
		algorithm = DefaultAlgorithm
	}
	a, err := registry.Find(algorithm)
	if err != nil {
		names := registry.Names()
		return nil, &algorithms.ParamError{
			Name:   "algorithm",
			Reason: fmt.Sprintf("%q is unknown%s; known are %s", algorithm, didYouMean(algorithm, names), strings.Join(names, ", ")),
		}
	}
	return a, nil
}

// unknownKey returns the reason for the error about an unknown key, with the keys that exist.
func unknownKey(a algorithms.Algorithm, name string) string {
	names := keyNames(a)
	return fmt.Sprintf("no such key%s; the keys are %s", didYouMean(name, names), strings.Join(names, ", "))
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

func setSeed(s *protocol.Spec, text string) error {
	seed, err := strconv.ParseUint(text, 10, 64)
	s.Seed = &seed
	return err
}
