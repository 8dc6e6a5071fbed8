package experiment

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

var topKeys = []string{"name", "seed", "datasets", "missing", "folds", "methods", "measures", "clip", "budget", "record", "published"}

// Parse reads the spec of an experiment from the text of a file. It checks all that does not
// depend on the data. If it finds mistakes, the error is of type Errors and has all of them, and
// the spec has what could be read. If ctx is done first, the error is ctx's.
func Parse(ctx context.Context, file string, b []byte) (s *Spec, err error) {
	s = &Spec{Seed: spec.DefaultSeed, file: file, Source: string(b), ctx: ctx}
	defer func() { s.ctx = nil }()
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
	return s, s.mistakes.Sorted()
}

// read reads the keys in the order in which they depend on each other. After a mistake it reads on, and leaves out what
// depends on the mistaken item.
func (s *Spec) read(list []entry) {
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
			s.fail(e.valueAt, "missing: want skip or refuse, got %q; the key says whether datasets without a file are skipped or are an error", v)
		}
		s.SkipMissing = s.text(e) == "skip"
	})
	s.allSets = each("datasets", func(e entry) {
		for _, n := range s.sequence(e) {
			s.try(func() { s.Datasets = append(s.Datasets, s.dataset(n, common)) })
		}
	}) && len(s.Datasets) > 0
	each("methods", func(e entry) {
		for _, n := range s.sequence(e) {
			if !s.try(func() { s.rows(n) }) && len(s.Rows) == MaxMethods {
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

// maxName leaves room for the names of the jobs.
const maxName = 60

func (s *Spec) seed(e entry) uint64 {
	v, err := strconv.ParseUint(s.text(e), 10, 64)
	if err != nil {
		s.fail(e.valueAt, "%s: %q is not a whole number from 0 to 2^64 - 1", e.key, s.text(e))
	}
	return v
}

// checkNames refuses two datasets or rows of one name, or of names that look alike in a report.
func (s *Spec) checkNames() {
	names := make(map[string]int)
	for _, d := range s.Datasets {
		if line, twice := names[d.Name]; twice {
			s.wrong(d.At, "two datasets have the name %q, the first in line %d; give one of them another name with the key name", d.Name, line)
		}
		names[d.Name] = d.At.Line
	}
	first := make(map[string]*Row)
	for i := range s.Rows {
		r := &s.Rows[i]
		look := printable.Look(r.Name)
		if strings.EqualFold(look, meanPredictor) {
			s.wrong(r.At, "no method can have the name %q, because each report has a line of this name; give the method another name with the key name", r.Name)
		}
		before := first[look]
		switch {
		case before == nil:
			first[look] = r
		case before.Name == r.Name:
			s.wrong(r.At, "two methods have the name %q, the first in line %d: give one another name with the key name, in which {setting} becomes the value of a setting", r.Name, before.At.Line)
		default:
			s.wrong(r.At, "the name %q of a method looks like the name %q in line %d; give one of the methods another name with the key name", r.Name, before.Name, before.At.Line)
		}
	}
}

// meanPredictor is the name of a line that each report has.
const meanPredictor = "mean baseline"

// rowNameOf reads the name of a row, without the white space around it.
func (s *Spec) rowNameOf(e entry) string {
	name := strings.TrimSpace(s.text(e))
	switch at := strings.IndexFunc(name, unicode.IsControl); {
	case printable.Look(name) == "":
		s.fail(e.valueAt, "name: the name is empty")
	case !utf8.ValidString(name):
		s.fail(e.valueAt, "name: %q is not valid UTF-8", name)
	case at >= 0:
		s.fail(e.valueAt, "name: %q contains the control character %U; a name is one line of text", name, []rune(name[at:])[0])
	}
	return name
}

func (s *Spec) measures(e entry) []string {
	names := s.texts(e)
	for i, name := range names {
		s.measure(placeOf(s.sequence(e)[i]), name)
		if slices.Index(names, name) < i {
			s.wrong(placeOf(s.sequence(e)[i]), "measures: %s is listed twice", name)
		}
	}
	return names
}

// measure records a mistake if there is no such measure.
func (s *Spec) measure(at yamltree.Place, name string) {
	if known := measures.Names(); !slices.Contains(known, name) {
		s.wrong(at, "unknown measure %q%s; the measures are %s", name, param.Suggest(name, known), strings.Join(known, ", "))
	}
}

// checkSize refuses more than MaxRuns cells. Groups and files are counted when the data is there.
func (s *Spec) checkSize() {
	cells := 0
	for _, d := range s.Datasets {
		cells += max(1, d.Folds.Scheme.Folds) * d.Folds.Repeats * len(s.Rows)
		if cells > MaxRuns {
			s.wrong(d.At, "the experiment has more than %s runs with this dataset (%s methods, %s repeats, %s folds)", units.Count(MaxRuns), units.Count(len(s.Rows)), units.Count(d.Folds.Repeats), units.Count(d.Folds.Scheme.Folds))
			return
		}
	}
}

var publishedKeys = []string{"dataset", "method", "source", "values"}

// published reads the values of one method on one dataset.
func (s *Spec) published(n ast.Node) {
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
			p.Row = s.text(e)
		case "source":
			p.Source = s.text(e)
		case "values":
			figures = s.mapping(e.value, "values", nil)
		}
	}
	if p.Dataset == "" || p.Row == "" || len(figures) == 0 {
		lack(s, before, p.At, "published values need three keys: dataset, method and values")
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

// figure reads a number, or one with its standard deviation: .073±.005.
func (s *Spec) figure(e entry) (value, deviation float64) {
	text := s.text(e)
	v, d, both := strings.Cut(text, "±")
	value, err := parseNumber(v)
	if both && err == nil {
		deviation, err = parseNumber(d)
	}
	if err != nil || deviation < 0 {
		s.fail(e.valueAt, "%s: %q is not a number, nor a mean and a standard deviation such as 0.073±0.005", e.key, text)
	}
	return value, deviation
}

// parseNumber reads a number as settings are read: without Go's underscores and hexadecimal forms.
func parseNumber(text string) (float64, error) {
	p := param.Param{Kind: param.KindFloat, Min: -math.MaxFloat64, Max: math.MaxFloat64}
	v, err := p.Parse(strings.TrimSpace(text))
	if err != nil {
		return 0, err
	}
	return v.(float64), nil
}
