package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/allocs"
)

func TestInspect(t *testing.T) {
	path := writeFile(t, "a.csv", "id;x;label_c;label_d\n1;1,5;0,25;0,75\n2;NA;0,5;0,4\n3;-2;;1\n4;0;-1;2\n")
	f, err := Inspect(path, OpenOptions{}, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows != 4 || f.Features != 2 || f.Labels != 2 || len(f.LabelColumns) != 2 || f.Missing != (MissingSummary{Values: 1, Rows: 2}) {
		t.Errorf("%+v", f)
	}
	if x := f.FeatureColumns[1]; x.Name != "x" || *x.Least != -2 || *x.Most != 1.5 || x.Zeros != 1 || x.Missing != 1 {
		t.Errorf("%+v", x)
	}
	if s := f.LabelSums; s == nil || *s != (SumSummary{Least: 0.9, Most: 1, Off: 2, FirstOff: 1}) {
		t.Errorf("%+v", s)
	}
	all := strings.Join(append(f.Warnings, f.Notes...), "\n")
	for _, part := range []string{`"id" has the name`, "rows with missing values: 2", "the first is row 1", `";" between columns and a decimal comma`} {
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
		"a,b\n1,2\n":             "no labels: ",
		"a,label_c\n":            "no rows",
		"a,label_c\ninf,1\n":     "feature 0 is infinite",
		"a,label_c\n1e300,1\n":   "",
		"a,label_c\nNA,1\n,\n":   "rows with missing values: 1",
		"a,label_c\n1,NaN\n2,\n": "rows with missing values: 2",
	} {
		f, err := Inspect(writeFile(t, "a.csv", content), OpenOptions{}, ImportOptions{})
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
	_, err := Inspect(writeFile(t, "a.csv", "a,label_c\nx,1\n"), OpenOptions{}, ImportOptions{})
	mustContain(t, err, "a.csv", `"x" is not a number`)
	_, err = Inspect(writeFile(t, "a.csv", "a,class\n1,sad\n2,\n"), OpenOptions{Labels: LabelOptions{Kind: Class}}, ImportOptions{})
	if err != nil {
		t.Error(err)
	}
}

// TestInspectPeople: what is read can be inspected, and the other way round but for
// missing values and sums.
func TestInspectPeople(t *testing.T) {
	for _, c := range peopleCases {
		o := peopleOptions(t, c.flags)
		f, err := Inspect(filepath.Join(people, c.file), o, ImportOptions{})
		refused := !strings.HasPrefix(c.want, "4 x") && !strings.HasPrefix(c.want, "3 x")
		if err == nil && refused && len(f.Warnings)+len(f.Notes) == 0 || err != nil && !refused {
			t.Errorf("%s %s: %+v, error %v", c.file, c.flags, f, err)
		}
	}
}

// TestInspectWide: of very many features none is looked at by itself, and the rest is
// said as ever.
func TestInspectWide(t *testing.T) {
	path := writeFile(t, "a.svm", fmt.Sprintf("1,0 %d:5\n0.5,0.5 3:nan\n", maxWatched+1))
	f, err := Inspect(path, OpenOptions{}, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows != 2 || f.Features != maxWatched+1 || len(f.FeatureColumns) != 0 || f.Missing.Rows != 1 || len(f.Suspects) != 0 || f.LabelSums == nil {
		t.Errorf("%+v", f)
	}
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, "not looked at one by one") {
		t.Error(notes)
	}
}

// TestInspectMemory: it does not grow with the rows.
func TestInspectMemory(t *testing.T) {
	inspected := func(rows int) {
		src := Artificial(rows, 1)
		s := newInspector(src.Info(), &ImportOptions{})
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
	if err := WriteCSV(&b, Artificial(3*progressRows, 1), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "a.csv", b.String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told := 0
	o := ImportOptions{Progress: func(p Progress) { told++ }, Context: ctx}
	if _, err := Inspect(path, OpenOptions{}, o); !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("error %v after %d reports", err, told)
	}
}
