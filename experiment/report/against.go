package report

import (
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// Against compares a method with the best one on the same folds. P-values are two-sided; those named
// Holm are adjusted for the comparisons of one dataset and measure.
type Against struct {
	Best string `json:"best"`
	// CorrectedT is the corrected resampled t-test of Nadeau and Bengio, T the paired t-test.
	CorrectedT     number `json:"corrected_t_p"`
	CorrectedTHolm number `json:"corrected_t_p_holm"`
	T              number `json:"t_p"`
	THolm          number `json:"t_p_holm"`
	Wilcoxon       number `json:"wilcoxon_p"`
	WilcoxonHolm   number `json:"wilcoxon_p_holm"`
	// EffectSize is Cohen's d of the paired differences, the method's value less the best's: their
	// mean over their sample deviation.
	EffectSize number `json:"effect_size"`
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
		plain = append(plain, statistics.PairedT(differences).P)
		signed = append(signed, wilcoxon(differences))
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

// wilcoxon is the p-value of the signed-rank test, and that of the t-tests for fewer than two
// differences, which is none.
func wilcoxon(differences []float64) float64 {
	if len(differences) < 2 {
		return statistics.PairedT(differences).P
	}
	return statistics.Wilcoxon(differences).P
}

// worse reports whether the corrected t-test, adjusted by Holm, finds a method worse than the best.
func (l *Line) worse(level float64) bool {
	return l.Against != nil && float64(l.Against.CorrectedTHolm) < level
}

// Unbeaten is a method that is not better than the mean baseline on a dataset: over the test samples of all folds, its K-L is
// not lower by more than one standard error of the mean paired difference.
type Unbeaten struct {
	Dataset string `json:"dataset"`
	Method  string `json:"method"`
	measures.AgainstBaseline
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
