package report

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// csvHeader names the columns of writeCSV.
var csvHeader = []string{
	"dataset", "measure", "method", "folds", "target_folds", "mean", "std", "place", "mean_baseline", "mean_baseline_std",
	"average_rank",
	"reference", "corrected_t_p", "corrected_t_p_holm", "t_p", "t_p_holm", "wilcoxon_p", "wilcoxon_p_holm", "effect_size",
	"published", "published_std", "source",
	"std_of", "friedman_chi_squared", "friedman_p", "critical_difference", "friedman_exact", "same_as",
}

// spreadsheetText puts an apostrophe before a text that a user wrote and that a spreadsheet would read as a formula.
func spreadsheetText(text string) string {
	if text != "" && strings.Contains("=+-@\t\r", text[:1]) {
		return "'" + text
	}
	return text
}

// writeCSV writes a line for each dataset, measure and method, with all digits, then one for each method
// that only papers have. Of several published figures of a method it has the first. Times and runs without
// measures are in the other formats.
func writeCSV(w io.Writer, s *Summary) error {
	out := csv.NewWriter(w)
	out.Write(csvHeader) // an error comes again below
	for i := range s.Results {
		r := &s.Results[i]
		for l := range r.Lines {
			out.Write(csvLine(s, r, &r.Lines[l], i%len(s.Measures)))
		}
		seen := make(map[string]bool)
		for p := range s.Published {
			f := &s.Published[p]
			if f.Dataset != r.Dataset || f.Measure != r.Measure || s.hasMethod(f.Method) || seen[f.Method] {
				continue
			}
			seen[f.Method] = true
			line := Line{Method: f.Method, Figure: Figure{Mean: number(math.NaN()), Deviation: number(math.NaN())}}
			out.Write(csvLine(s, r, &line, i%len(s.Measures)))
		}
	}
	out.Flush()
	return out.Error()
}

// csvLine returns the line of a method by the measure with number m. It has the first of the method's published
// figures.
func csvLine(s *Summary, r *Result, l *Line, m int) []string {
	ranking, rank := &s.Rankings[m], ""
	if at := slices.IndexFunc(ranking.Methods, func(own Ranked) bool { return own.Method == l.Method }); at >= 0 {
		rank = exact(ranking.Methods[at].Rank)
	}
	against, published, friedman := make([]string, 8), make([]string, 3), make([]string, 4)
	if a := l.Against; a != nil {
		against = []string{spreadsheetText(a.Reference), exact(a.CorrectedT), exact(a.CorrectedTHolm), exact(a.T),
			exact(a.THolm), exact(a.Wilcoxon), exact(a.WilcoxonHolm), exact(a.EffectSize)}
	}
	at := slices.IndexFunc(s.Published, func(p result.Published) bool {
		return p.Dataset == r.Dataset && p.Measure == r.Measure && p.Method == l.Method
	})
	if at >= 0 {
		p := &s.Published[at]
		published[0], published[2] = exact(number(p.Value)), spreadsheetText(p.Source)
		if p.Deviation > 0 { // the source prints one
			published[1] = exact(number(p.Deviation))
		}
	}
	if f := ranking.Friedman; f != nil { // the same in each line of the measure
		friedman = []string{exact(f.ChiSquared), exact(f.P), exact(f.CriticalDifference), strconv.FormatBool(f.Exact)}
	}
	return slices.Concat([]string{
		spreadsheetText(r.Dataset), r.Measure, spreadsheetText(l.Method), strconv.Itoa(l.Folds), strconv.Itoa(l.Wanted),
		exact(l.Mean), exact(l.Deviation), strconv.Itoa(l.Place),
		exact(r.MeanPredictor.Mean), exact(r.MeanPredictor.Deviation), rank,
	}, against, published, []string{s.Deviations}, friedman, []string{spreadsheetText(l.Same)})
}

// exact is a number with all its digits. It is empty if the number is not finite.
func exact(n number) string {
	if n.none() {
		return ""
	}
	return strconv.FormatFloat(float64(n)+0, 'g', -1, 64) // no -0
}
