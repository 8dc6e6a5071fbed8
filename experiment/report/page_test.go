package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
		"long": long}
}

// TestPageInBrowser: on wide and on narrow screens no page is wider than the window, and in no figure do texts overlap
// or leave it.
func TestPageInBrowser(t *testing.T) {
	testkit.WithoutRace(t)
	for name, table := range pageTables() {
		page := written(t, table, "html", Options{AllTests: true})
		for _, width := range []int{1280, 420} {
			for _, found := range browser.Findings(t, page, width) {
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
	if out, err := exec.Command("kpsewhich", "booktabs.sty", "graphicx.sty").Output(); err != nil || len(out) == 0 {
		t.Skip("LaTeX has no package booktabs or graphicx")
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
		out, err := os.Create(filepath.Join(dir, "figures", figures[i].Name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if err := drawn.PNG(out); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
