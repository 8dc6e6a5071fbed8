package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
	"github.com/coppice-ldl/coppice/job/spec"
)

// place is a fold of a repeat.
type place struct{ repeat, fold int }

// grid finds runs by dataset, method and fold.
type grid struct {
	table *result.Table
	folds [][]place                 // of each dataset, in order, if any method has a run for it
	done  [][]map[place]*result.Run // by dataset and method
	// divided are the folds of each dataset by division of its rows: a division is one observation,
	// however many folds have it.
	divided [][][]place
}

func newGrid(t *result.Table) *grid {
	g := &grid{table: t, folds: make([][]place, len(t.Datasets)), done: make([][]map[place]*result.Run, len(t.Datasets)),
		divided: make([][][]place, len(t.Datasets))}
	seen := make([]map[place]bool, len(t.Datasets))
	for d := range t.Datasets {
		seen[d], g.done[d] = make(map[place]bool), make([]map[place]*result.Run, len(t.Methods))
		for method := range t.Methods {
			g.done[d][method] = make(map[place]*result.Run)
		}
	}
	for i := range t.Runs {
		c := &t.Runs[i]
		p := place{c.Repeat, c.Fold}
		if !seen[c.Dataset][p] {
			seen[c.Dataset][p] = true
			g.folds[c.Dataset] = append(g.folds[c.Dataset], p)
		}
		if c.State == result.Done {
			g.done[c.Dataset][c.Method][p] = c
		}
	}
	for d, folds := range g.folds {
		slices.SortFunc(folds, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.repeat, b.repeat), cmp.Compare(a.fold, b.fold))
		})
		// Folds of one division go together, in the order of the first of them.
		set, at := &t.Datasets[d], make(map[int]int)
		for i, p := range folds {
			division := i
			if len(set.Divisions) > 0 {
				division = set.Divisions[p.repeat*set.Folds+p.fold]
			}
			if _, ok := at[division]; !ok {
				at[division], g.divided[d] = len(g.divided[d]), append(g.divided[d], nil)
			}
			g.divided[d][at[division]] = append(g.divided[d][at[division]], p)
		}
	}
	return g
}

// anyDone reports whether a run of a dataset has ended well.
func (g *grid) anyDone(dataset int) bool {
	return slices.ContainsFunc(g.done[dataset], func(runs map[place]*result.Run) bool { return len(runs) > 0 })
}

// allDone reports whether all runs of some methods on a dataset have ended well.
func (g *grid) allDone(dataset int, methods []int) bool {
	return !slices.ContainsFunc(methods, func(method int) bool {
		return len(g.done[dataset][method]) < len(g.folds[dataset])
	})
}

// values returns a method's measure on each division, in order: the mean over its folds. It is NaN if a fold has no
// value.
func (g *grid) values(dataset, method, measure int) []float64 {
	return g.observed(dataset, true, func(p place) float64 {
		if c := g.done[dataset][method][p]; c != nil {
			return g.value(measure, c.Values[measure])
		}
		return math.NaN()
	})
}

// means returns the mean predictor's measure on each division, from the first of baselines that has it.
func (g *grid) means(dataset, measure int) []float64 {
	order := g.baselines()
	return g.observed(dataset, false, func(p place) float64 {
		for _, method := range order {
			if c := g.done[dataset][method][p]; c != nil && !math.IsNaN(c.Mean[measure]) {
				return g.value(measure, c.Mean[measure])
			}
		}
		return math.NaN()
	})
}

// baselines lists the methods by how much their mean predictor knows. The methods that train on the labels as they are
// come first, and the methods that train on the greatest part of the samples.
func (g *grid) baselines() []int {
	part, order := make([]float64, len(g.table.Methods)), make([]int, len(g.table.Methods))
	for i := range order {
		order[i], part[i] = i, 1
		m := &g.table.Methods[i]
		if v, ok := numberOf(m.Settings[trainFraction]); ok {
			part[i] = v
		}
		if m.Settings["enhance"] != "" {
			part[i]--
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(part[b], part[a]) })
	return order
}

// value returns a value of a measure. It returns 0 for a correlation that differs from 0 only by rounding: it is a mean
// of numbers up to 1 with both signs.
func (g *grid) value(measure int, v float64) float64 {
	if name := g.table.Measures[measure]; (name == "spearman" || name == "kendall") && statistics.Equal(1+v, 1) {
		return 0
	}
	return v
}

// observed returns for each division the mean over the folds that have a finite value. It is NaN if no fold has one, or
// if all is true and a fold lacks it.
func (g *grid) observed(dataset int, all bool, of func(place) float64) (values []float64) {
	for _, folds := range g.divided[dataset] {
		var own []float64
		for _, p := range folds {
			own = append(own, of(p))
		}
		finite := finiteOf(own)
		if all && len(finite) < len(own) {
			finite = nil
		}
		values = append(values, statistics.MomentsOf(finite).Mean) // NaN of none
	}
	return values
}

// finiteOf leaves out what is not finite.
func finiteOf(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// ratio is the number of test samples, divided by the number of other samples, over all folds of a dataset.
func (g *grid) ratio(dataset, method int) float64 {
	d, tested, others := &g.table.Datasets[dataset], 0, 0
	for _, c := range g.done[dataset][method] {
		tested, others = tested+c.Rows, others+d.Rows-c.Rows
	}
	if tested <= 0 || others <= 0 {
		return 1 / float64(max(1, d.Folds-1))
	}
	return float64(tested) / float64(others)
}

// runs are the done runs of a method on a dataset, by repeat and fold.
func (g *grid) runs(d, method int) (list []*result.Run) {
	for _, p := range g.folds[d] {
		if c := g.done[d][method][p]; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// format returns the format of the values of one dataset and measure. Values have 4 decimals, as in papers. There are
// more decimals if the least value would have fewer than two digits, and fewer if it would have more than five. There
// are also more if a marked value would look like another value.
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

// compare compares every method that has all folds with the method of the number at.
func (r *Result) compare(g *grid, d, m, at int) {
	reference, ratio, sign := g.values(d, at, m), g.ratio(d, at), number(1)
	if higherIsBetter(r.Measure) {
		sign = -1
	}
	var others []*Against
	var corrected, plain, signed []float64
	for i := range r.Lines {
		if i == at || !r.Lines[i].compared() {
			continue
		}
		differences := statistics.Differences(g.values(d, i, m), reference)
		a := &Against{Reference: r.Lines[at].Method, Better: sign*(r.Lines[i].Mean-r.Lines[at].Mean) < 0,
			EffectSize: number(statistics.CohensD(differences))}
		corrected = append(corrected, statistics.CorrectedT(differences, ratio).P)
		p := statistics.PairedT(differences).P
		plain = append(plain, p)
		if len(differences) >= 2 { // otherwise the signed-rank test has no p-value either
			p = statistics.Wilcoxon(differences).P
		}
		signed = append(signed, p)
		others, r.Lines[i].Against = append(others, a), a
	}
	correctedHolm, plainHolm, signedHolm := statistics.Holm(corrected), statistics.Holm(plain), statistics.Holm(signed)
	for i, a := range others {
		a.CorrectedT, a.CorrectedTHolm = number(corrected[i]), number(correctedHolm[i])
		a.T, a.THolm = number(plain[i]), number(plainHolm[i])
		a.Wilcoxon, a.WilcoxonHolm = number(signed[i]), number(signedHolm[i])
	}
}

// differs reports whether the corrected t-test, adjusted by Holm, finds a method better than the reference, or worse.
func (l *Line) differs(level float64) (better, worse bool) {
	if l.Against == nil || !(float64(l.Against.CorrectedTHolm) < level) {
		return false, false
	}
	return l.Against.Better, !l.Against.Better
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

// result computes one measure on one dataset.
func (s *Summary) result(g *grid, d, m int) Result {
	r := Result{Dataset: s.Datasets[d].Name, Measure: s.Measures[m], MeanPredictor: s.figure(finiteOf(g.means(d, m)))}
	for method := range s.Methods {
		l := Line{Method: s.Methods[method].Name, Same: s.Methods[method].Same, Wanted: len(g.divided[d])}
		l.Figure = s.figure(finiteOf(g.values(d, method, m)))
		r.Lines = append(r.Lines, l)
	}
	r.NotMeasured = g.anyDone(d) && r.MeanPredictor.Folds == 0 && !slices.ContainsFunc(r.Lines, func(l Line) bool {
		return l.Folds > 0
	})
	means := make([]float64, len(r.Lines)) // of the methods that are compared
	for i := range r.Lines {
		means[i] = math.NaN()
		if r.Lines[i].compared() {
			means[i] = float64(r.Lines[i].Mean)
		}
	}
	places := statistics.Places(means, higherIsBetter(s.Measures[m]))
	for i, place := range places {
		r.Lines[i].Place = place
	}
	at := slices.Index(places, 1)
	if s.options.Against != "" {
		at = slices.IndexFunc(r.Lines, func(l Line) bool { return l.Method == s.options.Against && l.compared() })
	}
	if at >= 0 {
		r.compare(g, d, m, at)
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

// trainFraction is the setting that all algorithms have: how much of the training samples is used.
const trainFraction = spec.TrainFraction

// numberOf reads a setting that is a finite number.
func numberOf(setting string) (float64, bool) {
	v, err := strconv.ParseFloat(setting, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
