package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// The kinds of suspects.
const (
	SuspectRowNumber = "row number" // it numbers the rows
	SuspectConstant  = "constant"   // it has one value
	SuspectLabel     = "label"      // it is a label or follows from one
)

// Suspect is a feature that looks wrong.
type Suspect struct {
	Feature int    `json:"feature"` // from 0
	Name    string `json:"name,omitempty"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
}

// suspectRows is the least number of rows for suspects other than constants.
const suspectRows = 10

// copyCorrelation is the absolute correlation above which a feature counts as a copy of a
// label.
const copyCorrelation = 0.999

// suspects lists the features that look wrong, in the order of their numbers.
func (w *featureStats) suspects() (all []Suspect) {
	for i, c := range w.columns {
		c = c.finish(w.rows)
		s := Suspect{Feature: i, Name: nameAt(w.info.FeatureNames, i)}
		label, r := 0, 0.0
		if w.correlations != nil {
			label, r = w.correlations.closest(i)
		}
		switch {
		case c.low == c.high && w.rows > 1 && c.missing == 0:
			s.Kind, s.Reason = SuspectConstant, fmt.Sprintf("is %s in every sample", units.InFull(c.low))
		case math.Abs(r) > copyCorrelation:
			s.Kind, s.Reason = SuspectLabel, fmt.Sprintf("is %s or follows from it (correlation %.4f)", w.target(label), r)
		case namedAsNumber(s.Name):
			s.Kind, s.Reason = SuspectRowNumber, "has the name of a row number"
		case w.rows >= suspectRows && !c.fraction && !c.falls && c.missing == 0:
			s.Kind, s.Reason = SuspectRowNumber, "looks like a row number: its whole numbers increase from row to row"
		default:
			continue
		}
		all = append(all, s)
	}
	return all
}

// target names a label, or what the labels were made from.
func (w *featureStats) target(label int) string {
	if w.info.Labels != len(w.correlations.y0) {
		return "the label"
	}
	if name := nameAt(w.info.LabelNames, label); name != "" {
		return fmt.Sprintf("label %q", name)
	}
	return fmt.Sprintf("label %d", label)
}

func namedAsNumber(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"id", "index", "idx", "row", "row_id", "rowid"}, name) || strings.HasPrefix(name, "unnamed: ")
}

// warningNames is how many features of one kind a warning names.
const warningNames = 8

// warnings returns a line for each suspect, up to a bound.
func warnings(suspects []Suspect) (lines []string) {
	var constant []Suspect
	byKind := map[string]int{}
	for _, s := range suspects {
		if s.Kind == SuspectConstant {
			constant = append(constant, s)
			continue
		}
		if byKind[s.Kind]++; byKind[s.Kind] <= warningNames {
			lines = append(lines, fmt.Sprintf("%s %s%s", s.title(), s.Reason, s.advice()))
		}
	}
	for _, kind := range []string{SuspectRowNumber, SuspectLabel} {
		if n := byKind[kind] - warningNames; n > 0 {
			lines = append(lines, fmt.Sprintf("%s more features look suspicious in the same way (%s)", units.Count(n), kind))
		}
	}
	if len(constant) > 0 {
		lines = append(lines, constantLine(constant))
	}
	return lines
}

func (s *Suspect) title() string {
	if s.Name == "" {
		return fmt.Sprintf("feature %d", s.Feature)
	}
	return fmt.Sprintf("feature %q", s.Name)
}

// advice says how to leave the feature out; its number need not be its column's.
func (s *Suspect) advice() string {
	if s.Name == "" {
		return "; --drop leaves columns out"
	}
	return fmt.Sprintf("; --drop %s leaves it out", s.Name)
}

func constantLine(constant []Suspect) string {
	var names []string
	for i := range constant[:min(warningNames, len(constant))] {
		names = append(names, strings.TrimPrefix(constant[i].title(), "feature "))
	}
	list := strings.Join(names, ", ")
	if n := len(constant) - len(names); n > 0 {
		list += fmt.Sprintf(" and %s more", units.Count(n))
	}
	if len(constant) == 1 {
		return fmt.Sprintf("feature %s %s", list, constant[0].Reason)
	}
	return fmt.Sprintf("%s features are constant, each with one value in all samples: %s", units.Count(len(constant)), list)
}
