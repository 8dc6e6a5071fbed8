package report

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// tableOf has a table of one measure: values by dataset, then by method, then by fold. Test sets have 20 samples.
func tableOf(measure string, values ...[][]float64) *result.Table {
	t := &result.Table{Name: "t", Measures: []string{measure}}
	for row := range values[0] {
		t.Methods = append(t.Methods, result.Method{Name: fmt.Sprint("r", row), Algorithm: "aa-knn"})
	}
	for d, rows := range values {
		folds := len(rows[0])
		t.Datasets = append(t.Datasets, result.Dataset{Name: fmt.Sprint("d", d), Rows: 20 * folds, Folds: folds,
			Digest: fmt.Sprint("digest of ", d)})
		for row, list := range rows {
			for fold, v := range list {
				t.Runs = append(t.Runs, result.Run{Dataset: d, Method: row, Fold: fold, State: result.Done, Rows: 20,
					Values: []float64{v}, Mean: []float64{.5}})
			}
		}
	}
	return t
}

func accuracies(counts ...float64) (list []float64) {
	for _, n := range counts {
		list = append(list, n/20)
	}
	return list
}

func summarized(t *testing.T, table *result.Table) *Summary {
	t.Helper()
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contains checks that a report has texts, and others not.
func contains(t *testing.T, report string, has []string, lacks ...string) {
	t.Helper()
	plain := strings.Join(strings.Fields(report), " ")
	for _, text := range has {
		if !strings.Contains(plain, text) {
			t.Errorf("the report lacks %q:\n%s", text, report)
		}
	}
	for _, text := range lacks {
		if strings.Contains(plain, text) {
			t.Errorf("the report has %q:\n%s", text, report)
		}
	}
}

// TestSameAccuraciesInAnotherOrder: methods with the same accuracies on other folds tie: they share their place and
// their ranks, and no test finds a difference.
func TestSameAccuraciesInAnotherOrder(t *testing.T) {
	a, b := accuracies(14, 14, 10, 14, 12, 10, 9, 10, 15, 17), accuracies(10, 17, 9, 14, 15, 14, 12, 10, 10, 14)
	table := tableOf("accuracy", [][]float64{a, b}, [][]float64{b, a}, [][]float64{a, b}, [][]float64{b, a})
	s := summarized(t, table)
	for i := range s.Results {
		if l := s.Results[i].Lines; l[0].Place != 1 || l[1].Place != 1 || l[0].Mean != l[1].Mean {
			t.Errorf("%+v", l)
		}
	}
	if r := s.Rankings[0]; r.Methods[0].Rank != 1.5 || r.Methods[1].Rank != 1.5 || r.Friedman.P != 1 ||
		r.Friedman.ChiSquared != 0 || r.Friedman.compared() {
		t.Errorf("%+v %+v", r, r.Friedman)
	}
	contains(t, written(t, table, "table", Options{}), []string{"pairs of methods are not compared"},
		"Every two methods differ", "+ ")
}

// repeated makes so many repeats of a table's folds. The values of a method are the same in each, or drawn.
func repeated(table *result.Table, repeats int, drawn bool) *result.Table {
	once := table.Runs
	for d := range table.Datasets {
		set := &table.Datasets[d]
		for range repeats {
			for fold := range set.Folds {
				set.Divisions = append(set.Divisions, fold)
			}
		}
	}
	for repeat := 1; repeat < repeats; repeat++ {
		for _, c := range once {
			c.Repeat = repeat
			c.Values = []float64{c.Values[0]}
			if drawn && c.Method > 0 {
				c.Values[0] += .001 * float64(repeat)
			}
			table.Runs = append(table.Runs, c)
		}
	}
	return table
}

// TestRepeatsOfTheSameFolds: they are no new evidence: p-values and deviations are those of one repeat, and the report
// says so.
func TestRepeatsOfTheSameFolds(t *testing.T) {
	values := [][]float64{accuracies(14, 15, 13, 16, 14), accuracies(13, 14, 13, 14, 12)}
	once := summarized(t, tableOf("accuracy", values))
	for _, repeats := range []int{2, 10, 100} {
		table := repeated(tableOf("accuracy", values), repeats, false)
		s := summarized(t, table)
		a, b := once.Results[0].Lines[1].Against, s.Results[0].Lines[1].Against
		if *a != *b || s.Results[0].Lines[1].Figure != once.Results[0].Lines[1].Figure {
			t.Errorf("%d repeats: %+v, want %+v", repeats, b, a)
		}
		text := written(t, table, "table", Options{})
		contains(t, text, []string{
			"Dataset d0: repeats have the same folds. Results of equal folds are averaged first",
		})
	}
	drawn := repeated(tableOf("accuracy", values), 3, true)
	if mean := summarized(t, drawn).Results[0].Lines[1].Mean; math.Abs(float64(mean)-.661) > 1e-12 {
		t.Errorf("the mean of the repeats is %v", mean)
	}
	lost := repeated(tableOf("accuracy", values), 3, true)
	lose(&lost.Runs[len(lost.Runs)-1], result.Missing, "") // the last fold of the last repeat
	lost.Runs[len(lost.Runs)-1].Repeat = 2
	if l := summarized(t, lost).Results[0].Lines[1]; l.Folds != 4 || l.Wanted != 5 || l.Against != nil {
		t.Errorf("a repeat lacks a fold: %+v", l)
	}
}

// TestOneMethodOfSeveralNames: it is listed once with its names, and p-values, ranks and the critical difference are
// those of the table without the other names.
func TestOneMethodOfSeveralNames(t *testing.T) {
	a, b, c := accuracies(14, 15, 13, 16, 14), accuracies(13, 14, 13, 14, 12), accuracies(9, 11, 10, 8, 12)
	sets := func(rows ...[]float64) *result.Table { return tableOf("accuracy", rows, rows, rows, rows, rows, rows) }
	without := summarized(t, sets(a, b, c))
	table := sets(a, b, c, b, b)
	table.Methods[1].Name, table.Methods[3].Name, table.Methods[4].Name = "structrf", "structrf paper", "structrf trees=50"
	table.Methods[3].Same, table.Methods[4].Same = "structrf", "structrf"
	table.Published = []result.Published{{Dataset: "d0", Method: "structrf paper", Measure: "accuracy", Value: .7,
		Source: "a paper"}}
	s := summarized(t, table)
	for row, l := range without.Results[0].Lines {
		own := s.Results[0].Lines[row]
		if own.Place != l.Place || (l.Against != nil) != (own.Against != nil) || l.Against != nil &&
			*own.Against != *l.Against {
			t.Errorf("%+v %+v, want %+v %+v", own, own.Against, l, l.Against)
		}
	}
	if got, want := s.Rankings[0].Friedman, without.Rankings[0].Friedman; got.P != want.P ||
		got.CriticalDifference != want.CriticalDifference || len(s.Rankings[0].Methods) != 3 {
		t.Errorf("%+v, want %+v", got, want)
	}
	text := written(t, table, "table", Options{})
	contains(t, text,
		[]string{`Methods "structrf" = "structrf paper" = "structrf trees=50": they have the same hyperparameters`,
			"structrf = structrf paper = structrf trees=50", "(the same as structrf)", "structrf paper (published: a paper)"})
	records, err := csv.NewReader(strings.NewReader(written(t, table, "csv", Options{}))).ReadAll()
	if err != nil || records[4][len(records[4])-1] != "structrf" || records[4][7] != "0" || records[4][11] != "" {
		t.Errorf("%q, %v", records[4], err)
	}
	twice := sets(a, b, c)
	twice.Datasets[5].Same = "d4"
	if r := summarized(t, twice).Rankings[0]; len(r.Datasets) != 5 || len(r.LeftOut) != 0 {
		t.Errorf("the same dataset counts twice: %+v", r)
	}
	contains(t, written(t, twice, "table", Options{}),
		[]string{"Datasets d4 and d5 have the same samples, labels and folds. Ranks count the two datasets once."})
}

// TestUnbeaten: methods with all folds are listed if their K-L is not lower than the mean baseline's by more than one
// standard error, which repeats do not make smaller. A dataset without comparisons has no list.
func TestUnbeaten(t *testing.T) {
	against := func(mean float64) *measures.AgainstBaseline {
		return &measures.AgainstBaseline{Samples: 10, Difference: measures.Stat{Mean: mean, Std: .3}, StandardError: .1}
	}
	value := [][]float64{{.5, .5}, {.5, .5}, {.5, .5}, {.5, .5}}
	table := tableOf("kl", value, value)
	table.Datasets[0].Rows, table.Datasets[0].Folds = 10, 1
	for i := range table.Runs[:8] { // two repeats of one fold
		c := &table.Runs[i]
		c.Repeat, c.Fold = c.Fold, 0
		c.Against = against([]float64{-.2, -.09, .2, .2}[c.Method])
	}
	lose(&table.Runs[7], result.Missing, "")
	table.Runs[7].Repeat, table.Runs[7].Fold = 1, 0
	s := summarized(t, table)
	if len(s.Unbeaten) != 2 || s.Unbeaten[0].Method != "r1" || s.Unbeaten[0].Verdict != measures.NotBetter ||
		s.Unbeaten[1].Method != "r2" || s.Unbeaten[1].Verdict != measures.Worse ||
		math.Abs(s.Unbeaten[0].StandardError-.1) > 1e-12 {
		t.Errorf("%+v", s.Unbeaten)
	}
	contains(t, written(t, table, "table", Options{}), []string{"Methods that are not better than the mean baseline",
		"d0 r1 -0.090000 0.100000 not better", "d0 r2 +0.200000 0.100000 worse"})
	contains(t, written(t, tableOf("kl", value), "table", Options{}), nil, "not better than the mean baseline")
}

// TestNoClaimAboveTheLevel: where Friedman's test finds nothing, no pair of methods is said to differ, in words and in
// the diagram.
func TestNoClaimAboveTheLevel(t *testing.T) {
	var sets [][][]float64
	for d := range 5 { // ranks of the methods on five datasets
		ranks := [][]float64{{1, 2, 3, 4, 5}, {1, 3, 2, 4, 5}, {2, 1, 4, 5, 3}, {1, 4, 5, 2, 3}, {3, 1, 5, 2, 4}}[d]
		var rows [][]float64
		for _, r := range ranks {
			rows = append(rows, []float64{.9 - .1*r, .8 - .1*r})
		}
		sets = append(sets, rows)
	}
	table := tableOf("accuracy", sets...)
	r := summarized(t, table).Rankings[0]
	if r.Friedman.P < .05 || !r.Friedman.CriticalDifference.none() || len(r.Friedman.Alike) != 1 ||
		len(r.Friedman.Alike[0]) != 5 {
		t.Errorf("%+v", r.Friedman)
	}
	contains(t, written(t, table, "table", Options{}),
		[]string{"exact). The test finds no difference at the level 0.05, so pairs of methods are not compared."},
		"Nemenyi's critical difference is", "Methods that do not differ", "Every two methods differ")
	contains(t, written(t, table, "html", Options{}), []string{"no difference found, p = "}, "critical difference 2")
	contains(t, written(t, table, "json", Options{}), []string{`"critical_difference": null`})
	contains(t, written(t, table, "table", Options{Level: .5}), []string{"Nemenyi's critical difference is"},
		"pairs of methods are not compared")
}

// TestFewDatasets: two methods on four datasets have an exact p, and the report says that there is no smaller one.
func TestFewDatasets(t *testing.T) {
	set := [][]float64{{.9, .8}, {.7, .75}}
	table := tableOf("accuracy", set, set, set, set)
	f := summarized(t, table).Rankings[0].Friedman
	if !f.Exact || f.P != .125 || f.Least != .125 || f.compared() {
		t.Errorf("%+v", f)
	}
	contains(t, written(t, table, "table", Options{}), []string{
		"Friedman's χ² is 4.00 (p = 0.1250, exact: the sign test). For 2 methods on 4 datasets, p is at least 0.1250, so " +
			"the test cannot find a difference at the level 0.05.",
	}, "Every two methods differ")
	many := [][]float64{{.9}, {.8}, {.7}, {.6}, {.5}, {.4}, {.3}, {.2}, {.1}}
	contains(t, written(t, tableOf("accuracy", many, many, many), "table", Options{}),
		[]string{"by the χ² distribution, which is inaccurate for few datasets"})
}

// TestMeansOfZero: two methods whose correlations average to 0 tie, and both means print as 0, whatever the last bits
// of the correlations are.
func TestMeansOfZero(t *testing.T) {
	table := tableOf("spearman", [][]float64{{.15, -.05, -.1}, {-.3, .1, .2}, {-.1, -.2, -.1}},
		[][]float64{{.1, -.1, 0}, {.6, -.4, -.2}, {-.5, .1, -.1}})
	s := summarized(t, table)
	for _, r := range s.Results {
		if l := r.Lines; l[0].Mean != 0 || l[1].Mean != 0 || l[0].Place != 1 || l[1].Place != 1 || l[2].Place != 2 {
			t.Errorf("%+v", l)
		}
	}
	if rows := s.Rankings[0].Methods; rows[0].Rank != 1.5 || rows[1].Rank != 1.5 {
		t.Errorf("%+v", rows)
	}
	contains(t, written(t, table, "table", Options{}), []string{"r0 0.0000 ± 0.1080 *", "r1 0.0000 ± 0.2160 *"}, "e-1")

	noise := -2.7755575615628914e-17 // .6 - .4 - .2, of the rows of a fold
	same := summarized(t, tableOf("spearman", [][]float64{{.5, noise, .1}, {.5, 0, .2}}))
	if against := same.Results[0].Lines[0].Against; against.Wilcoxon != 1 {
		t.Errorf("%+v", against)
	}
}

// TestDigitsOfMarkedValues: small numbers have powers of ten, and a marked value has the digits that tell it from the
// others.
func TestDigitsOfMarkedValues(t *testing.T) {
	lines := func(measure string, values ...[]float64) string {
		return written(t, tableOf(measure, values), "table", Options{})
	}
	contains(t, lines("kl", []float64{4.3e-14, 4.3e-14}, []float64{1.2e-13, 1.2e-13}, []float64{.05, .05}),
		[]string{"4.3e-14 ± 0.0e+00 *", "1.2e-13 ± 0.0e+00+•", "0.0500 ± 0.0000 •"}, "0.00000000")
	contains(t, lines("cosine", []float64{.99999991, .99999993}, []float64{.99999981, .99999983}, []float64{.9, .9}),
		[]string{"0.9999999 ± 0.0000000 *", "0.9999998 ± 0.0000000"})
	contains(t, lines("cosine", []float64{.1 + .2, .7}, []float64{.3, .1 + .6}),
		[]string{"r0 0.5000 ± 0.2000 *", "r1 0.5000 ± 0.2000 *"})
	contains(t, lines("kl", []float64{2e-7, 2e-7}, []float64{2.01e-7, 2.01e-7}), []string{"2.00e-07", "2.01e-07"})
}

// TestNoNegativeZero: no number in any format is a zero with a sign.
func TestNoNegativeZero(t *testing.T) {
	zero := math.Copysign(0, -1)
	table := tableOf("kl", [][]float64{{zero, zero}, {.5, .5 + 1e-12}, {.5, .5}, {-3e-5, -4e-5}},
		[][]float64{{zero, zero}, {1, 1}, {2, 2}, {3, 3}})
	table.Published = []result.Published{{Dataset: "d0", Method: "r0", Measure: "kl", Value: -1e-9, Source: "x"},
		{Dataset: "d0", Method: "r1", Measure: "kl", Value: zero, Source: "x"}}
	for _, format := range Formats() {
		for _, field := range strings.FieldsFunc(written(t, table, format, Options{}), func(r rune) bool {
			return strings.ContainsRune(" ,|&<>\n{}()[]:", r)
		}) {
			if strings.HasPrefix(field, "-0") && strings.Trim(field, "-0.") == "" {
				t.Errorf("%s has %q", format, field)
			}
		}
	}
	var b strings.Builder
	if err := table.Encode(&b); err != nil || strings.Contains(b.String(), "[-0]") {
		t.Errorf("the table has -0: %v", err)
	}
	if got := fixed(-.004, 2); got != "0.00" {
		t.Errorf("%q", got)
	}
}

// TestTextsOfMedia: names fit the medium: East Asian letters take two columns of a terminal, a dollar is none of
// Markdown, and a spreadsheet computes no name.
func TestTextsOfMedia(t *testing.T) {
	table := tableOf("accuracy", [][]float64{{.5, .6}, {.7, .8}, {.1, .2}, {.3, .2}})
	table.Methods[0].Name, table.Methods[1].Name, table.Methods[2].Name, table.Methods[3].Name = "最近邻（三）",
		"cost $x$ of $y$", "=1+1", "e\u0301té"
	at := -1
	for _, line := range strings.Split(written(t, table, "table", Options{}), "\n") {
		name, _, found := strings.Cut(line, "0.")
		if !found || !strings.Contains(line, "±") || strings.HasPrefix(line, "mean") {
			continue
		}
		columns := len([]rune(name)) + 6*strings.Count(name, "最") - strings.Count(name, "\u0301")
		if at < 0 {
			at = columns
		}
		if columns != at {
			t.Errorf("the value stands in column %d, not %d: %q", columns, at, line)
		}
	}
	contains(t, written(t, table, "md", Options{}), []string{`cost \$x\$ of \$y\$`})
	records, err := csv.NewReader(strings.NewReader(written(t, table, "csv", Options{}))).ReadAll()
	if err != nil || records[3][2] != "'=1+1" || records[1][2] != "最近邻（三）" {
		t.Errorf("%q, %v", records, err)
	}
	for text, want := range map[string]string{"-x": "'-x", "+x": "'+x", "@x": "'@x", "x=1": "x=1", "": ""} {
		if got := spreadsheetText(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestClassNames: a confusion matrix names the classes that have names.
func TestClassNames(t *testing.T) {
	table := tableOf("accuracy", [][]float64{{.5}, {.7}})
	table.Datasets[0].Classes = []string{"healthy", "ill"}
	for i := range table.Runs {
		table.Runs[i].Confusion = [][]float64{{4, 1}, {2, 3}}
	}
	contains(t, written(t, table, "html", Options{}), []string{"healthy", "ill"}, "Classes are numbered from 0")
	contains(t, written(t, table, "json", Options{}), []string{`"classes": [ "healthy", "ill" ]`})
}

// TestNotesOfSpec: a report names its spec, and begins with what is said of it.
func TestNotesOfSpec(t *testing.T) {
	table := tableOf("accuracy", [][]float64{{.5}, {.7}})
	table.Spec = &result.Spec{File: "study.yaml", Digest: strings.Repeat("ab", 32)}
	o := Options{Notes: []string{"The results are of an earlier text of study.yaml."}}
	for _, format := range []string{"table", "md", "latex", "html"} {
		contains(t, written(t, table, format, o), []string{"The results are of an earlier text of study.yaml.", "SHA"})
	}
	contains(t, written(t, table, "json", o), []string{`"notes": [ "The results are of an earlier text of study.yaml." ]`,
		`"file": "study.yaml"`})
}

// TestLaTeXArguments: no name at the beginning of a line of a table is an argument of the command before it.
func TestLaTeXArguments(t *testing.T) {
	table := tableOf("accuracy", [][]float64{{.5, .6}, {.7, .7}, {.4, .5}, {.3, .2}},
		[][]float64{{.5, .6}, {.7, .7}, {.4, .5}, {.3, .2}})
	for i, name := range []string{"[12]", "* ours", "-- x", "[a method with a name of more than thirty letters]"} {
		table.Methods[i].Name = name
	}
	table.Published = []result.Published{{Dataset: "d0", Method: "*theirs", Measure: "accuracy", Value: .7,
		Source: "a paper"}}
	text := written(t, table, "latex", Options{AllTests: true})
	contains(t, text, []string{"{[}12]", "{*} ours", "-{}-{} x", "{*}theirs"}, " \\\\ [", " \\\\ *", "midrule [",
		"midrule *")
	for i, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "[") || strings.HasPrefix(l, "*") {
			t.Errorf("line %d: %s", i+1, l)
		}
	}
}

// TestWhyDatasetsAreLeftOut: a measure that is none of the labels, a method that ends without a value and a fold that
// is missing are three reasons.
func TestWhyDatasetsAreLeftOut(t *testing.T) {
	set := [][]float64{{.5, .6}, {.7, .8}}
	table := tableOf("accuracy", set, set, set, set, set)
	for i := range table.Runs {
		switch c := &table.Runs[i]; {
		case c.Dataset == 1:
			c.Values, c.Mean = []float64{math.NaN()}, []float64{math.NaN()}
		case c.Dataset == 2 && c.Method == 0:
			c.Values = []float64{math.NaN()}
		case c.Dataset == 3 && c.Fold == 1:
			lose(c, result.Missing, "")
		}
	}
	r := summarized(t, table).Rankings[0]
	for _, c := range []struct{ got, want []string }{{r.Datasets, []string{"d0", "d4"}}, {r.NotMeasured, []string{"d1"}},
		{r.NoValue, []string{"d2"}}, {r.LeftOut, []string{"d3"}}} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	says := []string{
		"over 2 datasets (left out, because methods lack folds there: d3; because it is not a measure of these labels: d1; " +
			"because methods have no value there: d2)",
		"Accuracy is not a measure of the labels of d1.",
	}
	for _, format := range []string{"table", "md", "html", "latex"} {
		contains(t, written(t, table, format, Options{}), says)
	}
	contains(t, written(t, table, "json", Options{}), []string{`"not_measured": true`, `"not_measured": [ "d1" ]`,
		`"no_value": [ "d2" ]`, `"left_out": [ "d3" ]`})
	for i := range table.Runs {
		table.Runs[i].Values, table.Runs[i].Mean = []float64{math.NaN()}, []float64{math.NaN()}
		if table.Runs[i].State == result.Missing {
			table.Runs[i].Values, table.Runs[i].Mean = nil, nil
		}
	}
	contains(t, written(t, table, "table", Options{}),
		[]string{"over 0 datasets (left out, because it is not a measure of these labels: d0, d1, d2, d3, d4)"},
		"lack folds there")
}
