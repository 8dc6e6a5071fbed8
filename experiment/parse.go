package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/algorithms/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/round"
	"github.com/coppice-ldl/coppice/spec"
)

var topKeys = []string{"name", "seed", "datasets", "missing", "folds", "rows", "measures", "clip", "budget", "record", "published"}

// Parse reads the spec of an experiment from the text of a file. It checks all that does not
// depend on the data. Errors are *spec.Error, with line and column.
func Parse(file string, b []byte) (s *Spec, err error) {
	s = &Spec{Seed: spec.DefaultSeed, file: file}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fault:
			s, err = nil, p.err
		default:
			panic(p)
		}
	}()
	root, wrong := kind.Mapping(b)
	if wrong != nil {
		return nil, s.Error(wrong.Place, "%s", wrong.Reason)
	}
	if root == nil {
		return nil, s.Error(yamltree.Place{}, "empty; %s %s", kind.Name, kind.Looks)
	}
	s.read(s.mapping(root, kind.Name, topKeys))
	return s, nil
}

// read reads the keys in the order in which they depend on each other.
func (s *Spec) read(list []entry) {
	at := make(map[string]entry)
	for _, e := range list {
		at[e.key] = e
	}
	for _, key := range []string{"name", "datasets", "rows"} {
		if _, ok := at[key]; !ok {
			s.fail(yamltree.Place{}, "the key %s is missing", key)
		}
	}
	s.readName(at["name"])
	if e, ok := at["seed"]; ok {
		s.Seed = s.seed(e)
	}
	common := Folds{Scheme: folds.Scheme{Way: folds.Seeded, Folds: 10, Seed: s.Seed, Repeats: 1}, Repeats: 1}
	if e, ok := at["folds"]; ok {
		common = s.folds(e)
	}
	if e, ok := at["missing"]; ok {
		if v := s.text(e); v != "skip" && v != "refuse" {
			s.fail(e.valueAt, "missing: %q is not skip or refuse: what becomes of datasets whose files are not there", v)
		}
		s.SkipMissing = s.text(e) == "skip"
	}
	for _, n := range s.sequence(at["datasets"]) {
		s.Datasets = append(s.Datasets, s.dataset(n, common))
	}
	for _, n := range s.sequence(at["rows"]) {
		s.rows(n)
	}
	s.checkNames()
	if e, ok := at["budget"]; ok {
		s.setBudgets(e)
	}
	s.Measures = DefaultMeasures
	if e, ok := at["measures"]; ok {
		s.Measures = s.measures(e)
	}
	if e, ok := at["clip"]; ok {
		given := protocol.Spec{}
		if err := spec.Set(&given, "clip", s.text(e)); err != nil {
			s.fail(e.valueAt, "%v", err)
		}
		s.Clip = given.Clip
	}
	if e, ok := at["record"]; ok {
		s.record(e)
	}
	if e, ok := at["published"]; ok {
		for _, n := range s.sequence(e) {
			s.published(n)
		}
	}
	s.checkSize()
}

// maxName leaves room for the names of the jobs.
const maxName = 60

func (s *Spec) readName(e entry) {
	s.Name = s.text(e)
	if err := protocol.CheckName(s.Name); err != nil {
		s.fail(e.valueAt, "name: %v", err)
	}
	if len(s.Name) > maxName {
		s.fail(e.valueAt, "name: %d characters, at most %d are allowed", len(s.Name), maxName)
	}
}

func (s *Spec) seed(e entry) uint64 {
	v, err := strconv.ParseUint(s.text(e), 10, 64)
	if err != nil {
		s.fail(e.valueAt, "%s: %q is not a whole number from 0 to 2^64 - 1", e.key, s.text(e))
	}
	return v
}

// foldWays are the keys of folds of which one says how rows are divided; foldKeys are all.
var (
	foldWays = []string{"k", "sklearn", "groups", "file"}
	foldKeys = slices.Concat(foldWays, []string{"seed", "repeats", "only"})
)

// folds reads how rows are divided: a number, the word groups, or a mapping.
func (s *Spec) folds(e entry) Folds {
	f := Folds{Scheme: folds.Scheme{Way: folds.Seeded, Seed: s.Seed, Repeats: 1}, Repeats: 1, At: e.valueAt}
	if text, ok := yamltree.Scalar(e.value); ok {
		if text == folds.Groups {
			f.Scheme = folds.Scheme{Way: folds.Groups}
		} else {
			f.Scheme.Folds = int(s.number(e, 2, spec.MaxFolds))
		}
		return f
	}
	s.foldMapping(&f, s.mapping(e.value, "folds", foldKeys))
	f.Scheme.Repeats = f.Repeats
	if f.Way == folds.Groups || f.Way == folds.File {
		f.Scheme = folds.Scheme{Way: f.Way}
	}
	s.checkFolds(&f)
	return f
}

// checkFolds refuses folds that divide no rows at all, and lists of too many.
func (s *Spec) checkFolds(f *Folds) {
	if err := f.Check(); err != nil {
		s.fail(f.At, "folds: %v", err)
	}
	if n := f.Scheme.Folds * f.Repeats; s.overlapping(f) && n > dataset.MaxSplits {
		s.fail(f.At, "folds: %d repeats of %d folds that are listed, %d in all, at most %d are possible; folds of the experiment's own seed need no list", f.Repeats, f.Scheme.Folds, n, dataset.MaxSplits)
	}
}

func (s *Spec) foldMapping(f *Folds, list []entry) {
	way, seeded := "", false
	for _, e := range list {
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
				s.fail(e.valueAt, "groups: want true")
			}
		case "file":
			f.Way, f.File = folds.File, s.text(e)
		}
		if way != "" {
			s.fail(e.at, "folds: %s does not go with %s: give one of %s", e.key, way, strings.Join(foldWays, ", "))
		}
		way = e.key
	}
	switch {
	case way == "":
		s.fail(f.At, "folds: how many is missing: give one of %s", strings.Join(foldWays, ", "))
	case seeded && (f.Way == folds.Groups || f.Way == folds.File):
		s.fail(f.At, "folds: %s have no seed", f.Way)
	}
}

// only reads the numbers of the folds that are run.
func (s *Spec) only(e entry) (list []int) {
	for _, n := range s.sequence(e) {
		at := entry{key: e.key, at: e.at, valueAt: placeOf(n), value: n}
		fold := int(s.number(at, 0, spec.MaxFolds-1))
		if slices.Contains(list, fold) {
			s.fail(at.valueAt, "only: fold %d stands there twice", fold)
		}
		list = append(list, fold)
	}
	slices.Sort(list)
	return list
}

// datasetKeys are the keys of a dataset that say nothing of how its file is read.
var datasetKeys = []string{"file", "dataset", "name", "folds"}

// ReadingKeys are the keys of a dataset that say how its file is read: the flags of train.
var ReadingKeys = []string{
	"labels", "label_columns", "label_prefix", "names", "row_names", "header", "feature_columns", "drop", "delimiter", "decimal", "missing",
	"features_variable", "zero_based", "data_format", "sigma", "range", "values", "intervals", "groups", "labels_variable", "labels_file", "normalize", "tolerance",
}

func (s *Spec) dataset(n ast.Node, common Folds) Dataset {
	d := Dataset{Folds: common, At: placeOf(n)}
	if file, ok := yamltree.Scalar(n); ok {
		d.File = file
	} else {
		for _, e := range s.mapping(n, "a dataset", slices.Concat(datasetKeys, ReadingKeys)) {
			s.datasetKey(&d, e)
		}
	}
	switch {
	case (d.File == "") == (d.On == ""):
		s.fail(d.At, "a dataset is a file, or a dataset of the cluster: give one of the keys file and dataset")
	case d.On != "" && len(d.Options) > 0:
		s.fail(d.At, "%s says how a file is read; a dataset of the cluster was read when it was imported", d.Options[0].Key)
	case d.Name == "" && d.On != "":
		d.Name = d.On
	case d.Name == "":
		d.Name = nameOf(d.File)
	}
	if err := protocol.CheckName(d.Name); err != nil || len(d.Name) > maxName/2 {
		s.fail(d.At, "the dataset's name %q is none, or is longer than %d characters: give it another by the key name", d.Name, maxName/2)
	}
	return d
}

func (s *Spec) datasetKey(d *Dataset, e entry) {
	switch e.key {
	case "file":
		d.File = s.text(e)
	case "dataset":
		d.On = s.text(e)
	case "name":
		d.Name = s.text(e)
	case "folds":
		d.Folds = s.folds(e)
	default:
		d.Options = append(d.Options, param.Pair{Key: e.key, Value: strings.Join(s.values(e), ",")})
	}
}

// nameOf makes a dataset's name of a file's.
func nameOf(path string) string {
	base := strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".gz")
	if dot := strings.LastIndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	return base
}

var rowKeys = []string{"algorithm", "name", "preset", "settings", "grid", "search", "choose", "budget"}

// rows reads one item of rows: an algorithm, or a mapping, which is a row for each point of
// its grid or its search.
func (s *Spec) rows(n ast.Node) {
	r := Row{At: placeOf(n)}
	if name, ok := yamltree.Scalar(n); ok {
		r.Algorithm = s.algorithm(r.At, name)
		r.trained = r.Algorithm
		s.addRow(r, nil)
		return
	}
	at := make(map[string]entry)
	for _, e := range s.mapping(n, "a row", rowKeys) {
		at[e.key] = e
	}
	e, ok := at["algorithm"]
	if !ok {
		s.fail(r.At, "a row without an algorithm")
	}
	r.Algorithm = s.algorithm(e.valueAt, s.text(e))
	r.trained = r.Algorithm
	if e, ok := at["name"]; ok {
		r.Name = s.text(e)
	}
	var settings []param.Pair
	if e, ok := at["preset"]; ok {
		s.check(r.Algorithm, e, "preset", s.text(e))
		settings = append(settings, param.Pair{Key: "preset", Value: s.text(e)})
	}
	if e, ok := at["settings"]; ok {
		for _, given := range s.mapping(e.value, "settings", nil) {
			settings = append(settings, s.setting(r.Algorithm, given))
		}
	}
	if e, ok := at["budget"]; ok {
		r.Budget = &Budget{s.duration(e), fmt.Sprintf("line %d", r.At.Line)} // of all points together
	}
	points := s.points(&r, at)
	if e, ok := at["choose"]; ok {
		s.choose(r, e, settings, points)
		return
	}
	for _, point := range points {
		s.addRow(r, slices.Concat(settings, point))
	}
}

// setting reads one setting of an algorithm, whose value may be a list of items.
func (s *Spec) setting(algorithm string, e entry) param.Pair {
	value := strings.Join(s.values(e), ",")
	s.check(algorithm, e, e.key, value)
	return param.Pair{Key: e.key, Value: value}
}

// check refuses a setting that the algorithm does not have, or a value that it cannot have.
func (s *Spec) check(algorithm string, e entry, key, value string) {
	if slices.ContainsFunc(spec.Common(), func(p param.Param) bool { return p.Name == key }) {
		s.fail(e.at, "%s: a row has settings of its algorithm; %s is the experiment's", key, key)
	}
	given := protocol.Spec{Algorithm: algorithm}
	err := spec.Set(&given, key, value)
	if err == nil {
		return
	}
	if a, found := registry.Find(algorithm); found == nil {
		if names := settingNames(a); !slices.Contains(names, key) {
			s.fail(e.at, "%s: %s has no such setting%s; its settings are %s", key, algorithm, param.Suggest(key, names), strings.Join(names, ", "))
		}
	}
	s.fail(e.valueAt, "%v", err)
}

// settingNames lists the settings of an algorithm.
func settingNames(a algorithms.Algorithm) (names []string) {
	for _, p := range a.Params() {
		names = append(names, p.Name)
	}
	return names
}

func (s *Spec) algorithm(at yamltree.Place, name string) string {
	given := protocol.Spec{}
	if err := spec.Set(&given, "algorithm", name); err != nil {
		names := registry.Names()
		s.fail(at, "algorithm: %q is unknown%s; known are %s", name, param.Suggest(name, names), strings.Join(names, ", "))
	}
	return name
}

func (s *Spec) addRow(r Row, settings []param.Pair) {
	switch {
	case r.Name == "":
		r.Name = rowName(r.Algorithm, settings)
	default: // of a grid each point has a name of its own
		for _, p := range settings {
			r.Name = strings.ReplaceAll(r.Name, "{"+p.Key+"}", p.Value)
		}
	}
	r.Settings = make(map[string]string)
	for _, p := range settings {
		if _, twice := r.Settings[p.Key]; twice {
			s.fail(r.At, "%s: given twice in one row", p.Key)
		}
		r.Settings[p.Key] = p.Value
	}
	if len(s.Rows) == round.MaxCells {
		s.fail(r.At, "more than %s rows", units.Count(round.MaxCells))
	}
	s.Rows = append(s.Rows, r)
}

// checkNames refuses two datasets or rows of one name.
func (s *Spec) checkNames() {
	names := make(map[string]int)
	for _, d := range s.Datasets {
		if line, twice := names[d.Name]; twice {
			s.fail(d.At, "a second dataset with the name %q; the first is in line %d", d.Name, line)
		}
		names[d.Name] = d.At.Line
	}
	clear(names)
	for _, r := range s.Rows {
		if line, twice := names[r.Name]; twice {
			s.fail(r.At, "a second row with the name %q; the first is in line %d; the key name gives a row another, in which {setting} stands for a setting's value", r.Name, line)
		}
		names[r.Name] = r.At.Line
	}
}

func (s *Spec) measures(e entry) []string {
	names := s.texts(e)
	for i, name := range names {
		s.measure(placeOf(s.sequence(e)[i]), name)
		if slices.Index(names, name) < i {
			s.fail(placeOf(s.sequence(e)[i]), "measures: %s stands there twice", name)
		}
	}
	return names
}

func (s *Spec) measure(at yamltree.Place, name string) {
	if known := measures.Names(); !slices.Contains(known, name) {
		s.fail(at, "no such measure as %q%s; the measures are %s", name, param.Suggest(name, known), strings.Join(known, ", "))
	}
}

var publishedKeys = []string{"dataset", "row", "source", "figures"}

// published reads the figures of one row on one dataset.
func (s *Spec) published(n ast.Node) {
	p := Published{At: placeOf(n)}
	var figures []entry
	for _, e := range s.mapping(n, "a published figure", publishedKeys) {
		switch e.key {
		case "dataset":
			p.Dataset = s.text(e)
			if !slices.ContainsFunc(s.Datasets, func(d Dataset) bool { return d.Name == p.Dataset }) {
				var names []string
				for _, d := range s.Datasets {
					names = append(names, d.Name)
				}
				s.fail(e.valueAt, "no such dataset as %q%s", p.Dataset, param.Suggest(p.Dataset, names))
			}
		case "row":
			p.Row = s.text(e)
		case "source":
			p.Source = s.text(e)
		case "figures":
			figures = s.mapping(e.value, "figures", nil)
		}
	}
	if p.Dataset == "" || p.Row == "" || len(figures) == 0 {
		s.fail(p.At, "a published figure needs the keys dataset, row and figures")
	}
	for _, e := range figures {
		s.measure(e.at, e.key)
		if !slices.Contains(s.Measures, e.key) {
			s.fail(e.at, "the experiment does not have the measure %s: its measures are %s", e.key, strings.Join(s.Measures, ", "))
		}
		p.Measure = e.key
		p.Value, p.Deviation = s.figure(e)
		s.Published = append(s.Published, p)
	}
}

// figure reads a number, or one with its deviation: .073±.005.
func (s *Spec) figure(e entry) (value, deviation float64) {
	text := s.text(e)
	v, d, both := strings.Cut(text, "±")
	value, err := parseNumber(v)
	if both && err == nil {
		deviation, err = parseNumber(d)
	}
	if err != nil || deviation < 0 {
		s.fail(e.valueAt, "%s: %q is no number, nor two such as 0.073±0.005", e.key, text)
	}
	return value, deviation
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && v-v != 0 {
		err = errors.New("not finite")
	}
	return v, err
}

// checkSize refuses more than a million cells, as far as the spec says their number: groups and
// files are counted when the data is there.
func (s *Spec) checkSize() {
	cells := 0
	for _, d := range s.Datasets {
		cells += max(1, d.Folds.Scheme.Folds) * d.Folds.Repeats * len(s.Rows)
		if cells > round.MaxCells {
			s.fail(d.At, "more than %s cells: the datasets up to this one, %s rows, and %s repeats of %s folds", units.Count(round.MaxCells), units.Count(len(s.Rows)), units.Count(d.Folds.Repeats), units.Count(d.Folds.Scheme.Folds))
		}
	}
}
