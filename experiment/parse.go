package experiment

import (
	"context"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// Parse reads the spec of an experiment from the text of a file. It checks all that does not
// depend on the data. If it finds mistakes, the error is of type Errors and has all of them, and
// the spec has what could be read. If ctx is done first, the error is ctx's.
func Parse(ctx context.Context, file string, b []byte) (_ *Spec, err error) {
	s := &parser{Spec: &Spec{Seed: spec.DefaultSeed, file: file, Source: string(b)}, ctx: ctx}
	s.reader.file = file
	defer func() {
		if p := recover(); p == any(stopped{}) {
			err = ctx.Err()
		} else if p != nil {
			panic(p)
		}
	}()
	s.try(func() {
		root, wrong := kind.Mapping(b)
		if wrong != nil {
			s.fail(wrong.Place, "%s", wrong.Reason)
		}
		if root == nil {
			s.fail(yamltree.Place{}, "the file is empty; %s %s", kind.Name, kind.Looks)
		}
		s.plain(root)
		s.read(s.mapping(root, kind.Name, topKeys))
	})
	return s.Spec, s.mistakes.Sorted()
}

// read reads the keys in the order in which they depend on each other. After a mistake it reads on, and leaves out what
// depends on the mistaken item.
func (s *parser) read(list []entry) {
	at := make(map[string]entry)
	for _, e := range list {
		at[e.key] = e
	}
	// meant reports whether an unknown key of the spec may be a slip of the pen for a key.
	unknown := s.unknown
	meant := func(key string) bool {
		return slices.ContainsFunc(unknown, func(word string) bool { return param.Near(word, key) })
	}
	// each reads a key that is given, and reports whether it has no mistake.
	each := func(key string, read func(e entry)) bool {
		if e, ok := at[key]; ok {
			return s.try(func() { read(e) })
		}
		return !meant(key)
	}
	for _, key := range []string{"name", "datasets", "methods"} {
		if _, ok := at[key]; !ok && !meant(key) {
			s.wrong(yamltree.Place{}, "the key %s is missing", key)
		}
	}
	each("name", func(e entry) {
		s.Name = s.text(e)
		if err := protocol.CheckName(s.Name); err != nil {
			s.wrong(e.valueAt, "name: %v", err)
		} else if len(s.Name) > maxName {
			s.wrong(e.valueAt, "name: want at most %[2]d characters, got %[1]d", len(s.Name), maxName)
		}
	})
	each("seed", func(e entry) { s.Seed = s.seed(e) })
	common := Folds{Scheme: folds.Scheme{Way: folds.Seeded, Folds: 10, Seed: s.Seed, Repeats: 1}, Repeats: 1}
	each("folds", func(e entry) { common = s.folds(e) })
	each("missing", func(e entry) {
		if v := s.text(e); v != "skip" && v != "refuse" {
			s.fail(e.valueAt, "missing: want skip or refuse, got %q; the key says whether datasets without a file are skipped "+
				"or are an error", v)
		}
		s.SkipMissing = s.text(e) == "skip"
	})
	weighted := false
	each("weighted_measures", func(e entry) { weighted = s.weighted(e) })
	s.allSets = each("datasets", func(e entry) {
		for _, n := range s.sequence(e) {
			s.try(func() { s.Datasets = append(s.Datasets, s.dataset(n, common, weighted)) })
		}
	}) && len(s.Datasets) > 0
	each("methods", func(e entry) {
		for _, n := range s.sequence(e) {
			if !s.try(func() { s.methods(n) }) && len(s.Methods) == MaxMethods {
				return // the other methods are too many
			}
		}
	})
	s.checkNames()
	each("budget", s.setBudgets)
	s.Measures = DefaultMeasures
	s.allMeasures = each("measures", func(e entry) { s.Measures = s.measures(e) })
	each("clip", func(e entry) {
		given := protocol.Spec{}
		if err := spec.Set(&given, "clip", s.text(e)); err != nil {
			s.fail(e.valueAt, "%v", err)
		}
		s.Clip = given.Clip
	})
	each("record", s.record)
	each("published", func(e entry) {
		for _, n := range s.sequence(e) {
			s.try(func() { s.published(n) })
		}
	})
	s.checkSize()
}

// weighted reads whether measures are weighted.
func (s *parser) weighted(e entry) bool {
	given := protocol.Spec{}
	if err := spec.Set(&given, e.key, s.text(e)); err != nil {
		s.fail(e.valueAt, "%v", err)
	}
	return given.WeightedMeasures
}

// checkNames refuses two datasets or methods of one name, or of names that look alike in a report.
func (s *parser) checkNames() {
	names := make(map[string]int)
	for _, d := range s.Datasets {
		if line, twice := names[d.Name]; twice {
			s.wrong(d.At, "two datasets have the name %q, the first in line %d; give one of them another name with the key name",
				d.Name, line)
		}
		names[d.Name] = d.At.Line
	}
	first := make(map[string]*Method)
	for i := range s.Methods {
		r := &s.Methods[i]
		look := printable.Look(r.Name)
		if strings.EqualFold(look, meanPredictor) {
			s.wrong(r.At, "no method can have the name %q, because each report has a line of this name; give the method "+
				"another name with the key name", r.Name)
		}
		before := first[look]
		switch {
		case before == nil:
			first[look] = r
		case before.Name == r.Name:
			s.wrong(r.At, "two methods have the name %q, the first in line %d: give one another name with the key name, in "+
				"which {setting} becomes the value of a setting", r.Name, before.At.Line)
		default:
			s.wrong(r.At, "the name %q of a method looks like the name %q in line %d; give one of the methods another name "+
				"with the key name", r.Name, before.Name, before.At.Line)
		}
	}
}

// meanPredictor is the name of a line that each report has.
const meanPredictor = "mean baseline"

func (s *parser) measures(e entry) []string {
	names := s.texts(e)
	for i, name := range names {
		s.measure(placeOf(s.sequence(e)[i]), name)
		if slices.Index(names, name) < i {
			s.wrong(placeOf(s.sequence(e)[i]), "measures: %s is listed twice", name)
		}
	}
	return names
}

// checkSize refuses more than MaxRuns runs. Groups and files are counted when the data is there.
func (s *parser) checkSize() {
	runs := 0
	for _, d := range s.Datasets {
		runs += max(1, d.Folds.Scheme.Folds) * d.Folds.Repeats * len(s.Methods)
		if runs > MaxRuns {
			s.wrong(d.At, "the experiment has more than %s runs with this dataset (%s methods, %s repeats, %s folds)",
				units.Count(MaxRuns), units.Count(len(s.Methods)), units.Count(d.Folds.Repeats), units.Count(d.Folds.Scheme.Folds))
			return
		}
	}
}

var publishedKeys = []string{"dataset", "method", "source", "values"}

// published reads the values of one method on one dataset.
func (s *parser) published(n ast.Node) {
	p, before := Published{At: placeOf(n)}, len(s.mistakes)
	var figures []entry
	for _, e := range s.mapping(n, "published values", publishedKeys) {
		switch e.key {
		case "dataset":
			p.Dataset = s.text(e)
			if s.allSets && !slices.ContainsFunc(s.Datasets, func(d Dataset) bool { return d.Name == p.Dataset }) {
				var names []string
				for _, d := range s.Datasets {
					names = append(names, d.Name)
				}
				s.wrong(e.valueAt, "the experiment has no dataset %q%s", p.Dataset, param.Suggest(p.Dataset, names))
			}
		case "method":
			p.Method = s.text(e)
		case "source":
			p.Source = s.text(e)
		case "values":
			figures = s.mapping(e.value, "values", nil)
		}
	}
	if p.Dataset == "" || p.Method == "" || len(figures) == 0 {
		s.lack(before, p.At, "published values need three keys: dataset, method and values")
	}
	for _, e := range figures {
		if !s.try(func() { s.measure(e.at, e.key) }) {
			continue
		}
		if s.allMeasures && !slices.Contains(s.Measures, e.key) {
			s.wrong(e.at, "%s is not a measure of this experiment; its measures are %s", e.key, strings.Join(s.Measures, ", "))
		}
		p.Measure = e.key
		if s.try(func() { p.Value, p.Deviation = s.figure(e) }) {
			s.Published = append(s.Published, p)
		}
	}
}

// setBudgets sets the budget of methods without one. All such methods of an algorithm share a budget.
func (s *parser) setBudgets(e entry) {
	limit := s.duration(e)
	of := make(map[string]*Budget)
	for i := range s.Methods {
		r := &s.Methods[i]
		if r.Budget != nil {
			continue
		}
		if of[r.trained] == nil {
			of[r.trained] = &Budget{limit, r.trained}
		}
		r.Budget = of[r.trained]
	}
}

// record reads what is recorded: a word, or a list of words.
func (s *parser) record(e entry) {
	s.Record.At = e.valueAt
	if word, ok := yamltree.Scalar(e.value); ok {
		if err := s.Record.add(word); err != nil {
			s.fail(e.valueAt, "record: %v", err)
		}
		return
	}
	for i, word := range s.texts(e) {
		if err := s.Record.add(word); err != nil {
			s.wrong(placeOf(s.sequence(e)[i]), "record: %v", err)
		}
	}
}

// datasetKeys are the keys of a dataset that say nothing of how its file is read.
var datasetKeys = []string{"file", "dataset", "name", "folds", "enhance", "mask", "weighted_measures"}

// ReadingKeys are the keys of a dataset that say how its file is read: the flags of train.
var ReadingKeys = []string{
	"labels", "label_columns", "label_prefix", "names", "row_names", "header", "columns", "feature_columns", "drop",
	"categories", "delimiter", "decimal", "thousands", "encoding", "missing",
	"features_variable", "zero_based", "data_format", "sigma", "range", "values", "intervals", "groups", "weights",
	"labels_variable", "bounds", "labels_file", "normalize", "tolerance", validationKey,
}

// ReadingFiles are the keys of ReadingKeys with paths of files.
var ReadingFiles = []string{"names", "labels_file", validationKey}

// dataset reads a dataset. common and weighted are what a dataset has that does not say otherwise.
func (s *parser) dataset(n ast.Node, common Folds, weighted bool) Dataset {
	d := Dataset{Folds: common, WeightedMeasures: weighted, At: placeOf(n)}
	if file, ok := yamltree.Scalar(n); ok {
		d.File = file
	} else if !s.try(func() {
		for _, e := range s.mapping(n, "a dataset", slices.Concat(datasetKeys, ReadingKeys)) {
			s.try(func() {
				switch e.key {
				case "file":
					d.File = s.text(e)
				case "dataset":
					d.On = s.text(e)
				case "name":
					d.Name = s.text(e)
				case "folds":
					d.Folds = s.folds(e)
				case "enhance":
					d.Enhance = s.enhancement(e)
				case "mask":
					mask, err := dataset.ParseMask(s.text(e))
					if err != nil {
						s.fail(e.valueAt, "mask: %v", err)
					}
					d.Mask = mask
				case "weighted_measures":
					d.WeightedMeasures = s.weighted(e)
				default:
					d.Options = append(d.Options, param.Pair{Key: e.key, Value: strings.Join(s.values(e), ",")})
				}
			})
		}
	}) {
		panic(mistake{})
	}
	named := d.Name != ""
	switch {
	case (d.File == "") == (d.On == ""):
		s.fail(d.At, "a dataset is a file (key file) or a dataset on the cluster (key dataset): give exactly one of the "+
			"two keys")
	case d.On != "" && len(d.Options) > 0:
		s.fail(d.At, "%s applies only to a file; a dataset on the cluster was read when it was imported", d.Options[0].Key)
	case d.Name == "" && d.On != "":
		d.Name = d.On
	case d.Name == "":
		d.Name = strings.TrimSuffix(d.File[strings.LastIndexAny(d.File, `/\`)+1:], ".gz")
		if dot := strings.LastIndexByte(d.Name, '.'); dot > 0 {
			d.Name = d.Name[:dot]
		}
	}
	for _, o := range d.Options {
		if o.Value == "" && slices.Contains(ReadingFiles, o.Key) {
			s.fail(d.At, "%s: want the path of a file", o.Key)
		}
	}
	if d.Enhance != nil && !named {
		d.Name += "-" + d.Enhance.Method
	}
	if err := protocol.CheckName(d.Name); err != nil {
		s.fail(d.At, "the dataset's name %q: %v; give the dataset another name with the key name", d.Name, err)
	}
	if len(d.Name) > maxName/2 {
		s.fail(d.At, "the dataset's name %q has %d characters, want at most %d; give the dataset another name with the key "+
			"name", d.Name, len(d.Name), maxName/2)
	}
	return d
}

// foldKeys are the keys of folds. A mapping has exactly one of foldWays, which says how samples are divided.
var (
	foldWays = []string{"k", "sklearn", "groups", "file"}
	foldKeys = slices.Concat(foldWays, []string{"seed", "repeats", "only"})
)

// folds reads how rows are divided: a number, the word groups, or a mapping.
func (s *parser) folds(e entry) Folds {
	f := Folds{Scheme: folds.Scheme{Way: folds.Seeded, Seed: s.Seed, Repeats: 1}, Repeats: 1, At: e.valueAt}
	if text, ok := yamltree.Scalar(e.value); ok {
		if text == folds.Groups {
			f.Scheme = folds.Scheme{Way: folds.Groups}
		} else {
			f.Scheme.Folds = int(s.number(e, 2, spec.MaxFolds))
		}
		return f
	}
	s.foldMapping(&f, e)
	f.Scheme.Repeats = f.Repeats
	if f.Way == folds.Groups || f.Way == folds.File {
		f.Scheme = folds.Scheme{Way: f.Way}
	}
	if err := f.Check(); err != nil {
		s.fail(f.At, "folds: %v", err)
	}
	if n := f.Scheme.Folds * f.Repeats; s.overlapping(&f) && n > dataset.MaxSplits {
		s.fail(f.At, "folds: %s repeats of %s folds make %s splits, want at most %s; folds drawn by the experiment's own "+
			"seed have no such limit",
			units.Count(f.Repeats), units.Count(f.Scheme.Folds), units.Count(n), units.Count(dataset.MaxSplits))
	}
	return f
}

func (s *parser) foldMapping(f *Folds, mapping entry) {
	way, seeded, before := "", false, len(s.mistakes)
	for _, e := range s.mapping(mapping.value, "folds", foldKeys) {
		switch e.key {
		case "seed":
			f.Seed, seeded = s.seed(e), true
			continue
		case "repeats":
			f.Repeats = int(s.number(e, 1, round.MaxCells))
			continue
		case "only":
			f.Only = s.only(e)
			continue
		case "k":
			f.Scheme.Folds = int(s.number(e, 2, spec.MaxFolds))
		case "sklearn":
			f.Way, f.Scheme.Folds = folds.ScikitLearn, int(s.number(e, 2, spec.MaxFolds))
		case "groups":
			if f.Way = folds.Groups; s.text(e) != "true" {
				s.fail(e.valueAt, "groups: the only possible value is true")
			}
		case "file":
			f.Way, f.File = folds.File, s.text(e)
		}
		if way != "" {
			s.fail(e.at, "folds: the keys %s and %s exclude each other: give one of %s", e.key, way,
				strings.Join(foldWays, ", "))
		}
		way = e.key
	}
	switch {
	case way == "":
		s.lack(before, f.At, "folds: the key that says how samples are divided is missing: give one of %s",
			strings.Join(foldWays, ", "))
	case seeded && (f.Way == folds.Groups || f.Way == folds.File):
		s.fail(f.At, "folds: the kind %s has no seed", f.Way)
	}
}

// only reads the numbers of the folds that are run.
func (s *reader) only(e entry) (list []int) {
	for _, n := range s.sequence(e) {
		at := entry{key: e.key, at: e.at, valueAt: placeOf(n), value: n}
		fold := int(s.number(at, 0, spec.MaxFolds-1))
		if slices.Contains(list, fold) {
			s.fail(at.valueAt, "only: fold %d is listed twice", fold)
		}
		list = append(list, fold)
	}
	slices.Sort(list)
	return list
}
