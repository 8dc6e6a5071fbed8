package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// format returns the format of the values of one dataset and measure. Values have 4 decimals, as in papers. There are more
// decimals if the least value would have fewer than two digits, and fewer if it would have more than five. There are also more
// if a marked value would look like another value.
func (r *Result) format() format {
	least, means, places := math.Inf(1), []number(nil), []int(nil)
	for i := range r.Lines {
		l := &r.Lines[i]
		if v := math.Abs(float64(l.Mean)); v >= leastFixed && v < least {
			least = v
		}
		if l.compared() {
			means, places = append(means, l.Mean), append(places, l.Place)
		}
	}
	f := format{4, 1}
	if !math.IsInf(least, 0) {
		order := int(math.Floor(math.Log10(least)))
		f.decimals = min(max(1-order, min(4, max(1, 4-order))), 8)
	}
	return f.apart(means, places)
}

// text is a mean with its deviation.
func (x Figure) text(f format) string {
	if x.Folds == 0 {
		return none
	}
	mean := f.text(x.Mean)
	switch {
	case math.IsNaN(float64(x.Deviation)):
		return mean
	case strings.Contains(mean, "e"):
		return mean + " ± " + strconv.FormatFloat(float64(x.Deviation), 'e', f.power, 64)
	}
	return mean + " ± " + fixed(x.Deviation, f.decimals)
}

// text is the figure of a line. If folds are missing, it says how many there are.
func (l *Line) text(f format) string {
	if l.Folds == 0 || l.Complete() {
		return l.Figure.text(f)
	}
	return fmt.Sprintf("%s (%d of %d)", l.Figure.text(f), l.Folds, l.Wanted)
}

// compare compares every method that has all folds with the best.
func (r *Result) compare(g *grid, d, m, best int) {
	reference, ratio := g.values(d, best, m), g.ratio(d, best)
	var others []*Against
	var corrected, plain, signed []float64
	for i := range r.Lines {
		if i == best || !r.Lines[i].compared() {
			continue
		}
		differences := statistics.Differences(g.values(d, i, m), reference)
		a := &Against{Best: r.Lines[best].Method, EffectSize: number(statistics.CohensD(differences))}
		corrected = append(corrected, statistics.CorrectedT(differences, ratio).P)
		p := statistics.PairedT(differences).P
		plain = append(plain, p)
		if len(differences) >= 2 { // otherwise the signed-rank test has no p-value either
			p = statistics.Wilcoxon(differences).P
		}
		signed = append(signed, p)
		others, r.Lines[i].Against = append(others, a), a
	}
	for i, h := range statistics.Holm(corrected) {
		others[i].CorrectedT, others[i].CorrectedTHolm = number(corrected[i]), number(h)
	}
	for i, h := range statistics.Holm(plain) {
		others[i].T, others[i].THolm = number(plain[i]), number(h)
	}
	for i, h := range statistics.Holm(signed) {
		others[i].Wilcoxon, others[i].WilcoxonHolm = number(signed[i]), number(h)
	}
}

// isWorse reports whether the corrected t-test, adjusted by Holm, finds a method worse than the best.
func (l *Line) isWorse(level float64) bool {
	return l.Against != nil && float64(l.Against.CorrectedTHolm) < level
}

// unbeaten lists the methods that are not better than the mean baseline, of the methods that have all folds.
func (g *grid) unbeaten() (list []Unbeaten) {
	for d := range g.table.Datasets {
		for method := range g.table.Methods {
			if g.table.Methods[method].Same != "" || len(g.folds[d]) == 0 || !g.allDone(d, []int{method}) {
				continue
			}
			var folds []*measures.AgainstBaseline
			for _, p := range g.folds[d] {
				folds = append(folds, g.done[d][method][p].Against)
			}
			if a := measures.PooledWithBaseline(folds, g.table.Datasets[d].Rows); a.Unbeaten() {
				list = append(list, Unbeaten{g.table.Datasets[d].Name, g.table.Methods[method].Name, *a})
			}
		}
	}
	return list
}

// setPlaces sets the places of the best and the second best among the methods that are compared. It returns the first of the
// best methods, or -1 if no method is compared.
func (r *Result) setPlaces(higher bool) int {
	means := make([]float64, len(r.Lines))
	for i := range r.Lines {
		means[i] = math.NaN()
		if r.Lines[i].compared() {
			means[i] = float64(r.Lines[i].Mean)
		}
	}
	places := statistics.Places(means, higher)
	for i, place := range places {
		r.Lines[i].Place = place
	}
	return slices.Index(places, 1)
}

// result computes one measure on one dataset.
func (s *Summary) result(g *grid, d, m int) Result {
	r := Result{Dataset: s.Datasets[d].Name, Measure: s.Measures[m], MeanPredictor: s.figure(finiteOf(g.means(d, m)))}
	for method := range s.Methods {
		l := Line{Method: s.Methods[method].Name, Same: s.Methods[method].Same, Wanted: len(g.divided[d])}
		l.Figure = s.figure(finiteOf(g.values(d, method, m)))
		r.Lines = append(r.Lines, l)
	}
	r.NotMeasured = g.anyDone(d) && r.MeanPredictor.Folds == 0 && !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Folds > 0 })
	higher := higherIsBetter(s.Measures[m])
	if best := r.setPlaces(higher); best >= 0 {
		r.compare(g, d, m, best)
	}
	return r
}

// figure returns the mean of values and their deviation.
func (s *Summary) figure(values []float64) Figure {
	moments, n := statistics.MomentsOf(values), float64(len(values))
	if s.Deviations == "population" && n > 1 {
		moments.Deviation *= math.Sqrt((n - 1) / n)
	}
	return Figure{number(moments.Mean), number(moments.Deviation), len(values)}
}
