package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
)

// notes say which folds, methods and datasets count once in the report though the table has them several times, and how ranks
// count datasets with the same samples.
func (s *Summary) notes(g *grid) (list []string) {
	for d := range g.table.Datasets {
		if text := g.repeated(d); text != "" {
			list = append(list, text)
		}
	}
	for i := range g.table.Methods {
		var names []string
		for _, r := range g.table.Methods {
			if r.Same == g.table.Methods[i].Name {
				names = append(names, r.Name)
			}
		}
		if len(names) > 0 {
			list = append(list, fmt.Sprintf("%s and %s are the same method: they have the same hyperparameters on every dataset. Tables, tests and ranks list and count the method once.",
				g.table.Methods[i].Name, strings.Join(names, ", ")))
		}
	}
	for i := range s.Datasets {
		d := &s.Datasets[i]
		if d.Same != "" {
			list = append(list, fmt.Sprintf("The datasets %s and %s have the same samples, labels and folds. Ranks count the two datasets once.", d.Same, d.Name))
			continue
		}
		otherwise := false // divided otherwise than an earlier dataset
		for before := range i {
			b := &s.Datasets[before]
			switch {
			case b.Same != "" || b.Digest != d.Digest || d.Digest == "":
			case sameData(s.Datasets, before, i):
				if text := s.counted(before, i); text != "" {
					list = append(list, text)
				}
			case !otherwise:
				otherwise = true
				list = append(list, fmt.Sprintf("The datasets %s and %s have the same samples and labels, which the spec divides into folds in two ways. Ranks count both datasets.", b.Name, d.Name))
			}
		}
	}
	return list
}

// counted says by which measures ranks count two datasets of the same data once, and by which both; empty: by none.
func (s *Summary) counted(a, b int) string {
	names := [2]string{s.Datasets[a].Name, s.Datasets[b].Name}
	var once, both []string
	for m := range s.Measures {
		measure, _ := measures.Find(s.Measures[m])
		ranked := s.Rankings[m].Datasets
		if before, ok := s.ranker(m).sameValues(b); ok && before == a {
			once = append(once, measure.Title)
		} else if slices.Contains(ranked, names[0]) && slices.Contains(ranked, names[1]) {
			both = append(both, measure.Title)
		}
	}
	text := fmt.Sprintf("The datasets %s and %s have the same samples, labels and folds; only the type of their labels differs.", names[0], names[1])
	if len(once)+len(both) == 0 {
		return ""
	}
	if len(once) > 0 {
		text += fmt.Sprintf(" Ranks count the two datasets once for measures with the same values on both: %s.", strings.Join(once, ", "))
	}
	if len(both) > 0 {
		text += fmt.Sprintf(" Ranks count both datasets for measures whose values differ: %s.", strings.Join(both, ", "))
	}
	return text
}

// repeated says that folds of a dataset divide its rows alike; empty: no two do.
func (g *grid) repeated(d int) string {
	folds, divisions := len(g.folds[d]), len(g.divided[d])
	if folds == divisions {
		return ""
	}
	text := fmt.Sprintf("%s: %s folds divide the samples in only %s, because repeats have the same folds. Equal folds are averaged first, so means, tests and standard deviations are over %s.",
		g.table.Datasets[d].Name, units.Count(folds), count(divisions, "way", "ways"), count(divisions, "value", "values"))
	var equal []string
	for method := range g.table.Methods {
		if len(g.done[d][method]) == folds && !g.drawn(d, method) {
			equal = append(equal, g.table.Methods[method].Name)
		}
	}
	if len(equal) > 0 {
		text += " The repeats add nothing for " + strings.Join(equal, ", ") + ": every repeat gives the same values."
	}
	return text
}
