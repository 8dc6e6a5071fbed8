package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// countedTable is a table of experiments in whole numbers: of each run how many of its test rows are right.
type countedTable struct {
	Datasets []countedSet `json:"datasets"`
	Same     []int        `json:"same"` // by method: the earlier method that it is under another name, or -1
}

type countedSet struct {
	Size  int        `json:"size"`    // its rows
	Sizes []int      `json:"sizes"`   // test rows of each fold
	Same  bool       `json:"same"`    // true if the repeats have the same folds
	Rows  [][][]*int `json:"methods"` // by method, repeat and fold; nil: the run is missing
}

// drawTable draws a table with ties, zeros, equal methods, the same values in another order, repeats and missing runs.
func drawTable(r *rand.Rand) *countedTable {
	rows, sets := 2+r.IntN(3), 1+r.IntN(6)
	switch {
	case r.IntN(8) == 0:
		rows, sets = 2, 1+r.IntN(20)
	case r.IntN(20) == 0:
		rows, sets = 5+r.IntN(5), 1+r.IntN(3)
	}
	t := new(countedTable)
	for range rows {
		t.Same = append(t.Same, -1)
	}
	if rows > 2 && r.IntN(8) == 0 {
		t.Same[rows-1] = r.IntN(rows - 1)
	}
	for range sets {
		t.Datasets = append(t.Datasets, drawSet(r, t.Same))
	}
	return t
}

func drawSet(r *rand.Rand, same []int) countedSet {
	folds, repeats := 2+r.IntN(9), 1
	if r.IntN(3) == 0 {
		repeats = 2 + r.IntN(3)
	}
	s := countedSet{Same: repeats > 1 && r.IntN(2) == 0}
	size, spread := 10+r.IntN(20), 1+r.IntN(6)
	for range folds {
		s.Sizes = append(s.Sizes, size+r.IntN(2)*r.IntN(2))
		s.Size += s.Sizes[len(s.Sizes)-1]
	}
	for row := range same {
		var counts [][]*int
		if row > 0 && r.IntN(6) == 0 { // as an earlier one, or in another order of folds
			counts = copied(s.Rows[r.IntN(row)])
			if r.IntN(2) == 0 {
				for _, repeat := range counts {
					r.Shuffle(folds, func(i, j int) {
						if s.Sizes[i] == s.Sizes[j] {
							repeat[i], repeat[j] = repeat[j], repeat[i]
						}
					})
				}
			}
		} else {
			base := r.IntN(size / 2)
			for range repeats {
				var repeat []*int
				for range folds {
					n := base + r.IntN(spread)
					repeat = append(repeat, &n)
				}
				counts = append(counts, repeat)
			}
			if r.IntN(12) == 0 {
				counts[r.IntN(repeats)][r.IntN(folds)] = nil
			}
		}
		if same[row] >= 0 {
			counts = copied(s.Rows[same[row]])
		}
		s.Rows = append(s.Rows, counts)
	}
	return s
}

func copied(rows [][]*int) (all [][]*int) {
	for _, row := range rows {
		all = append(all, append([]*int(nil), row...))
	}
	return all
}

// table is the table with measures in floats: the share of right rows, and 1 less this share, whose last bits
// differ for equal counts.
func (t *countedTable) table() *result.Table {
	out := &result.Table{Name: "counted", Measures: []string{"accuracy", "zero_one"}}
	for row, same := range t.Same {
		r := result.Method{Name: fmt.Sprint("method ", row)}
		if same >= 0 {
			r.Same = fmt.Sprint("method ", same)
		}
		out.Methods = append(out.Methods, r)
	}
	for d := range t.Datasets {
		s := &t.Datasets[d]
		set := result.Dataset{Name: fmt.Sprint("set", d), Rows: s.Size, Folds: len(s.Sizes)}
		for repeat := range s.Rows[0] {
			for fold := range s.Sizes {
				if s.Same {
					set.Divisions = append(set.Divisions, fold)
				}
				for row := range t.Same {
					c := result.Run{Dataset: d, Method: row, Repeat: repeat, Fold: fold, State: result.Missing}
					if n := s.Rows[row][repeat][fold]; n != nil {
						share := float64(*n) / float64(s.Sizes[fold])
						c.State, c.Rows, c.Values, c.Mean = result.Done, s.Sizes[fold], []float64{share, 1 - share}, []float64{.5, .5}
					}
					out.Runs = append(out.Runs, c)
				}
			}
		}
		out.Datasets = append(out.Datasets, set)
	}
	return out
}

// numbersOfReport lists the numbers of a report by the names that the reference gives them; nil: there is none.
func numbersOfReport(t *testing.T, s *Summary) map[string]*float64 {
	t.Helper()
	all := make(map[string]*float64)
	put := func(v float64, format string, args ...any) {
		var p *float64
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			p = &v
		}
		all[fmt.Sprintf(format, args...)] = p
	}
	for i := range s.Results {
		d, m := i/len(s.Measures), i%len(s.Measures)
		for row := range s.Results[i].Lines {
			l := &s.Results[i].Lines[row]
			if l.Folds > 0 {
				put(float64(l.Mean), "%d/%d/%d/mean", d, m, row)
				put(float64(l.Deviation), "%d/%d/%d/deviation", d, m, row)
			}
			if l.compared() {
				put(float64(l.Place), "%d/%d/%d/place", d, m, row)
			}
			if a := l.Against; a != nil && l.Wanted > 1 {
				for what, v := range map[string]number{
					"corrected": a.CorrectedT, "corrected_holm": a.CorrectedTHolm, "t": a.T, "t_holm": a.THolm,
					"wilcoxon": a.Wilcoxon, "wilcoxon_holm": a.WilcoxonHolm, "effect": a.EffectSize,
				} {
					put(float64(v), "%d/%d/%d/%s", d, m, row, what)
				}
			}
		}
	}
	for m := range s.Rankings {
		r := &s.Rankings[m]
		for _, own := range r.Methods {
			put(float64(own.Rank), "%d/%s/rank", m, strings.TrimPrefix(own.Method, "method "))
		}
		if f := r.Friedman; f != nil {
			put(float64(f.ChiSquared), "%d/chi2", m)
			put(float64(f.P), "%d/p", m)
			put(float64(f.Least), "%d/least", m)
			put(float64(f.CriticalDifference), "%d/difference", m)
		}
	}
	return all
}

// agrees compares the reports of tables with a reference.
func agrees(t *testing.T, tables []*countedTable, want []map[string]*float64) {
	t.Helper()
	if len(want) != len(tables) {
		t.Fatalf("a reference of %d tables, not of %d", len(want), len(tables))
	}
	compared, wrong := 0, 0
	for i, counted := range tables {
		s, err := Summarize(counted.table(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := numbersOfReport(t, s)
		for name := range want[i] {
			if _, ok := got[name]; !ok {
				t.Errorf("table %d: the report lacks %s", i, name)
			}
		}
		for name, v := range got {
			compared++
			w, ok := want[i][name]
			if ok && v == nil && w == nil {
				continue
			}
			if !ok || v == nil || w == nil || !near(*v, *w) {
				if wrong++; wrong < 20 {
					t.Errorf("table %d, %s: %s, want %s", i, name, shownNumber(v), shownNumber(w))
				}
			}
		}
	}
	t.Logf("%d numbers compared", compared)
	if wrong > 0 {
		t.Errorf("%d of %d numbers differ", wrong, compared)
	}
}

func near(a, b float64) bool {
	off := math.Abs(a - b)
	return off <= 1e-9*max(1, math.Abs(b)) && off <= 1e-6*math.Abs(b)+1e-12
}

func shownNumber(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}

func drawTables(n int) (all []*countedTable) {
	r := rand.New(rand.NewPCG(36, 36))
	for range n {
		all = append(all, drawTable(r))
	}
	return all
}

// goldenTables is how many of the tables have their reference in testdata.
const goldenTables = 8

// TestReference: each p-value, statistic, rank, place and mean of 1,000 random tables is what SciPy and exact
// enumeration give for the whole numbers that the tables are made of.
func TestReference(t *testing.T) {
	python := pythonWithSciPy(t)
	tables := drawTables(1000)
	if testing.Short() {
		tables = tables[:goldenTables]
	}
	in, err := json.Marshal(tables)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join("testdata", "reference.py"))
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var want []map[string]*float64
	if err := json.Unmarshal(out.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	agrees(t, tables, want)
	if *update {
		b, err := json.Marshal(want[:goldenTables])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenReference, append(bytes.ReplaceAll(b, []byte("},{"), []byte("},\n{")), '\n'),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var goldenReference = filepath.Join("testdata", "reference.json")

// TestGoldenReference is TestReference of the first tables, with numbers that SciPy 1.17.1 gave.
func TestGoldenReference(t *testing.T) {
	b, err := os.ReadFile(goldenReference)
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]*float64
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	agrees(t, drawTables(goldenTables), want)
}

// pythonWithSciPy returns the path of a Python with SciPy 1.17: that of COPPICE_TEST_PYTHON, or python3.
func pythonWithSciPy(t *testing.T) string {
	t.Helper()
	name := os.Getenv("COPPICE_TEST_PYTHON")
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s; COPPICE_TEST_PYTHON names a Python with SciPy 1.17", name)
	}
	version, err := exec.Command(path, filepath.Join("testdata", "reference.py"), "version").Output()
	if err != nil || !strings.HasPrefix(string(version), "1.17.") {
		t.Skipf("%s has no SciPy 1.17 (%q); COPPICE_TEST_PYTHON names a Python that has it", path,
			strings.TrimSpace(string(version)))
	}
	return path
}
