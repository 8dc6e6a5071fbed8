package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// csvHeader names the columns of writeCSV.
var csvHeader = []string{
	"dataset", "measure", "method", "folds", "target_folds", "mean", "std", "place", "mean_baseline", "mean_baseline_std", "average_rank",
	"best", "corrected_t_p", "corrected_t_p_holm", "t_p", "t_p_holm", "wilcoxon_p", "wilcoxon_p_holm", "effect_size", "published", "published_std", "source",
	"std_of", "friedman_chi_squared", "friedman_p", "critical_difference", "friedman_exact", "same_as",
}

// csvNames are the columns with texts that users wrote.
var csvNames = []string{"dataset", "method", "best", "source", "same_as"}

// spreadsheetText puts an apostrophe before a text that a spreadsheet would read as a formula.
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

// hasMethod reports whether the table has a method of a name.
func (s *Summary) hasMethod(name string) bool {
	return slices.ContainsFunc(s.Methods, func(r result.Method) bool { return r.Name == name })
}

func csvLine(s *Summary, r *Result, l *Line, m int) []string {
	record := []string{
		r.Dataset, r.Measure, l.Method, strconv.Itoa(l.Folds), strconv.Itoa(l.Wanted), exact(l.Mean), exact(l.Deviation), strconv.Itoa(l.Place),
		exact(r.MeanPredictor.Mean), exact(r.MeanPredictor.Deviation), s.Rankings[m].exactRank(l.Method),
	}
	if a := l.Against; a != nil {
		record = append(record, a.Best, exact(a.CorrectedT), exact(a.CorrectedTHolm), exact(a.T), exact(a.THolm), exact(a.Wilcoxon), exact(a.WilcoxonHolm), exact(a.EffectSize))
	} else {
		record = append(record, make([]string, 8)...)
	}
	record = append(append(append(record, csvPublished(s, r, l)...), s.Deviations), s.Rankings[m].csvFriedman()...)
	record = append(record, l.Same)
	for i, name := range csvHeader {
		if slices.Contains(csvNames, name) {
			record[i] = spreadsheetText(record[i])
		}
	}
	return record
}

// csvPublished has the first figure of a paper for a method.
func csvPublished(s *Summary, r *Result, l *Line) []string {
	for _, p := range s.Published {
		if p.Dataset == r.Dataset && p.Measure == r.Measure && p.Method == l.Method {
			fields := []string{exact(number(p.Value)), "", p.Source}
			if p.Deviation > 0 { // the source prints one
				fields[1] = exact(number(p.Deviation))
			}
			return fields
		}
	}
	return make([]string, 3)
}

// csvFriedman has the test of a measure's ranks, which is the same in each line of the measure.
func (r *Ranking) csvFriedman() []string {
	if r.Friedman == nil {
		return make([]string, 4)
	}
	f := r.Friedman
	return []string{exact(f.ChiSquared), exact(f.P), exact(f.CriticalDifference), strconv.FormatBool(f.Exact)}
}

// exactRank is the average rank of a row; empty: it has none.
func (r *Ranking) exactRank(row string) string {
	for _, own := range r.Methods {
		if own.Method == row {
			return exact(own.Rank)
		}
	}
	return ""
}

// exact is a number with all its digits; empty where it is not finite.
func exact(n number) string {
	if n.none() {
		return ""
	}
	return strconv.FormatFloat(float64(n)+0, 'g', -1, 64) // no -0
}

// writeJSON writes the summary.
func writeJSON(w io.Writer, s *Summary) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(s)
}
