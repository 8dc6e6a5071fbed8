package experiment

import (
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

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
