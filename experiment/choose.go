package experiment

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// chooseKeys are the keys of choose: one of the first two says which samples score the candidates.
var chooseKeys = []string{"inner", "validation", "measure"}

// choice says how the runs of a method choose their settings. Each inner fold scores the candidates; with validation, only
// the first one does.
type choice struct {
	folds      string
	validation bool
}

// choose adds a method that chooses among points in each run, by samples that the candidates are not trained on: an ensemble in
// which the best member has all the weight.
func (s *parser) choose(r Method, e entry, settings []param.Pair, points [][]param.Pair) {
	c := s.choice(e)
	if len(points) < 2 {
		s.fail(e.at, "choose: the method has only one candidate; list values of its settings with the key grid, or draw them with the key search")
	}
	var items []param.Item
	for _, point := range points {
		items = append(items, param.Item{Name: r.Algorithm, Set: slices.Concat(settings, point)})
	}
	members, weights := param.FormatItems(items), "best"
	s.check("ensemble", e, "members", members)
	if c.validation {
		weights = "validated"
	}
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
	r.Algorithm = "ensemble"
	s.addMethod(r, []param.Pair{{Key: "members", Value: members}, {Key: "weights", Value: weights}, {Key: "inner_folds", Value: c.folds}})
}

func (s *parser) choice(e entry) choice {
	c, given := choice{folds: "5"}, ""
	for _, x := range s.mapping(e.value, "choose", chooseKeys) {
		switch x.key {
		case "inner":
			c.folds = s.text(x)
			s.check("ensemble", entry{key: x.key, at: x.at, valueAt: x.valueAt}, "inner_folds", c.folds)
		case "validation":
			c.folds, c.validation = strconv.Itoa(s.part(x)), true
		case "measure":
			if s.text(x) != "kl" {
				s.fail(x.valueAt, "choose: settings can be chosen only by the measure kl, got %q", s.text(x))
			}
			continue
		}
		if given != "" {
			s.fail(x.at, "choose: the keys %s and %s exclude each other", x.key, given)
		}
		given = x.key
	}
	return c
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
		s.fail(e.valueAt, "choose: validation: %q is not 1/n of the training samples with a whole n from %d to %d, such as 0.1, 0.2 or 1/9", text, leastParts, mostParts)
	}
	return int(parts)
}
