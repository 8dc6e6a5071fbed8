package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// OtherNote says that a place has the results of another spec with the name of s; before is their layout.
func OtherNote(s *Spec, before *Layout, place string) []string {
	if kinship, _ := s.Compare(before); kinship != OtherSpec {
		return nil
	}
	return []string{fmt.Sprintf("%s had results of another spec with the same name, %s. Reports now use this spec. The results of the other spec are kept, and used if it is run again", place, before.Table.Spec.File)}
}

// Orphans are the runs of an earlier layout that have results, or will have them, and that a new layout does not have.
type Orphans struct {
	Count int
	List  []string // by dataset and method, at most maxOrphans
}

// maxOrphans bounds the lines that list orphans.
const maxOrphans = 1000

// OrphansOf returns the orphans of a layout that replaces an earlier one, or nil; has reports whether a run has a result or
// will have one.
func (l *Layout) OrphansOf(before *Layout, has func(key string) bool) (o Orphans) {
	if before == nil {
		return o
	}
	keeps := l.Has()
	counts, order := make(map[result.Name]int), []result.Name(nil) // by dataset and method
	for i, key := range before.Keys {
		if key == "" || keeps[key] || !has(key) {
			continue
		}
		o.Count++
		of := before.Table.NameOf(&before.Table.Runs[i])
		of.Repeat, of.Fold = 0, 0
		if counts[of]++; counts[of] == 1 {
			order = append(order, of)
		}
	}
	for i, of := range order {
		if i == maxOrphans {
			o.List = append(o.List, fmt.Sprintf("%s more methods", units.Count(len(order)-i)))
			break
		}
		o.List = append(o.List, fmt.Sprintf("%s, %s: %s", of.Dataset, of.Method, runs(counts[of])))
	}
	return o
}

// runs counts runs.
func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return units.Count(n) + " runs"
}

// UnmeasuredNotes names the methods that have none of the measures of a table, such as methods that predict numbers if all
// measures are of distributions.
func UnmeasuredNotes(t *result.Table) (list []string) {
	ended, measured := make([]bool, len(t.Methods)), make([]bool, len(t.Methods))
	for _, c := range t.Runs {
		ended[c.Method] = ended[c.Method] || len(c.Values) > 0
		measured[c.Method] = measured[c.Method] || slices.ContainsFunc(c.Values, func(v float64) bool { return !math.IsNaN(v) })
	}
	for i := range t.Methods {
		if ended[i] && !measured[i] {
			list = append(list, fmt.Sprintf("the method %s has none of the measures %s; the key measures of the spec names others, such as mae for predicted numbers",
				t.Methods[i].Name, strings.Join(t.Measures, ", ")))
		}
	}
	return list
}

// LackingNote says how many runs have ended without the data that is recorded.
func LackingNote(n int) []string {
	switch n {
	case 0:
		return nil
	case 1:
		return []string{"1 run ended without the data that are recorded now; --record-again repeats them"}
	}
	return []string{units.Count(n) + " runs ended without the data that are recorded now; --record-again repeats them"}
}

// AgainNote names the runs that are repeated although they have ended. was is the arithmetic version that computed
// them, or 0 if it is not known.
func AgainNote(again []result.Name, was int) []string {
	if len(again) == 0 {
		return nil
	}
	why := "their data, settings, folds or seed have changed"
	if was != 0 && was != round.Numerics {
		why = fmt.Sprintf("they were computed by arithmetic version %d, and this program has arithmetic version %d", was, round.Numerics)
	}
	return []string{fmt.Sprintf("%s repeated, because %s: %s", runsAre(len(again)), why, someOf(again))}
}

// LeftOutNote names the runs that have ended and are not in a report.
func LeftOutNote(list []result.Name) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s left out, because the last submission of the experiment does not contain them: %s", runsAre(len(list)), someOf(list))}
}

// runsAre counts runs at the beginning of a sentence.
func runsAre(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return units.Count(n) + " runs are"
}

// maxNamed bounds the runs that a note names.
const maxNamed = 10

// someOf names the first runs of a list.
func someOf(list []result.Name) string {
	var text []string
	for _, name := range list[:min(len(list), maxNamed)] {
		text = append(text, name.String())
	}
	if n := len(list) - maxNamed; n > 0 {
		text = append(text, fmt.Sprintf("and %s more", units.Count(n)))
	}
	return strings.Join(text, "; ")
}
