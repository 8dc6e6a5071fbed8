package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// mostConcluded bounds the methods that a conclusion names in one place.
const mostConcluded = 6

// addConclusion adds a sentence that says which method is best by the first measure, and how sure that is. Over several
// datasets, a table says how often each method is best.
func (d *document) addConclusion(s *Summary) {
	r := &s.Rankings[0]
	measure, _ := measures.Find(r.Measure)
	direction := "lower"
	if measure.HigherIsBetter {
		direction = "higher"
	}
	by := fmt.Sprintf("By %s (%s is better), ", measure.Title, direction)
	switch {
	case len(s.listed()) < 2:
		d.add(paragraph("There is only one method, so there is nothing to compare."))
	case len(s.Datasets) == 1:
		d.add(paragraph(by + s.concludeDataset(0)))
	case len(r.Methods) < 2 || len(r.Datasets) == 0:
		d.add(paragraph(by + "no method can be called the best yet: on each dataset, methods lack results of folds."))
	case len(r.Datasets) == 1:
		at := slices.IndexFunc(s.Datasets, func(set result.Dataset) bool { return set.Name == r.Datasets[0] })
		d.add(paragraph(by + s.concludeDataset(at)))
	default:
		var others []string
		for _, i := range s.listed() {
			if name := s.Methods[i].Name; !slices.ContainsFunc(r.Methods, func(m Ranked) bool { return m.Method == name }) {
				others = append(others, name)
			}
		}
		d.add(paragraph(by + r.conclude(s.Level) + notCompared(others)))
		d.addPlaces(s, r)
	}
}

// conclude says which method has the best average rank, and from which others it differs.
func (r *Ranking) conclude(level float64) string {
	var best, alike, worse []string
	for _, m := range r.Methods {
		if m.Rank == r.Methods[0].Rank {
			best = append(best, m.Method)
		}
	}
	text := fmt.Sprintf("%s has the best average rank over %s: %s", best[0], units.Plural(len(r.Datasets), "dataset"),
		fixed(r.Methods[0].Rank, 2))
	if len(best) > 1 {
		text = fmt.Sprintf("%s share the best average rank over %s: %s", named(best),
			units.Plural(len(r.Datasets), "dataset"), fixed(r.Methods[0].Rank, 2))
	} else {
		text += fmt.Sprintf(", before %s with %s", r.Methods[1].Method, fixed(r.Methods[1].Rank, 2))
	}
	f := r.Friedman
	if f == nil || !f.compared() {
		text += ". The difference is not significant: "
		if f == nil {
			return text + "there is no test of these ranks."
		}
		text += fmt.Sprintf("Friedman's test finds no difference between the methods (%s, level %v).", pIs(f.P), level)
		if f.Least >= number(level) {
			text += " So few datasets cannot show one."
		}
		return text
	}
	if len(f.Alike) > 0 && f.Alike[0][0] == r.Methods[0].Method {
		alike = f.Alike[0]
	}
	for _, m := range r.Methods {
		if !slices.Contains(alike, m.Method) && m.Method != best[0] {
			worse = append(worse, m.Method)
		}
	}
	alike = slices.DeleteFunc(slices.Clone(alike), func(name string) bool { return slices.Contains(best, name) })
	return text + differences(alike, worse, len(best) > 1, fmt.Sprintf("Nemenyi's test, level %v", level))
}

// concludeDataset says which method is best on one dataset, and from which others it differs.
func (s *Summary) concludeDataset(dataset int) string {
	r := s.at(dataset, 0)
	var best, alike, worse, others []string
	value, folds := number(0), 0
	for _, i := range s.listed() {
		l := &r.Lines[i]
		_, is := l.differs(s.Level)
		switch {
		case !l.compared():
			others = append(others, l.Method)
		case l.Place == 1:
			best, value, folds = append(best, l.Method), l.Mean, l.Folds
		case is:
			worse = append(worse, l.Method)
		default:
			alike = append(alike, l.Method)
		}
	}
	if len(best)+len(alike)+len(worse) < 2 || len(best) == 0 {
		return "no method can be called the best yet: fewer than two methods have the results of all folds."
	}
	verb := "is"
	if len(best) > 1 {
		verb = "are equally"
	}
	text := fmt.Sprintf("%s %s best on %s, with a mean of %s", named(best), verb, r.Dataset, r.format().text(value))
	switch {
	case s.options.Against != "": // the tests compare with another method
		text += "."
	case folds < 2:
		text += ". Whether the difference is significant is not known: a single fold cannot be tested."
	default:
		text += differences(alike, worse, len(best) > 1, fmt.Sprintf("corrected resampled t-test, level %v", s.Level))
	}
	return text + notCompared(others)
}

// notCompared is a sentence about the methods that are not compared. It is empty if there are none.
func notCompared(methods []string) string {
	if len(methods) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not compared, since results of folds are missing: %s.", named(methods))
}

// differences says from which methods the best ones do not differ (alike), and from which they do. several is true if
// there are several best ones.
func differences(alike, worse []string, several bool, test string) string {
	it, is := "It is", "it is"
	if several {
		it, is = "They are", "they are"
	}
	switch {
	case len(worse) == 0 && len(alike) == 0:
		return ", and no method is worse."
	case len(worse) == 0:
		return fmt.Sprintf(". The difference to the other methods is not significant (%s).", test)
	case len(alike) == 0:
		return fmt.Sprintf(". %s significantly better than all other methods (%s).", it, test)
	}
	return fmt.Sprintf(". The difference to %s is not significant, but %s significantly better than %s (%s).",
		named(alike), is, named(worse), test)
}

// named lists names, and counts those without room.
func named(names []string) string {
	last := names[len(names)-1]
	switch n := len(names) - mostConcluded + 1; {
	case len(names) == 1:
		return last
	case n > 1:
		return fmt.Sprintf("%s and %d others", strings.Join(names[:mostConcluded-1], ", "), n)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + last
}

// addPlaces adds a table with the number of datasets on which each method is the best, does not differ from the best,
// or is worse. Datasets of the ranking count.
func (d *document) addPlaces(s *Summary, r *Ranking) {
	if s.options.Against != "" { // addWins has another such table
		return
	}
	measure, _ := measures.Find(r.Measure)
	t := table{header: []string{"method", "average rank", "best", "not different from the best", "worse"},
		caption: fmt.Sprintf("Number of datasets on which a method is best by %s, does not differ from the best, or is "+
			"worse",
			measure.Title)}
	for _, ranked := range r.Methods {
		at := slices.IndexFunc(s.Methods, func(m result.Method) bool { return m.Name == ranked.Method })
		var best, alike, worse int
		for set := range s.Datasets {
			own := &s.at(set, 0).Lines[at]
			switch _, is := own.differs(s.Level); {
			case !slices.Contains(r.Datasets, s.Datasets[set].Name):
			case own.Place == 1:
				best++
			case is:
				worse++
			default:
				alike++
			}
		}
		t.lines = append(t.lines, line{cells: plain(s.title(at), fixed(ranked.Rank, 2), fmt.Sprint(best), fmt.Sprint(alike),
			fmt.Sprint(worse))})
	}
	d.addWide(t)
}
