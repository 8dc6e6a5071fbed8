package report

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// pageTables are tables whose reports have every kind of figure.
func pageTables() map[string]*result.Table {
	long := swept()
	for i := range long.Methods {
		for _, name := range []string{"batch_size", "leaf_batches", "learning_rate", "outputs", "patience", "steps"} {
			long.Methods[i].Settings[name] = "1000"
		}
	}
	return map[string]*result.Table{"sample": sample(), "swept": papered(), "besides": besides(), "curved": curved(),
		"long": long, "many": manyMethods()}
}

// manyMethods has more methods than a page has lines.
func manyMethods() *result.Table {
	t := sample()
	t.Hyperparameters = nil
	few := len(t.Methods)
	for i := range 10 * few {
		method := t.Methods[i%few]
		method.Name = fmt.Sprintf("%s_%d", method.Name, i)
		t.Methods = append(t.Methods, method)
		for _, c := range t.Runs[:len(t.Runs):len(t.Runs)] {
			if c.Method == i%few {
				c.Method = few + i
				t.Runs = append(t.Runs, c)
			}
		}
	}
	return t
}

// TestLongTables: a table that is longer than a page breaks across pages, with its header on each. The caption and the
// label stand there once.
func TestLongTables(t *testing.T) {
	for name, table := range map[string]*result.Table{"many": manyMethods(), "sample": sample()} {
		for _, bare := range []bool{false, true} {
			text := written(t, table, "latex", Options{Bare: bare})
			long := strings.Count(text, `\begin{longtable}`)
			if (long > 0) != (name == "many") || long != strings.Count(text, `\end{longtable}}`) ||
				long != strings.Count(text, `\endhead`) || 2*long+strings.Count(text, `\begin{tabular}`) !=
				strings.Count(text, `\toprule`) || strings.Count(text, `\caption`) != strings.Count(text, `\bottomrule`) {
				t.Errorf("%s, bare %v: %d long tables:\n%.3000s", name, bare, long, text)
			}
			if labels := strings.Count(text, `\label{`); labels != 0 && strings.Count(text, `\label{tab:Trees`) != labels {
				t.Errorf("%s: %d labels", name, labels)
			}
		}
	}
}

// TestPageInBrowser: on wide and on narrow screens no page is wider than the window, and in no figure do texts overlap
// or leave it.
func TestPageInBrowser(t *testing.T) {
	testkit.WithoutRace(t)
	b := browser.Start(t)
	for name, table := range pageTables() {
		tab := b.Show(t, written(t, table, "html", Options{AllTests: true}))
		for _, width := range []int{1280, 420} {
			tab.Look(width, false)
			for _, found := range tab.Findings() {
				t.Errorf("%s, %d pixels: %s", name, width, found)
			}
		}
	}
}

// overfull finds a line of LaTeX's log that says how far a line goes beyond its margin.
var overfull = regexp.MustCompile(`Overfull \\hbox \(([0-9.]+)pt too wide\)[^\n]*`)

// TestLaTeXCompiles: LaTeX makes a document of each report, with its figures, in which nothing goes far beyond its
// margin.
func TestLaTeXCompiles(t *testing.T) {
	testkit.WithoutRace(t)
	program, err := exec.LookPath("pdflatex")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("kpsewhich", "booktabs.sty", "longtable.sty", "graphicx.sty").Output(); err != nil ||
		len(out) == 0 {
		t.Skip("LaTeX has no package booktabs, longtable or graphicx")
	}
	for name, table := range pageTables() {
		dir := t.TempDir()
		writeFigures(t, dir, table)
		text := written(t, table, "latex", Options{AllTests: true, Pictures: "figures"})
		if err := os.WriteFile(filepath.Join(dir, "report.tex"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-interaction=nonstopmode", "-halt-on-error", "report.tex")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, found := range overfull.FindAllSubmatch(out, -1) {
			if points, err := strconv.ParseFloat(string(found[1]), 64); err != nil || points > 5 {
				t.Errorf("%s: %s", name, found[0])
			}
		}
	}
}

// writeFigures draws the figures of a report to the folder figures.
func writeFigures(t *testing.T, dir string, table *result.Table) {
	t.Helper()
	figures, err := Figures(table, Options{AllTests: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "figures"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range figures {
		drawn, err := figures[i].Draw()
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(dir, "figures", figures[i].Name+".pdf"))
		if err != nil {
			t.Fatal(err)
		}
		if err := drawn.PDF(out); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBaselineOfFractions: the mean baseline is of the methods that train on the most samples, without a label
// enhancement.
func TestBaselineOfFractions(t *testing.T) {
	table := sample()
	for i, settings := range []map[string]string{{"train_fraction": "0.2"}, {"enhance": "lp"}, {"train_fraction": "1"},
		{"train_fraction": "0.5"}} {
		table.Methods[i].Settings = settings
	}
	for i := range table.Runs {
		if c := &table.Runs[i]; c.Mean != nil && c.Method < 4 {
			c.Mean = []float64{float64(c.Method + 1), 0.5}
		}
	}
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for d := range s.Datasets {
		if got := float64(s.at(d, 0).MeanPredictor.Mean); got != 3 {
			t.Errorf("%s: the mean baseline is %v", s.Datasets[d].Name, got)
		}
	}
}
