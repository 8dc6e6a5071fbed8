package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

var (
	update = flag.Bool("update", false, "write the golden reports in testdata anew")
	pages  = flag.String("pages", "", "write the reports of the tests to this folder, to look at")
)

// sample is a table with everything: five methods on five datasets, a failed and two missing runs, a
// model of numbers, published figures of a method and of another method, and names with special characters.
func sample() *result.Table {
	t := &result.Table{Name: "Trees & networks: 100% of <them>", Measures: []string{"kl", "cosine"}}
	for i, name := range []string{"Movie", "SJAFFE", "Yeast_alpha", "Yeast_spo5", "Music"} {
		t.Datasets = append(t.Datasets, result.Dataset{Name: name, Rows: 400 * (i + 1), Features: 24, Labels: 6, Folds: 5,
			Digest: strings.Repeat(fmt.Sprint(i), 64)})
	}
	t.Methods = []result.Method{
		{Name: "ldlf", Algorithm: "ldlf", Preset: "auto"}, {Name: "ldlf_paper", Algorithm: "ldlf", Preset: "paper",
			Settings: map[string]string{"trees": "5", "depth": "7"}},
		{Name: "structrf", Algorithm: "structrf"}, {Name: "sa-bfgs", Algorithm: "sa-bfgs"},
		{Name: "numbers", Algorithm: "mlp-regression"},
	}
	for d := range t.Datasets {
		for method := range t.Methods {
			for fold := range t.Datasets[d].Folds {
				c := result.Run{Dataset: d, Method: method, Fold: fold, State: result.Done, Rows: t.Datasets[d].Rows / 5,
					Seconds: 1.25 * float64(method+1), Digest: "ab"}
				wave := .004 * math.Sin(float64(7*d+3*fold)+.4*float64(method))
				kl := .05*float64(d+1)/float64(1+3*(d%2)) + .003*float64((method+d)%3) + wave
				c.Values, c.Mean = []float64{kl, 1 - kl/2}, []float64{kl*1.5 + .01, .9}
				if t.Methods[method].Name == "numbers" {
					c.Values, c.Mean = []float64{math.NaN(), math.NaN()}, []float64{math.NaN(), math.NaN()}
				}
				t.Runs = append(t.Runs, c)
			}
		}
	}
	lose(&t.Runs[3], result.Failed, "the step 12 of 400 gave a loss that is not finite | see the log")
	lose(&t.Runs[6], result.Missing, "")
	lose(&t.Runs[7], result.Running, "")
	t.Published = []result.Published{
		{Dataset: "Movie", Method: "ldlf_paper", Measure: "kl", Value: .073, Deviation: .005, Source: "Table 1"},
		{Dataset: "SJAFFE", Method: "a method of others", Measure: "kl", Value: .0412, Source: "Shen et al. 2017"},
		{Dataset: "Yeast_alpha", Method: "a method of others", Measure: "kl", Value: .1, Source: "Shen et al. 2017"},
	}
	resolved(t)
	return t
}

func lose(c *result.Run, state, err string) {
	*c = result.Run{Dataset: c.Dataset, Method: c.Method, Fold: c.Fold, State: state, Error: err}
}

func written(t *testing.T, table *result.Table, format string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, table, format, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden: the reports of the sample, line by line. HTML has pictures and is not among
// them.
func TestGolden(t *testing.T) {
	for _, format := range Formats() {
		got := written(t, sample(), format, Options{})
		if *pages != "" {
			if err := os.WriteFile(filepath.Join(*pages, "report."+format), []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// the last digits of p-values may differ between processors
		if format == "html" || format == "fragment" || format == "json" || format == "csv" {
			continue
		}
		path := filepath.Join("testdata", "report."+format)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-update writes it anew):\n%s", format, d)
		}
	}
}

// TestNoTimes: two runs that differ in times alone give the same bytes without them, in every
// format, whatever the order of their runs.
func TestNoTimes(t *testing.T) {
	testkit.WithoutRace(t)
	other := sample()
	for i := range other.Runs {
		other.Runs[i].Seconds *= 1.7
	}
	for _, format := range Formats() {
		a, b := written(t, sample(), format, Options{NoTimes: true}), written(t, other, format, Options{NoTimes: true})
		if a != b {
			t.Errorf("%s: the reports differ", format)
		}
		if format != "csv" && written(t, other, format, Options{}) == b {
			t.Errorf("%s: times are not shown", format)
		}
	}
}

// TestClip: a report of clipped degrees says so, and another has no word of it.
func TestClip(t *testing.T) {
	table := sample()
	for _, clip := range []string{"", "pyldl"} {
		table.Clip = clip
		var b bytes.Buffer
		if err := Write(&b, table, "md", Options{}); err != nil ||
			strings.Contains(b.String(), "(clip: pyldl)") != (clip != "") {
			t.Errorf("clip %q: error %v\n%s", clip, err, b.String())
		}
	}
}

// TestWeighted: captions say which datasets have weighted measures, in every format with captions, and other reports
// have no word of it.
func TestWeighted(t *testing.T) {
	table := sample()
	table.Datasets = slices.Clone(table.Datasets)
	first := table.Datasets[0].Name
	for weighted := range len(table.Datasets) + 1 {
		if weighted > 0 {
			table.Datasets[weighted-1].WeightedMeasures = true
		}
		for _, format := range []string{"table", "md", "latex", "html"} {
			var b bytes.Buffer
			if err := Write(&b, table, format, Options{}); err != nil {
				t.Fatal(err)
			}
			text, some := b.String(), weighted > 0 && weighted < len(table.Datasets)
			if strings.Contains(text, "weighted by the weights of the samples") != (weighted > 0) ||
				strings.Contains(text, "weights of the samples on "+first) != some {
				t.Errorf("%d weighted datasets, %s:\n%s", weighted, format, text)
			}
		}
	}
}

// TestByHand: figures, places and tests of a table small enough to work out.
func TestByHand(t *testing.T) {
	table := &result.Table{
		Name: "hand", Measures: []string{"cosine"}, Datasets: []result.Dataset{{Name: "a", Rows: 30, Folds: 3}},
		Methods: []result.Method{{Name: "good"}, {Name: "same"}, {Name: "worse"}, {Name: "part"}},
	}
	for method, values := range [][]float64{{.9, .8, .7}, {.9, .8, .7}, {.8, .7, .5}, {.99, .99}} {
		for fold, v := range values {
			table.Runs = append(table.Runs, result.Run{Method: method, Fold: fold, State: result.Done, Values: []float64{v},
				Mean: []float64{.5}, Rows: 10})
		}
	}
	table.Runs = append(table.Runs, result.Run{Method: 3, Fold: 2, State: result.Missing})
	for sample, want := range map[bool]float64{false: math.Sqrt(.02 / 3), true: .1} {
		s, err := Summarize(table, Options{Sample: sample})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Results[0].Lines[0]; math.Abs(float64(got.Mean)-.8) > 1e-12 ||
			math.Abs(float64(got.Deviation)-want) > 1e-12 {
			t.Errorf("sample %v: %v ± %v, want 0.8 ± %v", sample, got.Mean, got.Deviation, want)
		}
	}
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := s.Results[0].Lines
	if lines[0].Place != 1 || lines[1].Place != 1 || lines[2].Place != 2 || lines[3].Place != 0 || lines[3].Folds != 2 ||
		lines[3].Against != nil || lines[0].Against != nil {
		t.Errorf("%+v", lines)
	}
	if a := lines[1].Against; a == nil || a.CorrectedT != 1 || a.Wilcoxon != 1 || a.EffectSize != 0 {
		t.Errorf("against an equal method: %+v", a)
	}
	// Differences -.1, -.1, -.2: mean -.4/3, deviation .1/sqrt(3), so t = -.4/3 / (.1/sqrt(3) · sqrt(1/3 + 10/20))
	// = -2.52982; twice the tail of Student's t with 2 degrees of freedom is 1 - |t|/sqrt(2 + t²) = 0.12713.
	a := lines[2].Against
	if math.Abs(float64(a.CorrectedT)-.12713) > 1e-5 || math.Abs(float64(a.CorrectedTHolm)-2*.12713) > 1e-5 ||
		math.Abs(float64(a.EffectSize)+4/math.Sqrt(3)) > 1e-9 || a.Wilcoxon != .25 {
		t.Errorf("%+v", a)
	}
	if r := s.Rankings[0]; len(r.Datasets) != 0 || len(r.LeftOut) != 1 || r.Friedman != nil {
		t.Errorf("a method lacks a fold, and there is a ranking: %+v", r)
	}
}

// TestAgainst: tests, marks and counts are against a chosen method; a test finds one method better on the first dataset
// and another worse on both.
func TestAgainst(t *testing.T) {
	table := &result.Table{
		Name: "my table: 1", Measures: []string{"kl"},
		Datasets: []result.Dataset{{Name: "a", Rows: 50, Folds: 5}, {Name: "b", Rows: 50, Folds: 5}},
		Methods:  []result.Method{{Name: "low"}, {Name: "own"}, {Name: "high"}, {Name: "twin", Same: "own"}},
	}
	for d := range 2 {
		for method, mean := range []float64{.1, .2, .3, .2} {
			for fold := range 5 {
				v := mean + .001*float64(fold*(method+1)%5)
				if d == 1 && method == 0 {
					v = .2 + .05*float64(fold-2) // no difference to own
				}
				table.Runs = append(table.Runs, result.Run{Dataset: d, Method: method, Fold: fold, State: result.Done,
					Values: []float64{v}, Mean: []float64{.5}, Rows: 10})
			}
		}
	}
	s, err := Summarize(table, Options{Against: "twin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		if r.Lines[1].Against != nil || r.Lines[2].Against.Reference != "own" || r.Lines[2].Against.Better {
			t.Errorf("%s: %+v", r.Dataset, r.Lines)
		}
	}
	text := written(t, table, "table", Options{Against: "own", NoTimes: true})
	for _, says := range []string{"0.1020 ± 0.0014*◦", "0.3020 ± 0.0014 •",
		"low     0/1/1", "high    2/0/0"} {
		if !strings.Contains(text, says) {
			t.Errorf("the report does not say %q:\n%s", says, text)
		}
	}
	if _, err := Summarize(table, Options{Against: "none"}); !errors.Is(err, ErrOptions) {
		t.Errorf("a reference that does not exist: %v", err)
	}
	bare := written(t, table, "latex", Options{Against: "own", Bare: true, Transpose: true})
	for _, says := range []string{"\\label{tab:my-table-1:kl}", "$\\sum d\\ln(d/p)$", "\\label{tab:my-table-1:wins}",
		"dataset & low & own = twin & high & mean baseline", "$\\circ$", "% In each row, the best value is bold"} {
		if !strings.Contains(bare, says) {
			t.Errorf("the tables do not say %q:\n%s", says, bare)
		}
	}
	if strings.Contains(bare, "document") || strings.Contains(bare, "Friedman") {
		t.Errorf("bare tables have more:\n%s", bare)
	}
	if err := Check("md", Options{Bare: true}); !errors.Is(err, ErrOptions) {
		t.Errorf("bare Markdown: %v", err)
	}
}

// TestLaTeXLetters: letters that a document in T1 lacks become their numbers.
func TestLaTeXLetters(t *testing.T) {
	if got, want := latex("Ħé 5×5 中ŧ\n_"), `U+0126é 5$\times$5 U+4E2DU+0167 \_`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestMeanPredictor: its line is what the runs say, also where the first methods have none.
func TestMeanPredictor(t *testing.T) {
	s, err := Summarize(sample(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Results[0].MeanPredictor; f.Folds != 5 || !(f.Mean > .05 && f.Mean < .2) {
		t.Errorf("%+v", f)
	}
	if c := s.Runs; c.All != 125 || c.Done != 122 || c.Failed != 1 || c.Missing != 1 || c.Running != 1 ||
		len(c.Failures) != 1 || len(c.Gaps) != 2 {
		t.Errorf("%+v", c)
	}
	if r := s.Rankings[0]; len(r.Methods) != 4 || len(r.Datasets) != 4 || strings.Join(r.LeftOut, "") != "Movie" ||
		r.Friedman == nil {
		t.Errorf("%+v", r)
	}
}

// TestWellFormed: CSV has equal lines, JSON is JSON without names that are not shown, and HTML is a whole
// page without scripts and without anything from elsewhere.
func TestWellFormed(t *testing.T) {
	records, err := csv.NewReader(strings.NewReader(written(t, sample(), "csv", Options{}))).ReadAll()
	if err != nil || len(records) != 1+5*5*2+2 {
		t.Errorf("%d lines of CSV, %v", len(records), err)
	}
	deviations, at := make(map[string]bool), slices.Index(csvHeader, "published_std")
	for _, r := range records[1:] {
		deviations[r[at-1]+" "+r[at]] = true
	}
	if want := map[string]bool{" ": true, "0.073 0.005": true, "0.0412 ": true,
		"0.1 ": true}; !maps.Equal(deviations, want) {
		t.Errorf("published figures with their deviations: %v, want %v", deviations, want)
	}
	var s struct {
		Results []struct{ Lines []struct{ Mean *float64 } }
		Times   []struct{}
	}
	if err := json.Unmarshal([]byte(written(t, sample(), "json", Options{})), &s); err != nil || len(s.Results) != 10 ||
		len(s.Times) != 25 || s.Results[0].Lines[4].Mean != nil {
		t.Errorf("%v: %+v", err, s)
	}
	page := written(t, sample(), "html", Options{})
	for _, bad := range []string{"<script", "http:", "src=", "@import", "url(", "<them>"} {
		if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""),
			`xmlns:xlink="http://www.w3.org/1999/xlink"`, ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	body := page[strings.Index(page, "<body>"):strings.Index(page, "</html>")]
	d := xml.NewDecoder(strings.NewReader(body))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(body, "<svg") || !strings.Contains(body, "<strong>") || !strings.Contains(body, "<u>") {
		t.Error("the page has no figure, no best or no second")
	}
}

func TestRefusals(t *testing.T) {
	for want, c := range map[string]struct {
		format string
		o      Options
		change func(*result.Table)
	}{
		`format "pdf": want one of table, md`: {"pdf",
			Options{}, func(*result.Table) {}},
		"level: want a number from 1e-09 to below 1, got 2: the report is not possible": {"table",
			Options{Level: 2}, func(*result.Table) {}},
		"level: want a number from 1e-09 to below 1, got 1e-17: the report is not possible": {"html",
			Options{Level: 1e-17}, func(*result.Table) {}},
		`unknown measure "odd": the measures are kl, euclidean, sorensen, chi2, fidelity, intersection, chebyshev,`: {"table",
			Options{}, func(t *result.Table) {
				t.Measures[0] = "odd"
			}},
		"0 methods": {"table", Options{}, func(t *result.Table) { t.Methods = nil }},
		"run 0: there is no dataset 9, counted from 0: the table has 5 datasets": {"table", Options{}, func(t *result.Table) {
			t.Runs[0].Dataset = 9
		}},
	} {
		table := sample()
		c.change(table)
		err := Write(io.Discard, table, c.format, c.o)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrOptions) &&
			!errors.Is(err, result.ErrTable) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestNothingDone: a table whose runs have not begun is a report in every format.
func TestNothingDone(t *testing.T) {
	table := sample()
	for i := range table.Runs {
		lose(&table.Runs[i], result.Missing, "")
	}
	for _, format := range Formats() {
		if text := written(t, table, format, Options{}); strings.Contains(text, "NaN") {
			t.Errorf("%s has a number that is none", format)
		}
	}
	if text := written(t, table, "table", Options{}); !strings.Contains(text, "and 25 more") {
		t.Error("the missing runs are not counted")
	}
}

func TestDigits(t *testing.T) {
	for mean, want := range map[number]int{.0536: 4, .0054: 4, .00005: 6, 5.33: 4, 12.5: 3, 1234: 1, 0: 4} {
		r := Result{Lines: []Line{{Figure: Figure{Mean: mean}}}}
		if got := r.format().decimals; got != want {
			t.Errorf("%v: %d digits, want %d", mean, got, want)
		}
	}
}

// TestAddWide: a table is divided before a column that would make its lines too long, and each part has a column.
func TestAddWide(t *testing.T) {
	wide := table{caption: "wide", header: []string{"name"}, lines: []line{{cells: plain("first")}}, label: "kl"}
	for _, n := range []int{50, 50, 20, 200, 9, 9, 9, 9, 9} {
		wide.header = append(wide.header, strings.Repeat("é", n))
		wide.lines[0].cells = append(wide.lines[0].cells, plain("1")...)
	}
	var d document
	d.addWide(wide)
	var got []string
	for _, b := range d.blocks {
		part := b.(table)
		got = append(got, fmt.Sprintf("%s %d", part.label, len(part.header)-1))
	}
	if want := "kl 2, kl-2 1, kl-3 1, kl-4 4, kl-5 1"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
