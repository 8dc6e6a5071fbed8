package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/google/go-cmp/cmp"
)

// What normalising cannot mend is not said to be mended by it.
func TestInspectSuggestsWhatHelps(t *testing.T) {
	for rows, want := range map[string]string{
		"1,-1,2\n2,-1,3\n": "found 2 samples with a negative label, the first in row 0; probabilities must be 0 or more",
		"1,0.5,0.5\n2,0,0\n": "found 1 sample whose labels are all 0, the first in row 1; such samples have no label " +
			"distribution",
	} {
		for _, checks := range []importer.Checks{{}, {Normalize: true}} {
			f, err := Inspect(datasettest.WriteFile(t, "a.csv", "x,label_c,label_d\n"+rows), read.OpenOptions{},
				importer.Options{Checks: checks})
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(f.Warnings, "\n"); !strings.Contains(all, want) || strings.Contains(all, "--normalize") {
				t.Errorf("%q: %s", rows, all)
			}
		}
	}
}

// Infinite labels are in the warnings, and in no range: JSON has no such numbers.
func TestInspectInfiniteLabels(t *testing.T) {
	for rows, want := range map[string]*SumSummary{
		"1,inf,0.5\n2,0.5,0.4\n3,0.5,0.5\n4,-inf,1\n": {Least: 0.9, Most: 1, Off: 3, FirstOff: 0},
		"1,inf,0.5\n": nil,
	} {
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", "x,label_c,label_d\n"+rows), read.OpenOptions{},
			importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(f); err != nil {
			t.Errorf("%q: %v", rows, err)
		}
		if diff := cmp.Diff(want, f.LabelSums); diff != "" {
			t.Errorf("%q: %s", rows, diff)
		}
		if all := strings.Join(f.Warnings, "\n"); !strings.Contains(all, "row 0, label 0") {
			t.Errorf("%q does not name the first infinite label", all)
		}
	}
}

func TestInspect(t *testing.T) {
	path := datasettest.WriteFile(t, "a.csv", "id;x;label_c;label_d\n1;1,5;0,25;0,75\n2;NA;0,5;0,4\n3;-2;;1\n4;0;-1;2\n")
	f, err := Inspect(path, read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows != 4 || f.Features != 2 || f.Labels != 2 || len(f.LabelColumns) != 2 ||
		f.Missing != (MissingSummary{Values: 1, Labels: 1, Rows: 2}) || f.LabelColumns[0].Missing != 1 ||
		f.LabelColumns[1].Missing != 0 {
		t.Errorf("%+v", f)
	}
	if x := f.FeatureColumns[1]; x.Name != "x" || *x.Least != -2 || *x.Most != 1.5 || x.Zeros != 1 || x.Missing != 1 {
		t.Errorf("%+v", x)
	}
	if s := f.LabelSums; s == nil || *s != (SumSummary{Least: 0.9, Most: 1, Off: 2, FirstOff: 1}) {
		t.Errorf("%+v", s)
	}
	all := strings.Join(append(f.Warnings, f.Notes...), "\n")
	for _, part := range []string{"found 2 samples with missing values: ",
		"found 1 sample whose labels do not sum to 1, the first in row 1; --normalize",
		"found 1 sample with a negative label, the first in row 3; probabilities must be 0 or more",
		`";" between columns, a comma before decimals`} {
		if !strings.Contains(all, part) {
			t.Errorf("%q lacks %q", all, part)
		}
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
}

// TestInspectAnything: files without labels, without rows, with infinite values, and
// those that cannot be read.
func TestInspectAnything(t *testing.T) {
	for content, says := range map[string]string{
		"a,b\n1,2\n":                        "no labels found: ",
		"a,label_c\n":                       "no samples",
		"a,b,label_c\n1,2,1\n3,inf,1\n":     `row 1, feature 1 "b" (counted from 0): +Inf is not a finite number`,
		"a,label_c\n1,1\n1e39,1\n-1e40,1\n": `row 1, feature 0 "a" (counted from 0): 1e+39 is too large for a float32 (2 such values)`,
		"a,label_c\n1,1e39\n":               `row 0, label 0 "c" (counted from 0): 1e+39 is too large for a float32`,
		"a,label_c\nNA,1\n,\n":              "found 1 sample with missing values: ",
		"a,label_c\n1,NaN\n2,\n":            "found 2 samples with missing values: ",
	} {
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", content), read.OpenOptions{}, importer.Options{})
		if err != nil {
			t.Errorf("%q: %v", content, err)
			continue
		}
		if all := strings.Join(append(f.Warnings, f.Notes...), "\n"); !strings.Contains(all, says) {
			t.Errorf("%q: %q lacks %q", content, all, says)
		}
		if _, err := json.Marshal(f); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
	f, err := Inspect(datasettest.WriteFile(t, "a.csv", "a,label_c\nx,1\n"), read.OpenOptions{}, importer.Options{})
	if err != nil || !strings.Contains(f.Refused, `"x" is not a number`) {
		t.Errorf("%+v, error %v", f, err)
	}
	_, err = Inspect(datasettest.WriteFile(t, "a.csv", "a,class\n1,sad\n2,\n"),
		read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}, importer.Options{})
	if err != nil {
		t.Error(err)
	}
}

// TestInspectMissingLabels: they are counted, and no advice is given that training
// refuses.
func TestInspectMissingLabels(t *testing.T) {
	for _, c := range []struct {
		content string
		kind    dataset.LabelKind
		want    MissingSummary
		says    string
		fills   bool // --missing 0 helps
	}{
		{"a,label_c,label_d\n1,,\n2,0,1\n", dataset.Distributions, MissingSummary{Labels: 2, Rows: 1},
			"found 1 sample with missing values: 2 missing labels; --missing drop", false},
		{"a,label_c\nNA,1\n2,1\n", dataset.Distributions, MissingSummary{Values: 1, Rows: 1},
			"found 1 sample with missing values: 1 missing feature; --missing drop", true},
		{"a,label_c\nNA,\nNA,1\n", dataset.Distributions, MissingSummary{Values: 2, Labels: 1, Rows: 2},
			"found 2 samples with missing values: 2 missing features and 1 missing label; --missing drop", false},
		{"a,y_c,y_d\n1,NA,3\n2,1,1\n", dataset.Counts, MissingSummary{Labels: 1, Rows: 1},
			"missing values: 1 missing label;", false},
		{"a,age\n1,NA\n2,1\n", dataset.Age, MissingSummary{Labels: 1, Rows: 1}, "missing values: 1 missing label;", false},
		{"a,class\n1,x\n2,?\n3,NaN\n4,\n5,y\n", dataset.Class, MissingSummary{Labels: 3, Rows: 3},
			"missing values: 3 missing labels;", false},
	} {
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", c.content),
			read.OpenOptions{Labels: read.LabelOptions{Kind: c.kind, Sigma: 1, High: 9}}, importer.Options{})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		all := strings.Join(f.Warnings, "\n")
		if f.Missing != c.want || !strings.Contains(all, c.says) || strings.Contains(all, "--missing 0") != c.fills {
			t.Errorf("%q: %+v, %s", c.content, f.Missing, all)
		}
	}
}

// TestInspectUnfit: of values that are refused the first is told, with their number, and columns of sparse rows are
// called by their own numbers.
func TestInspectUnfit(t *testing.T) {
	path := datasettest.WriteFile(t, "a.svm", "1 3:1\n1 2:inf 5:-1e39 6:nan\n1 1:1 5:1e39\n1 "+
		"7:inf 8:inf 9:inf 10:inf 11:inf 12:inf 13:inf 14:inf\n")
	f, err := Inspect(path, read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(f.Warnings, "\n")
	if !strings.Contains(all, "row 1, feature 1 (counted from 0): +Inf is not a finite number (11 such values)") {
		t.Error(all)
	}
}

// TestInspectWide: of very many features none is looked at by itself, and the rest is
// said as ever.
func TestInspectWide(t *testing.T) {
	path := datasettest.WriteFile(t, "a.svm", fmt.Sprintf("1,0 %d:5\n0.5,0.5 3:nan\n#%s\n", featurestats.MaxColumns+1,
		strings.Repeat("x", featurestats.MaxColumns)))
	f, err := Inspect(path, read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows != 2 || f.Features != featurestats.MaxColumns+1 || len(f.FeatureColumns) != 0 || f.Missing.Rows != 1 ||
		f.LabelSums == nil {
		t.Errorf("%+v", f)
	}
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, "single features were not checked") {
		t.Error(notes)
	}
}

// TestInspectMemory: it does not grow with the rows.
func TestInspectMemory(t *testing.T) {
	inspected := func(rows int) {
		src := generate.Artificial(rows, 1)
		s := newInspector(src.Info(), &importer.Options{})
		if err := src.Scan(s.add); err != nil {
			t.Fatal(err)
		}
		s.finish()
	}
	inspected(10)
	allocs.AtMost(t, 256<<10, "an inspection", func() { inspected(100_000) })
}

// TestInspectEnds: it stops when it is told to.
func TestInspectEnds(t *testing.T) {
	var b strings.Builder
	if err := write.WriteCSV(&b, generate.Artificial(3*importer.ProgressRows, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	path := datasettest.WriteFile(t, "a.csv", b.String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told := 0
	o := importer.Options{Progress: func(p importer.Progress) { told++ }, Context: ctx}
	if _, err := Inspect(path, read.OpenOptions{}, o); !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("error %v after %d reports", err, told)
	}
}

// A way to read a file is tried with other flags only if its error advises them.
func TestInspectReadsSeldom(t *testing.T) {
	head := "x,label_a,label_b\n" + strings.Repeat("1,0.5,0.5\n", 2*importer.ProgressRows)
	for _, c := range []struct {
		name, last string
		passes     int
		flags      string
	}{
		{"as it is", "2,0.5,0.5", 1, ""},
		{"infinite", "inf,0.5,0.5", 1, ""},
		{"negative", "2,-0.5,1.5", 1, ""},
		{"a sum", "2,1,2", 2, "--normalize "},
		{"zeros", "2,0,0", 2, "--missing drop"},
		{"missing", ",0.5,0.5", 2, "--missing drop"},
		{"missing, then a sum", ",0.5,0.5\n2,1,2", 3, "--missing drop --normalize "},
		{"a sum, then missing", "2,1,2\n2,,2", 3, "--missing drop --normalize "},
	} {
		passes := 0
		o := importer.Options{Progress: func(p importer.Progress) {
			if p.Phase == "check" && p.Done == importer.ProgressRows {
				passes++
			}
		}}
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", head+c.last+"\n"),
			read.OpenOptions{CSV: read.CSVOptions{Header: dataset.HeaderYes}}, o)
		if err != nil {
			t.Fatal(err)
		}
		asGiven := 0
		if !slices.ContainsFunc(f.Readings, func(r TriedReading) bool {
			return len(r.Flags) == 0 && r.Refused != ""
		}) && c.flags != "" {
			asGiven = 1 // once more, for what the flags as given say
		}
		if got := FlagText(f.Readings[0].Flags); passes != c.passes+asGiven || got != c.flags {
			t.Errorf("%s: %d passes (%d as given), flags %q, %+v", c.name, passes, asGiven, got, f.Readings)
		}
	}
}

// TestInspectTargets: columns of real numbers are read as targets in bounds, if they can be no probabilities or
// percentages.
func TestInspectTargets(t *testing.T) {
	rows := func(labels ...string) string {
		var b strings.Builder
		b.WriteString("x,y_a,y_b\n")
		for i := range 40 {
			fmt.Fprintf(&b, "%d.5,%s\n", i, labels[i%len(labels)])
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text string
		flags      []string // of the readings that are possible
	}{
		{"negative", rows("1.5,-2", "0.25,3.5"), []string{"--labels bounded"}},
		{"above 1", rows("1.5,2", "10.25,3.5"), []string{"--normalize ", "--labels bounded"}},
		{"percent", rows("12.5,87.5", "40.1,59.9"), []string{"--normalize "}},
		{"probabilities", rows("0.5,0.5", "0.25,0.75"), []string{""}},
		{"rounding", rows("1.00000001,-0.00000001", "0.25,0.75"), []string{""}},
		{"whole", rows("3,4", "1,7"), []string{"--labels counts"}},
	} {
		f, err := Inspect(datasettest.WriteFile(t, "a.csv", c.text), read.OpenOptions{}, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, r := range f.Readings {
			if r.Refused == "" {
				flags = append(flags, FlagText(r.Flags))
			}
		}
		if !slices.Equal(flags, c.flags) {
			t.Errorf("%s: readings %q, want %q", c.name, flags, c.flags)
		}
	}
	path := datasettest.WriteFile(t, "b.csv", rows("1.5,-2", "0.25,3.5"))
	f, err := Inspect(path, read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Bounded}}, importer.Options{})
	if err != nil || len(f.Warnings) > 0 || f.LabelSums != nil || len(f.Readings) != 1 || f.Readings[0].Refused != "" {
		t.Errorf("with --labels bounded: %+v, error %v", f, err)
	}
}

// TestInspectListedLabels checks that labels which a file lists are labels in the columns and in the readings, also if
// no sample has a sum of 1.
func TestInspectListedLabels(t *testing.T) {
	const head = "@relation 'a: -C 2'\n@attribute sad {0,1}\n@attribute calm {0,1}\n@attribute loud numeric\n@data\n"
	path := datasettest.WriteFile(t, "a.arff", head+"1,0,1.5\n1,1,2.5\n0,1,-1\n")
	found, err := Inspect(path, read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Readings) == 0 || FlagText(found.Readings[0].Flags) != "--labels counts" ||
		found.Readings[0].Labels != 2 || found.Readings[0].Features != 1 || found.Readings[0].Refused != "" {
		t.Errorf("readings %+v", found.Readings)
	}
	for i, want := range []Role{RoleLabel, RoleLabel, RoleFeature} {
		if got := found.Columns[i].Role; got != want {
			t.Errorf("column %d is %s, want %s", i, got, want)
		}
	}
	if !strings.Contains(found.Refused, "--labels counts reads logical labels") {
		t.Errorf("refused: %s", found.Refused)
	}
	class := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}
	if found, err = Inspect(path, class, importer.Options{}); err != nil || found.Readings[0].Labels != 3 ||
		found.Readings[0].Features != 2 {
		t.Errorf("with a class: %+v, %v", found.Readings, err)
	}
}
