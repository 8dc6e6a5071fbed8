// Package spec reads job specs: YAML files, --set key=value and the fields of the
// HTTP API. All use one table of keys: the keys of every spec and the settings of the
// algorithm. An unknown key, or a value of the wrong type or out of range, is an error that
// says where it is and which values are right.
package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// DefaultSeed is the seed of a spec that gives none: never the clock.
const DefaultSeed = 1

// key is one of the keys that every spec may have.
type key struct {
	param.Param
	set func(s *protocol.Spec, value any) // a value that Param.Parse returned
}

// common lists the keys of every spec, in the order of help texts.
var common = []key{
	{
		param.Param{Name: "algorithm", Kind: param.KindWord, Doc: "algorithm to train", Default: DefaultAlgorithm,
			Words: choiceNames()},
		func(s *protocol.Spec, value any) { s.Algorithm = value.(string) },
	},
	{
		param.Param{Name: "dataset", Kind: param.KindText, Doc: "name of an imported dataset",
			Default: "the dataset of --data or --dataset", Form: nameForm, Check: protocol.CheckName},
		func(s *protocol.Spec, value any) { s.Dataset = value.(string) },
	},
	{
		param.Param{Name: "name", Kind: param.KindText, Doc: "name of the job and its model", Default: "the job's number",
			Form: nameForm, Check: protocol.CheckName},
		func(s *protocol.Spec, value any) { s.Name = value.(string) },
	},
	{
		param.Param{Name: "seed", Kind: param.KindText, Doc: "seed of all random numbers", Default: "1",
			Form: "a whole number from 0 to 2^64 - 1", Check: checkSeed},
		func(s *protocol.Spec, value any) {
			seed, _ := strconv.ParseUint(value.(string), 10, 64) // checked
			s.Seed = &seed
		},
	},
	{
		param.Param{Name: "test_fraction", Kind: param.KindFloat,
			Doc: "fraction of the samples held out for testing, only without folds; 0: the model is evaluated on the training " +
				"samples", Default: "0", Min: 0, Max: math.Nextafter(1, 0)},
		func(s *protocol.Spec, value any) { s.TestFraction = value.(float64) },
	},
	{
		param.Param{Name: TrainFraction, Kind: param.KindFloat,
			Doc: "fraction of the samples for training and validation that is used; the samples of a fraction are also in " +
				"each greater fraction", Default: "1", Min: 1e-6, Max: 1},
		func(s *protocol.Spec, value any) { s.TrainFraction = value.(float64) },
	},
	{
		param.Param{Name: "folds", Kind: param.KindInt, Doc: "number of folds of cross-validation, at least 2 and at most " +
			"the number of samples; 0: one training on all samples", Default: "0", Min: 0, Max: MaxFolds},
		func(s *protocol.Spec, value any) { s.Folds = int(value.(int64)) },
	},
	{
		param.Param{Name: "fold", Kind: param.KindInt, Doc: "number of the only fold to train, from 0; only with folds or " +
			"splits", Default: "all folds", Min: 0, Max: MaxFolds - 1},
		func(s *protocol.Spec, value any) {
			fold := int(value.(int64))
			s.Fold = &fold
		},
	},
	{
		param.Param{Name: "group_folds", Kind: param.KindBool,
			Doc: "cross-validation that tests each group of the dataset once (groups are read with --groups); " +
				"only without folds",
			Default: "false"},
		func(s *protocol.Spec, value any) { s.GroupFolds = value.(bool) },
	},
	{
		param.Param{Name: "keep_predictions", Kind: param.KindInt,
			Doc:     "maximum size, in bytes, of held-out predictions that are stored with the job; 0: none are stored",
			Default: strconv.Itoa(DefaultPredictions), Min: 0, Max: MaxPredictions},
		func(s *protocol.Spec, value any) {
			n := value.(int64)
			s.KeepPredictions = &n
		},
	},
	{
		param.Param{Name: "measures", Kind: param.KindWord,
			Doc: "measures of predicted distributions: ten, or all, which adds nine more, such as Spearman and zero-one " +
				"loss", Default: ten, Words: []string{ten, pipeline.AllMeasures}},
		func(s *protocol.Spec, value any) { s.Measures = unless(ten, value) },
	},
	{
		param.Param{Name: "clip", Kind: param.KindWord, Doc: "clipping of probabilities in measures: pyldl (to at least " +
			"2.2e-16, as PyLDL does for K-L, Sørensen, squared χ², Clark, Canberra and Jensen-Shannon) or none", Default: none,
			Words: []string{none, string(measures.PyLDL)}},
		func(s *protocol.Spec, value any) { s.Clip = unless(none, value) },
	},
	{
		param.Param{Name: "weighted_measures", Kind: param.KindBool,
			Doc: "weight measures by the weights of the samples (weights are read with --weights)", Default: "false"},
		func(s *protocol.Spec, value any) { s.WeightedMeasures = value.(bool) },
	},
	{
		param.Param{Name: "enhance", Kind: param.KindWord,
			Doc: "label enhancement: train on distributions that are made of logical labels; lp: label propagation; km: " +
				"distances from centres in kernel space; glle: graph Laplacian; logical: the logical labels as they are",
			Default: none, Words: slices.Concat([]string{none}, enhance.Methods())},
		func(s *protocol.Spec, value any) { s.Enhance = unless(none, value) },
	},
	{
		param.Param{Name: "normalise", Kind: param.KindWord,
			Doc: "how the label enhancement makes distributions of scores: softmax, or sum (negative scores become 0, then " +
				"all are divided by their sum)", Default: enhance.Softmax, Words: enhance.Normalisations()},
		func(s *protocol.Spec, value any) { s.Normalise = value.(string) },
	},
	{
		param.Param{Name: "binarise", Kind: param.KindFloat,
			Doc: "threshold by which the label enhancement makes logical labels of distributions: labels by falling " +
				"probability until their sum exceeds it; 0: the labels of the dataset are logical", Default: "0", Min: 0,
			Max: math.Nextafter(1, 0)},
		func(s *protocol.Spec, value any) {
			t := value.(float64)
			s.Binarise = &t
		},
	},
	{
		param.Param{Name: "mask", Kind: param.KindText,
			Doc: "degrees that are hidden in the training, for experiments with incomplete labels; measures are of whole " +
				"labels. A number is the probability that a degree is hidden. golden:FRACTION hides the same degrees whatever " +
				"the seed, and unlabelled:FRACTION hides all degrees of a sample",
			Default: noMask, Form: "none, or a fraction above 0 and below 1, golden:FRACTION, unlabelled:FRACTION, or two of " +
				"them with a comma between them", Check: checkMask},
		func(s *protocol.Spec, value any) { s.Mask = unless(noMask, value) },
	},
}

// unless returns a word, or an empty text if it is the default.
func unless(standard string, value any) string {
	if word := value.(string); word != standard {
		return word
	}
	return ""
}

// nameForm is what protocol.CheckName lets pass.
const nameForm = "1 to 100 letters, digits, dots, underscores and hyphens, with a letter or digit first and not only " +
	"digits"

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
	if s.Algorithm == Best && name == presetKey && text != Best {
		return errOtherPreset
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
	switch algorithm {
	case "":
		algorithm = DefaultAlgorithm
	case Best:
		algorithm = ensemble.Name
	}
	a, err := registry.Find(algorithm)
	if err != nil {
		return Choice(algorithm) // which says what there is
	}
	return a, nil
}

// unknownKey returns the error about an unknown key, with the keys that exist.
func unknownKey(a algorithms.Algorithm, name string) error {
	settings, others := namesOf(a.Params()), namesOf(Common())
	return param.Errorf(name, "%s has no such setting%s; its settings are %s; the other keys of a job are %s", a.Name(),
		param.Suggest(name, append(others, settings...)), strings.Join(settings, ", "), strings.Join(others, ", "))
}

func namesOf(params []param.Param) []string {
	names := make([]string, len(params))
	for i := range params {
		names[i] = params[i].Name
	}
	return names
}

func checkSeed(text string) error {
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return fmt.Errorf("not a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	return nil
}

// Resolve makes the job of a spec on a dataset. Every setting of the job has a value: the
// model is a function of job and dataset, bit for bit. A job that would not use the validation samples of its dataset
// is refused. Errors about one key are *param.Error.
func Resolve(s protocol.Spec, m *dataset.Manifest) (*round.Job, error) {
	a, err := find(s.Algorithm)
	if err != nil {
		return nil, err
	}
	j, err := resolve(a, s, m, m)
	if err == nil && m.Validation != nil && !settingsValidate(Settings(j.Params)) {
		return nil, param.Errorf("algorithm", "a training of %s with these settings uses no validation samples, but the "+
			"dataset has %s of {validation}; omit {validation}, or choose other settings or another algorithm", j.Algorithm,
			dataset.Counted(m.Validation.Rows, "sample"))
	}
	return j, err
}

// ResolveMethod is Resolve for a method of an experiment, which is compared with methods that validate. So it may
// leave out the validation samples of its dataset: validates is false then, and no default counts these samples.
func ResolveMethod(s protocol.Spec, m *dataset.Manifest) (_ *round.Job, validates bool, err error) {
	a, err := find(s.Algorithm)
	if err != nil {
		return nil, false, err
	}
	j, err := resolve(a, s, m, m)
	if err != nil || settingsValidate(Settings(j.Params)) {
		return j, true, err
	}
	if m.Validation != nil {
		j, err = resolve(a, s, m, m.Divided())
	}
	return j, false, err
}

// resolve makes the job of a spec of an algorithm on a dataset. Settings that are not given are those for the samples
// that counted describes.
func resolve(a algorithms.Algorithm, s protocol.Spec, m, counted *dataset.Manifest) (*round.Job, error) {
	given, err := values(a, s.Set)
	if err != nil {
		return nil, err
	}
	if s.Algorithm == Best {
		if preset, ok := given[presetKey]; ok && preset != Best {
			return nil, errOtherPreset
		}
		given[presetKey] = Best
	}
	if err := useGroups(&s, m); err != nil {
		return nil, err
	}
	if err := checkSplit(&s, m); err != nil {
		return nil, err
	}
	if err := checkMeasures(a.Name(), &s, m); err != nil {
		return nil, err
	}
	enhanced, err := enhancement(a, &s, m)
	if err != nil {
		return nil, err
	}
	if enhanced != nil && s.Mask != "" {
		return nil, param.Errorf("mask", "a label enhancement needs whole labels, so {enhance} and {mask} exclude each other")
	}
	mask, err := maskOf(s.Mask, a.Name(), m)
	if err != nil {
		return nil, err
	}
	resolved, err := a.Resolve(given, counted)
	if err != nil {
		return nil, err
	}
	if err := checkValidation(m, settingsValidate(Settings(resolved.Params))); err != nil {
		return nil, err
	}
	seed := uint64(DefaultSeed)
	if s.Seed != nil {
		seed = *s.Seed
	}
	keep := int64(DefaultPredictions)
	if s.Folds == 0 && s.TestFraction == 0 { // no row is held out
		keep = 0
	} else if s.KeepPredictions != nil {
		keep = *s.KeepPredictions
	}
	split := dataset.Split{
		Seed: seed, TestFraction: s.TestFraction, TrainFraction: trainFraction(&s),
		Folds: s.Folds, Assigned: s.Assigned, Overlap: s.Overlap,
		ValidationFraction: resolved.ValidationFraction, ValidationMin: resolved.ValidationMin, Mask: mask,
	}
	if split.ValidationFraction > 0 {
		m.KeepGroups(&split)
	}
	m.KeepValidation(&split)
	if d, ok := a.(algorithms.Divider); ok {
		if resolved.Params, err = d.Divided(resolved.Params, &split, m); err != nil {
			return nil, err
		}
	}
	folds := s.Folds
	if s.Fold != nil { // the sub-job of the fold alone
		split.Fold, folds = *s.Fold, 0
	}
	j := &round.Job{
		Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Split: split,
		Folds: folds, Params: resolved.Params, Predictions: keep, Measures: s.Measures, Clip: s.Clip,
		Weights: resolved.Weights, Fill: m.Fill(), Enhance: enhanced,
		Bounds: m.LabelType.Bounds, WeightedMeasures: s.WeightedMeasures && m.HasWeights,
	}
	j.LinearSamples = pipeline.LinearSamples(j, m)
	j.Screen = s.Screen && pipeline.Screens(j, m)
	return j, nil
}

// values parses settings given as text. The error is about the first wrong one in the order
// of the algorithm's table.
func values(a algorithms.Algorithm, set map[string]string) (param.Values, error) {
	given, params := make(param.Values, len(set)), a.Params()
	for i := range params {
		text, ok := set[params[i].Name]
		if !ok {
			continue
		}
		v, err := params[i].Parse(text)
		if err != nil {
			return nil, err
		}
		given[params[i].Name] = v
	}
	if len(given) == len(set) {
		return given, nil
	}
	var unknown []string
	for name := range set {
		if _, ok := given[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	return nil, unknownKey(a, slices.Min(unknown))
}

// trainFraction returns Split.TrainFraction: 0 if all samples are used, so that a job has one form.
func trainFraction(s *protocol.Spec) float64 {
	if s.TrainFraction == 1 {
		return 0
	}
	return s.TrainFraction
}

// useGroups makes the groups of the dataset the folds of the spec, if it asks for them.
func useGroups(s *protocol.Spec, m *dataset.Manifest) error {
	const key = "group_folds"
	switch {
	case !s.GroupFolds:
		return nil
	case s.Folds != 0 || s.Assigned != "" || s.TestFraction != 0:
		return param.Errorf(key, "cannot be combined with other folds or with a test fraction")
	case m.Groups == nil:
		return param.Errorf(key, "the dataset has no groups; import it with {groups}, which names a column of groups")
	case len(m.Groups.Names) < 2:
		return param.Errorf(key, "the dataset has one group, want at least two")
	}
	s.Assigned, s.Folds = m.Groups.Digest, len(m.Groups.Names)
	return nil
}

// Settings lists resolved settings (Job.Params) in their order. It returns nil if params are not a JSON object.
func Settings(params json.RawMessage) (all []param.Pair) {
	d := json.NewDecoder(bytes.NewReader(params))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil
		}
		name, _ := key.(string)
		text := string(value)
		if value[0] == '"' {
			if json.Unmarshal(value, &text) != nil {
				return nil
			}
		}
		all = append(all, param.Pair{Key: name, Value: text})
	}
	return all
}

// Complete lists the settings of a job in the order of the algorithm's settings: the resolved settings (Job.Params),
// and the settings that Job.Params leaves out because they have their default, or select others. given has the settings
// that the job was given. Complete returns nil if resolved is not a JSON object.
func Complete(settings []param.Param, resolved json.RawMessage, given map[string]string) (all []param.Pair) {
	pairs := Settings(resolved)
	if pairs == nil {
		return nil
	}
	values := make(map[string]string, len(settings))
	for _, p := range pairs {
		values[p.Key] = p.Value
	}
	preset := ""
	for i := range settings {
		p := &settings[i]
		value, written := values[p.Name]
		set, isGiven := given[p.Name]
		switch {
		case p.Name == presetKey:
			value = cmp.Or(value, set, p.Default)
			preset = value // the first setting of each algorithm
		case !written && isGiven:
			value = set
		case !written:
			value = p.Default
			for _, d := range p.Presets {
				if d.Preset == preset {
					value = d.Value
				}
			}
		}
		all = append(all, param.Pair{Key: p.Name, Value: value})
	}
	return all
}

// Changed lists the settings of an algorithm that differ, on one of the datasets at least, from the defaults that its
// preset and the other settings have, and the preset if it is not the default. A job that is given these alone has all
// of the settings, on each of the datasets. Changed returns all settings if there are no datasets, or if the algorithm
// refuses the settings.
func Changed(algorithm string, settings []param.Pair, on ...*dataset.Manifest) []param.Pair {
	a, err := registry.Find(algorithm)
	if err != nil || len(on) == 0 {
		return settings
	}
	given := make(map[string]string)
	for _, s := range settings {
		if s.Key == presetKey {
			given[presetKey] = s.Value
		}
	}
	for {
		more, ok := left(a, settings, given, on)
		if !ok {
			return settings
		}
		if len(more) == 0 {
			break
		}
		known := len(given)
		maps.Copy(given, more)
		if len(given) == known { // the algorithm resolves a value that is given to another one
			return settings
		}
	}
	for _, s := range slices.Backward(settings) { // what follows from others comes behind them
		value, ok := given[s.Key]
		if !ok || s.Key == presetKey {
			continue
		}
		delete(given, s.Key)
		if more, ok := left(a, settings, given, on); !ok || len(more) > 0 {
			given[s.Key] = value
		}
	}
	var changed []param.Pair
	params := a.Params()
	for _, s := range settings {
		if _, ok := given[s.Key]; !ok {
			continue
		}
		p := &params[slices.IndexFunc(params, func(p param.Param) bool { return p.Name == s.Key })]
		if s.Key == presetKey && s.Value == p.Default {
			continue
		}
		if p.ItemKey != "" {
			s.Value = changedItems(s.Value, on...)
		}
		changed = append(changed, s)
	}
	return changed
}

// changedItems leaves the defaults out of a list of items. Each item is an algorithm with settings.
func changedItems(text string, on ...*dataset.Manifest) string {
	items, err := param.ParseItems(text)
	if err != nil {
		return text
	}
	for i, item := range items {
		items[i].Set = Changed(item.Name, item.Set, on...)
	}
	return param.FormatItems(items)
}

// left returns the settings that a job on one of the datasets lacks, or has with another value, if it is given some of
// them. ok is false if the algorithm refuses these.
func left(a algorithms.Algorithm, settings []param.Pair, given map[string]string,
	on []*dataset.Manifest) (more map[string]string, ok bool) {
	values, err := values(a, given)
	if err != nil {
		return nil, false
	}
	more, params := make(map[string]string), a.Params()
	for _, m := range on {
		r, err := a.Resolve(values, m)
		if err != nil {
			return nil, false
		}
		others := Settings(r.Params)
		for _, s := range settings {
			i := slices.IndexFunc(others, func(o param.Pair) bool { return o.Key == s.Key })
			k := slices.IndexFunc(params, func(p param.Param) bool { return p.Name == s.Key })
			if i < 0 || k < 0 || !equal(&params[k], s.Value, others[i].Value) {
				more[s.Key] = s.Value
			}
		}
	}
	return more, true
}

// equal reports whether two texts are the same value of a setting.
func equal(p *param.Param, a, b string) bool {
	if a == b {
		return true
	}
	va, err := p.Parse(a)
	if err != nil {
		return false
	}
	vb, err := p.Parse(b)
	return err == nil && va == vb
}
