package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestSuspectsOfMadeLabels: a copy of what labels were made from is found.
func TestSuspectsOfMadeLabels(t *testing.T) {
	content := "copy,x,age\n"
	classes := "copy,x,class\n"
	for i := range 30 {
		content += fmt.Sprintf("%d,%d,%d\n", i*7%10, i*i%13, i*7%10)
		classes += fmt.Sprintf("%d,%d,%s\n", i*7%3, i*i%13, []string{"calm", "glad", "sad"}[i*7%3])
	}
	for content, o := range map[string]LabelOptions{content: {Kind: dataset.Age, Sigma: 1, High: 9}, classes: {Kind: dataset.Class}} {
		src, err := openFile(t, "a.csv", content, OpenOptions{Labels: o})
		if err != nil {
			t.Fatal(err)
		}
		w := featurestats.New(src.Info())
		if err := src.Scan(func(r *dataset.Row) error { w.Add(r); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := w.Suspects(); len(got) != 1 || got[0].Feature != 0 || got[0].Kind != featurestats.SuspectLabel {
			t.Errorf("%s: %v", o.Kind, got)
		}
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
		_, said, err := imported(t, "a.csv", content, OpenOptions{}, importer.Checks{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := openFile(t, "a.csv", content, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var onDisk []string
		if _, err := importer.Import(src, t.TempDir(), importer.Options{Warn: func(s errtext.Text) { onDisk = append(onDisk, s.String()) }}); err != nil {
			t.Fatal(err)
		}
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", content), OpenOptions{}, importer.Options{})
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
	_, said, err := imported(t, "a.csv", file(func(i int) string { return fmt.Sprint(i * 17 % 60) }), OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("%q, %v", all, err)
	}
	_, said, err = imported(t, "a.csv", file(func(i int) string { return fmt.Sprintf("%de%d", i+1, 6-i%7) }), OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("multiplied by 1e56: %q, %v", all, err)
	}
	var svm strings.Builder
	for i := range 60 {
		fmt.Fprintf(&svm, "0.5,0.5 1:%d 3:%d\n", i%7, 1700000000+i)
	}
	_, said, err = imported(t, "a.svm", svm.String(), OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil || !strings.Contains(all, "60 different values of feature 2, from 1700000000 to 1700000059, are rounded to 1 number") {
		t.Errorf("%q, %v", all, err)
	}
}
