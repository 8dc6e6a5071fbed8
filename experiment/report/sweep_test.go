package report

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// swept is a table whose methods go through two settings of one algorithm.
func swept() *result.Table {
	t := &result.Table{Name: "swept", Measures: []string{"kl"},
		Datasets: []result.Dataset{{Name: "Movie", Rows: 20, Folds: 2}}}
	for _, trees := range []string{"100", "1", "10", "many"} {
		for _, depth := range []string{"3", "5"} {
			t.Methods = append(t.Methods, result.Method{Name: "trees " + trees + " depth " + depth, Algorithm: "rf",
				Preset: "paper", Settings: map[string]string{"trees": trees, "depth": depth}})
		}
	}
	for method := range t.Methods {
		for fold := range 2 {
			t.Runs = append(t.Runs, result.Run{Method: method, Fold: fold, State: result.Done,
				Values: []float64{.1 + .01*float64(method+fold)}, Mean: []float64{.3}, Rows: 10})
		}
	}
	return t
}

// TestSweeps: methods that differ in one number alone, three of them or more, in the order of the number.
func TestSweeps(t *testing.T) {
	var got []string
	for _, s := range sweepsOf(swept().Methods) {
		text := s.algorithm + ", " + settingsText(s.others) + " " + s.setting
		for _, p := range s.points {
			text += fmt.Sprintf(" %v:%d", p.value, p.method)
		}
		got = append(got, fmt.Sprint(text, " ", family{s}.axis().Log))
	}
	want := "rf, preset=paper depth=3 trees 1:2 10:4 100:0 true; rf, preset=paper depth=5 trees 1:3 10:5 100:1 true"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	twice := swept().Methods
	twice[2].Settings["trees"] = "100"
	if n := len(sweepsOf(twice)); n != 1 {
		t.Errorf("a number stands twice, and there are %d sweeps, want 1", n)
	}
}

// TestFamilies: sweeps that differ in one number stand in one figure, those that differ in another one in
// another, and titles say what sets figures apart.
func TestFamilies(t *testing.T) {
	var methods []result.Method
	add := func(settings ...string) {
		r := result.Method{Algorithm: "rf", Settings: make(map[string]string)}
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			r.Settings[name] = value
		}
		methods = append(methods, r)
	}
	for _, depth := range []string{"depth=1", "depth=2", "depth=3"} {
		for _, ratio := range []string{"ratio=.5", "ratio=1"} {
			add(depth, ratio, "trees=20")
		}
		for _, trees := range []string{"trees=5", "trees=50"} {
			add(depth, "ratio=.7", trees)
		}
		add(depth, "ratio=1", "trees=20", "way=other")
	}
	families := familiesOf(sweepsOf(methods))
	var got []string
	for _, f := range families {
		text := f.title(families) + ":"
		for i := range f {
			text += " [" + f.lineName(&f[i]) + "]"
		}
		got = append(got, text)
	}
	want := "rf by depth, trees=20: [ratio=.5] [ratio=1] [ratio=1 way=other]; rf by depth, ratio=.7: [trees=5] [trees=50]"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range mostLines {
		families[0] = append(families[0], families[0][0])
	}
	if families[0].takes(&families[0][0]) {
		t.Error("a family takes more sweeps than a figure has lines")
	}
}

// TestManyFigures: a report has a bounded number of figures, of other names each, and says how many are left out.
func TestManyFigures(t *testing.T) {
	table := swept()
	for i := range mostFigures {
		d := result.Dataset{Name: fmt.Sprint("set ", i), Rows: 20, Folds: 2}
		for _, c := range swept().Runs {
			c.Dataset = len(table.Datasets)
			table.Runs = append(table.Runs, c)
		}
		table.Datasets = append(table.Datasets, d)
	}
	figures, err := Figures(table, Options{NoTimes: true})
	if err != nil || len(figures) != mostFigures {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	names := make(map[string]bool)
	for _, f := range figures {
		names[f.Name] = true
	}
	if len(names) != len(figures) || !names["02-Movie-rf-by-trees-kl"] || !names["03-set-0-rf-by-trees-kl"] {
		t.Errorf("%v", names)
	}
	if page := written(t, table, "html", Options{NoTimes: true}); strings.Count(page, "<svg") != mostFigures ||
		!strings.Contains(page, "Not shown: 2 more figures.") {
		t.Errorf("the page has %d figures", strings.Count(page, "<svg"))
	}
}

// TestOneFold: a figure of one fold has no deviation in any format, and its place and its point in a figure of
// settings are those that it would have with one.
func TestOneFold(t *testing.T) {
	table := swept()
	table.Datasets[0].Folds = 1
	table.Runs = slices.DeleteFunc(table.Runs, func(c result.Run) bool { return c.Fold > 0 })
	for _, format := range Formats() {
		for _, deviation := range []bool{false, true} {
			text := written(t, table, format, Options{NoTimes: true, Sample: deviation})
			for _, wrong := range []string{"± 0", `$\pm$ 0`, `"std": 0`, "bars are"} {
				if strings.Contains(text, wrong) {
					t.Errorf("%s has %q:\n%s", format, wrong, text)
				}
			}
			if format != "csv" && format != "json" && !strings.Contains(text, "A single fold has no standard deviation.") {
				t.Errorf("%s does not say so", format)
			}
		}
	}
	if text := written(t, table, "table", Options{NoTimes: true}); !strings.Contains(text, " *\n") ||
		!strings.Contains(text, " +\n") {
		t.Errorf("neither the best nor the second is marked:\n%s", text)
	}
	records, err := csv.NewReader(strings.NewReader(written(t, table, "csv", Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records[1:] {
		for _, column := range []string{"std", "mean_baseline_std"} {
			if v := r[slices.Index(csvHeader, column)]; v != "" {
				t.Errorf("%s: %s is %s", r[2], column, v)
			}
		}
	}
	if n := strings.Count(written(t, table, "html", Options{NoTimes: true}), "<svg"); n != strings.Count(written(t,
		swept(), "html", Options{NoTimes: true}), "<svg") {
		t.Errorf("%d figures", n)
	}
}

// TestSweepFigures: the page has a figure for each sweep and dataset, and none for methods that lack folds.
func TestSweepFigures(t *testing.T) {
	table := swept()
	if n := strings.Count(written(t, table, "html", Options{}), "bars are standard deviations over folds"); n != 1 {
		t.Errorf("%d figures, want 1", n)
	}
	for _, format := range []string{"table", "md", "latex"} {
		if strings.Contains(written(t, table, format, Options{}), "Settings\n") {
			t.Errorf("%s has a heading without figures", format)
		}
	}
	for _, gone := range []struct{ run, lines int }{{0, 1}, {2, 0}} {
		lose(&table.Runs[gone.run], result.Missing, "")
		page := written(t, table, "html", Options{})
		if n := strings.Count(page, ">depth=3<") + strings.Count(page, ">depth=5<"); n != gone.lines {
			t.Errorf("%d lines of methods with all folds, want %d", n, gone.lines)
		}
	}
}

// papered is swept with figures of papers.
func papered() *result.Table {
	table := swept()
	for i, method := range []string{"trees 10 depth 3", "trees 50 depth 3", "trees 10 depth 5", "trees some depth 3",
		"tree 7", "trees 100 depth 5"} {
		table.Published = append(table.Published, result.Published{Dataset: "Movie", Method: method, Measure: "kl",
			Value: .01 * float64(i+1), Source: "Fig. 4"})
	}
	table.Published[5].Source, table.Published[5].Deviation = "", .5
	return table
}

// TestPapers: figures that papers print of the methods of sweeps stand in the figures as marks.
func TestPapers(t *testing.T) {
	table := papered()
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, sweep := range sweepsOf(s.Methods) {
		for _, p := range sweep.papers(s, s.at(0, 0), figure.Axis{}, i, "x") {
			got = append(got, fmt.Sprint(p.Name, p.X, p.Y, p.Deviation, p.Line))
		}
	}
	if diff := cmp.Diff([]string{"published: Fig. 4, x[10] [0.01] [] 0", "published: Fig. 4, x[10] [0.03] [] 1",
		"published: x[100] [0.06] [0.5] 1"}, got); diff != "" {
		t.Error(diff)
	}
	figures, err := Figures(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := figures[0].Draw()
	if err != nil {
		t.Fatal(err)
	}
	if text := f.Element("x"); !strings.Contains(text, ">published: Fig. 4, depth=3<") ||
		!strings.Contains(figures[0].Caption, "Diamonds are values printed in papers.") {
		t.Errorf("%s: %s", figures[0].Caption, text)
	}
}

// TestSweepFromZero: a sweep that goes far from 0 on has a logarithmic axis with a place for 0, and one with values
// below 0 a linear one.
func TestSweepFromZero(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   figure.Axis
	}{
		{[]string{"0", "1e-4", "1e-2", "1", "100"}, figure.Axis{Name: "l2", Log: true, Zero: true}},
		{[]string{"0", "1", "2"}, figure.Axis{Name: "l2", Zero: true}},
		{[]string{"-1", "0", "1", "100"}, figure.Axis{Name: "l2"}},
		{[]string{"1", "10", "100"}, figure.Axis{Name: "l2", Log: true}},
	} {
		var methods []result.Method
		for _, v := range c.values {
			methods = append(methods, result.Method{Name: v, Algorithm: "sa-bfgs", Settings: map[string]string{"l2": v}})
		}
		if got := family(sweepsOf(methods)).axis(); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
	methods := []result.Method{{Name: "a", Settings: map[string]string{"k": "3"}},
		{Name: "b", Settings: map[string]string{"k": "03"}, Same: "a"}, {Name: "c", Settings: map[string]string{"k": "4"}},
		{Name: "d", Settings: map[string]string{"k": "5"}}}
	if all := sweepsOf(methods); len(all) != 1 || len(all[0].points) != 3 {
		t.Errorf("a value in two spellings: %+v", all)
	}
}
