package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// conclusionOf returns the first sentence of the report of a table.
func conclusionOf(t *testing.T, table *result.Table, o Options) string {
	t.Helper()
	s, err := Summarize(table, o)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.layout().blocks[0].(paragraph))
}

// around returns ten values with the mean v that differ a little.
func around(v float64) (list []float64) {
	for i := range 10 {
		list = append(list, v+.001*float64(i%5-2))
	}
	return list
}

// TestConclusion: a report begins with the best method, and says whether the difference is significant. The tests of
// the other parts of the report find the same: see TestByHand and TestReference.
func TestConclusion(t *testing.T) {
	// Of three methods on twelve datasets, the order is always the same: the ranks are 1, 2 and 3, and the critical
	// difference is 2.343 sqrt(3 4 / (6 12)) = 0.957 (Demšar 2006, table 5).
	same := func(values ...float64) (all [][][]float64) {
		for range 12 {
			var rows [][]float64
			for _, v := range values {
				rows = append(rows, []float64{v})
			}
			all = append(all, rows)
		}
		return all
	}
	clear := same(.1, .2, .3)
	mixed := same(.1, .2, .3)
	for d := range 5 { // the first two change places on five of twelve datasets: ranks 17/12, 19/12 and 3
		mixed[d][0], mixed[d][1] = mixed[d][1], mixed[d][0]
	}
	noise := same(.1, .2, .3)
	for d := range noise {
		for m := range noise[d] {
			noise[d][m] = []float64{float64((m+d)%3) / 10}
		}
	}
	one := [][]float64{around(.3), around(.1), around(.1004)}
	one[2][0], one[2][1] = .13, .075
	for name, c := range map[string]struct {
		table *result.Table
		o     Options
		want  string
	}{
		"all differ": {tableOf("kl", clear...), Options{}, "By K-L (lower is better), r0 has the best average rank over 12 " +
			"datasets: 1.00, before r1 with 2.00. It is significantly better than all other methods (Nemenyi's test, level 0.05)."},
		"higher": {tableOf("cosine", clear...), Options{}, "By Cosine (higher is better), r2 has the best average rank over " +
			"12 datasets: 1.00, before r1 with 2.00. It is significantly better than all other methods (Nemenyi's test, " +
			"level 0.05)."},
		"some differ": {tableOf("kl", mixed...), Options{}, "By K-L (lower is better), r0 has the best average rank over 12 " +
			"datasets: 1.42, before r1 with 1.58. The difference to r1 is not significant, but it is significantly better " +
			"than r2 (Nemenyi's test, level 0.05)."},
		"tie": {tableOf("kl", noise...), Options{}, "By K-L (lower is better), r0, r1 and r2 share the best average rank " +
			"over 12 datasets: 2.00. The difference is not significant: Friedman's test finds no difference between the " +
			"methods (p = 1.0000, level 0.05)."},
		"few datasets": {tableOf("kl", clear[:2]...), Options{}, "By K-L (lower is better), r0 has the best average rank " +
			"over 2 datasets: 1.00, before r1 with 2.00. The difference is not significant: Friedman's test finds no " +
			"difference between the methods (p = 0.1667, level 0.05). So few datasets cannot show one."},
		"one dataset": {tableOf("kl", one), Options{}, "By K-L (lower is better), r1 is best on d0, with a mean of 0.1000. " +
			"The difference to r2 is not significant, but it is significantly better than r0 (corrected resampled t-test, " +
			"level 0.05)."},
		"one fold": {tableOf("kl", clear[0]), Options{}, "By K-L (lower is better), r0 is best on d0, with a mean of 0.1000. " +
			"Whether the difference is significant is not known: a single fold cannot be tested."},
		"one method": {tableOf("kl", [][]float64{{.1}}), Options{}, "There is only one method, so there is nothing to " +
			"compare."},
		"against": {tableOf("kl", one), Options{Against: "r0"}, "By K-L (lower is better), r1 is best on d0, with a mean of " +
			"0.1000."},
	} {
		if got := conclusionOf(t, c.table, c.o); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestConclusionOfGaps: methods without all folds are named, and nothing is concluded if fewer than two have them.
func TestConclusionOfGaps(t *testing.T) {
	table := tableOf("kl", [][]float64{around(.3), around(.1), around(.2)})
	lose(&table.Runs[0], result.Missing, "")
	if got := conclusionOf(t, table, Options{}); !strings.Contains(got, "r1 is best on d0") ||
		!strings.HasSuffix(got, "Not compared, since results of folds are missing: r0.") {
		t.Error(got)
	}
	lose(&table.Runs[10], result.Failed, "no")
	if got := conclusionOf(t, table, Options{}); !strings.Contains(got, "no method can be called the best yet: fewer than") {
		t.Error(got)
	}
	table = tableOf("kl", [][]float64{{.1, .2}, {.3, .3}}, [][]float64{{.1, .2}, {.3, .3}})
	lose(&table.Runs[0], result.Missing, "")
	lose(&table.Runs[6], result.Missing, "")
	if got := conclusionOf(t, table, Options{}); !strings.Contains(got, "no method can be called the best yet: on each") {
		t.Error(got)
	}
}

// TestPlaces: a table counts on how many datasets a method is best, does not differ from the best, and is worse.
func TestPlaces(t *testing.T) {
	var sets [][][]float64
	for d := range 4 {
		rows := [][]float64{around(.1), around(.3)}
		if d == 3 { // r1 is a little better, and no test finds that
			rows[1] = around(.0995)
			rows[1][0], rows[1][1] = .14, .05
		}
		sets = append(sets, rows)
	}
	report := written(t, tableOf("kl", sets...), "md", Options{})
	contains(t, report, []string{"| r0 | 1.25 | 3 | 1 | 0 |", "| r1 | 1.75 | 1 | 0 | 3 |"})
}

// TestNamed: a conclusion names at most six methods in one place.
func TestNamed(t *testing.T) {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprint("m", i))
		got, n := named(names), min(len(names), mostConcluded)
		if strings.Count(got, ",")+strings.Count(got, " and ")+1 != n {
			t.Errorf("%q", got)
		}
	}
	if got := named(names); got != "m0, m1, m2, m3, m4 and 4 others" {
		t.Error(got)
	}
}
