package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// watched scans src and returns the kinds of its suspects by feature.
func watched(t *testing.T, src Source) map[int]string {
	t.Helper()
	w := newFeatureStats(src.Info())
	if err := src.Scan(func(r *Row) error { w.add(r); return nil }); err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, s := range w.suspects() {
		found[s.Feature] = s.Kind
	}
	return found
}

// suspicious returns n rows: a number that rises, noise, a constant, a copy of label
// 0, a line in label 1, and a name that is an id's.
func suspicious(n int, sparse bool) *listed {
	l := &listed{info: Info{
		Rows: n, Features: 6, Labels: 3,
		FeatureNames: []string{"n", "noise", "c", "copy", "line", "ID"}, LabelNames: []string{"p", "q", "r"},
	}}
	for i := range n {
		d := float64(i*7%64) / 128
		noise := float64(i * i % 17)
		e := (1 - d) * float64(i*5%8) / 8
		r := Row{Values: []float64{float64(1000 + 3*i), noise, 5, d, 4 - 3*e, noise}, Labels: []float64{d, e, 1 - d - e}}
		if r.Sparse = sparse; sparse {
			r.Columns = []uint32{0, 1, 2, 3, 4, 5}
		}
		l.rows = append(l.rows, r)
	}
	return l
}

func TestSuspects(t *testing.T) {
	want := map[int]string{0: SuspectRowNumber, 2: SuspectConstant, 3: SuspectLabel, 4: SuspectLabel, 5: SuspectRowNumber}
	for _, rows := range []int{12, 300, 5000} {
		for _, sparse := range []bool{false, true} {
			if got := watched(t, suspicious(rows, sparse)); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d rows, sparse %v: %v, want %v", rows, sparse, got, want)
			}
		}
	}
}

// TestNoSuspects: what is in order is not suspect, and in a few rows anything may
// rise or go with a label.
func TestNoSuspects(t *testing.T) {
	generated, err := Generate(GenerateOptions{Rows: 500, Features: 30, Labels: 4, Density: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	few := suspicious(9, false)
	few.info.Features, few.info.FeatureNames = 2, few.info.FeatureNames[:2]
	for i := range few.rows {
		few.rows[i].Values = few.rows[i].Values[:2]
	}
	for name, src := range map[string]Source{"artificial": Artificial(500, 1), "generated": generated, "few rows": few} {
		if got := watched(t, src); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSuspectsOfSorted: rows that are sorted by class have the same label for long.
func TestSuspectsOfSorted(t *testing.T) {
	l := &listed{info: Info{Rows: 3000, Features: 1, Labels: 2}}
	for i := range 3000 {
		class := float64(i / 1500)
		l.rows = append(l.rows, Row{Values: []float64{10 * class}, Labels: []float64{1 - class, class}})
	}
	if got := watched(t, l); got[0] != SuspectLabel {
		t.Errorf("%v", got)
	}
}

// TestSuspectsOfMadeLabels: a copy of what labels were made from is found.
func TestSuspectsOfMadeLabels(t *testing.T) {
	content := "copy,x,age\n"
	classes := "copy,x,class\n"
	for i := range 30 {
		content += fmt.Sprintf("%d,%d,%d\n", i*7%10, i*i%13, i*7%10)
		classes += fmt.Sprintf("%d,%d,%s\n", i*7%3, i*i%13, []string{"calm", "glad", "sad"}[i*7%3])
	}
	for content, o := range map[string]LabelOptions{content: {Kind: Age, Sigma: 1, High: 9}, classes: {Kind: Class}} {
		src, err := openFile(t, "a.csv", content, OpenOptions{Labels: o})
		if err != nil {
			t.Fatal(err)
		}
		if got := watched(t, src); len(got) != 1 || got[0] != SuspectLabel {
			t.Errorf("%s: %v", o.Kind, got)
		}
	}
}

// TestCorrelations: they are those of the rows that are compared on, also of large
// values that change little.
func TestCorrelations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2*suspectRows, 200).Draw(t, "rows")
		at := float64(rapid.SampledFrom([]int{0, 1, 1 << 40}).Draw(t, "offset"))
		slope := rapid.IntRange(-3, 3).Draw(t, "slope")
		var x, y []float64
		w := newFeatureStats(Info{Features: 1, Labels: 1})
		for range n {
			label := float64(rapid.IntRange(0, 50).Draw(t, "y"))
			value := at + float64(slope)*label + float64(rapid.IntRange(0, 9).Draw(t, "x"))
			if len(x) > suspectRows && rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
				value = nan
			} else {
				x, y = append(x, value), append(y, label)
			}
			w.add(&Row{Values: []float64{value}, Labels: []float64{label}})
		}
		if slices.Min(x) == slices.Max(x) || slices.Min(y) == slices.Max(y) {
			return
		}
		if _, got := w.correlations.closest(0); math.Abs(got-stat.Correlation(x, y, nil)) > 1e-9 {
			t.Fatalf("%v, want %v", got, stat.Correlation(x, y, nil))
		}
	})
}

// TestSampled: every row at first, then fewer, and some of all of a long file.
func TestSampled(t *testing.T) {
	n, last := 0, 0
	for row := range 1 << 20 {
		if sampled(row) {
			n, last = n+1, row
		}
		if row < pairRows && n != row+1 {
			t.Fatalf("row %d is passed over", row)
		}
	}
	if n > 14*pairRows || last < 1<<19 {
		t.Errorf("%d rows, the last %d", n, last)
	}
}

func TestWarnings(t *testing.T) {
	w := newFeatureStats(suspicious(1, false).info)
	for _, r := range suspicious(100, false).rows {
		w.add(&r)
	}
	lines := strings.Join(errtext.Strings(warnings(w.suspects())), "\n")
	for _, part := range []string{
		`feature "n" looks like a row number`, `--drop n leaves it out`, `feature "copy" is label "p" or follows from it (correlation 1.0000)`,
		`feature "line" is label "q"`, `correlation -1.0000`, `feature "ID" has the name of a row number`, `feature "c" is 5 in every sample`,
	} {
		if !strings.Contains(lines, part) {
			t.Errorf("%q lacks %q", lines, part)
		}
	}
	var many []Suspect
	for i := range 20 {
		many = append(many, Suspect{Feature: i, Kind: SuspectConstant, Reason: "is 0 in every sample"}, Suspect{Feature: i, Kind: SuspectLabel, Reason: "is it"})
	}
	lines = strings.Join(errtext.Strings(warnings(many)), "\n")
	if n := strings.Count(lines, "\n") + 1; n != warningNames+2 || !strings.Contains(lines, "12 more features") || !strings.Contains(lines, "6, 7 and 12 more") {
		t.Errorf("%d lines: %s", n, lines)
	}
}

// TestRoundedFeatures: values that differ and are one float32 are counted, and the advice helps.
func TestRoundedFeatures(t *testing.T) {
	file := func(value func(i int) string) string {
		var b strings.Builder
		b.WriteString("a,epoch,label_x,label_y\n")
		for i := range 60 {
			fmt.Fprintf(&b, "%d,%s,.5,.5\n", i*7%11, value(i))
		}
		return b.String()
	}
	for _, c := range []struct {
		what  string
		value func(i int) string
		says  string // "": nothing
	}{
		{"Unix times", func(i int) string { return fmt.Sprint(1700000000 + i*17%60) }, `60 different values of feature "epoch", from 1700000000 to 1700000059, are rounded to 1 number in float32; subtract an offset, such as 1700000000, from the values`},
		{"and a 0", func(i int) string { return fmt.Sprint((1700000000 + i) * min(i, 1)) }, `60 different values of feature "epoch", from 0 to 1700000059, are rounded to 2 numbers in float32`},
		{"Julian days", func(i int) string { return fmt.Sprintf("2459000.%02d", i) }, `60 different values of feature "epoch", from 2459000 to 2459000.59, are rounded to 3 numbers in float32; subtract an offset, such as 2459000`},
		{"64-bit ids", func(i int) string { return fmt.Sprint(uint64(1)<<62 + uint64(i)*1e6) }, "are rounded to 1 number in float32; subtract an offset"},
		{"two numbers", func(i int) string { return fmt.Sprint(16777216 + i%2) }, "2 different values"},
		{"small numbers", func(i int) string { return fmt.Sprintf("%v", float64(i)/7) }, ""},
		{"large, far apart", func(i int) string { return fmt.Sprint(1e9 + float64(i)*1e7) }, ""},
		{"rounding", func(i int) string { return []string{"0.3", "0.30000000000000004"}[i%2] }, ""},
		{"exact", func(i int) string { return fmt.Sprint(16777216 + 2*i) }, ""},
		{"constant", func(i int) string { return "1700000000" }, ""},
		{"p-values of a screen", func(i int) string { return fmt.Sprintf("%de-%d", i+1, 50+i%7) }, `59 different values of feature "epoch", 7e-56 to 5.7e-49, are rounded to 0 in float32; multiply the feature by 1e56`},
		{"one of them", func(i int) string { return []string{"0.5", "-1e-50", "0"}[i%3] }, `1 different value of feature "epoch", -1e-50, is rounded to 0 in float32; no factor keeps the values different from 0`},
		{"among larger ones", func(i int) string { return fmt.Sprintf("1e-%d", i+1) }, `23 different values of feature "epoch", 1e-60 to 1e-38, are rounded to 0 and 8 other numbers in float32; take logarithms of the values`},
		{"almost 0", func(i int) string { return fmt.Sprintf("1.%de-44", i) }, `different values of feature "epoch", 1e-44 to 1.9e-44, are`},
		{"near 0, told apart", func(i int) string { return fmt.Sprintf("%de-40", i) }, ""},
	} {
		content := file(c.value)
		_, said, err := imported(t, "a.csv", content, OpenOptions{}, Checks{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := openFile(t, "a.csv", content, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var onDisk []string
		if _, err := Import(src, t.TempDir(), ImportOptions{Warn: func(s errtext.Text) { onDisk = append(onDisk, s.String()) }}); err != nil {
			t.Fatal(err)
		}
		f, err := Inspect(writeFile(t, "a.csv", content), OpenOptions{}, ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for who, lines := range map[string][]string{"build": said, "import": onDisk, "inspect": f.Warnings} {
			all := strings.Join(lines, "\n")
			if c.says == "" && strings.Contains(all, "in float32") || !strings.Contains(all, c.says) {
				t.Errorf("%s, %s: said %q, want %q", c.what, who, all, c.says)
			}
		}
	}
	// As advised.
	_, said, err := imported(t, "a.csv", file(func(i int) string { return fmt.Sprint(i * 17 % 60) }), OpenOptions{}, Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("%q, %v", all, err)
	}
	_, said, err = imported(t, "a.csv", file(func(i int) string { return fmt.Sprintf("%de%d", i+1, 6-i%7) }), OpenOptions{}, Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("multiplied by 1e56: %q, %v", all, err)
	}
	var svm strings.Builder
	for i := range 60 {
		fmt.Fprintf(&svm, "0.5,0.5 1:%d 3:%d\n", i%7, 1700000000+i)
	}
	_, said, err = imported(t, "a.svm", svm.String(), OpenOptions{}, Checks{})
	if all := strings.Join(said, "\n"); err != nil || !strings.Contains(all, "60 different values of feature 2, from 1700000000 to 1700000059, are rounded to 1 number") {
		t.Errorf("%q, %v", all, err)
	}
}
