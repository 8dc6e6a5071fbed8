package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofSurvey refuses rows whose true degrees are not those that the row of the survey with
// that number has.
func ofSurvey(t *testing.T, what string, rows []int, oak func(i int) float64) {
	t.Helper()
	if len(rows) == 0 || slices.Contains(rows, 3) || slices.Contains(rows, 8) || !slices.IsSorted(rows) {
		t.Errorf("%s: rows %v", what, rows)
	}
	for i, row := range rows {
		if want := float64(row*7%11) / 16; oak(i) != want {
			t.Fatalf("%s: row %d has %v, in the file %v", what, row, oak(i), want)
		}
	}
}

// rowsOfCSV reads the columns row and fold, and checks true_oak; folds is nil where there
// are none.
func rowsOfCSV(t *testing.T, path string) (rows, folds []int) {
	t.Helper()
	records := readCSV(t, path)
	column := func(name string) (values []float64) {
		at := slices.Index(records[0], name)
		for _, r := range records[1:] {
			if at >= 0 {
				values = append(values, numbers(t, r[at:at+1])...)
			}
		}
		return values
	}
	oak := column("true_oak")
	rows, folds = ints(column("row")), ints(column("fold"))
	ofSurvey(t, path, rows, func(i int) float64 { return oak[i] })
	return rows, folds
}

func ints(values []float64) (list []int) {
	for _, v := range values {
		list = append(list, int(v))
	}
	return list
}

// heldOutByFold is what held_out has to be, from the rows of a file of predictions.
func heldOutByFold(rows, folds []int) (lists [][]int) {
	if folds == nil {
		return [][]int{rows}
	}
	lists = make([][]int, slices.Max(folds)+2) // the last: of no fold
	lists[len(lists)-1] = nil
	for i, row := range rows {
		lists[folds[i]] = append(lists[folds[i]], row)
	}
	return lists
}

// surveyFolds assigns the survey's rows to two folds.
func surveyFolds(t *testing.T, dir string) string {
	var b strings.Builder
	b.WriteString("row,fold\n")
	for i := range 40 {
		fmt.Fprintf(&b, "%d,%d\n", i, i/2%2)
	}
	return write(t, dir, "split.csv", b.String())
}

// Rows that were held out are numbered as in the file, whose rows 3 and 8 are left out: in
// every file and list of rows, in one process and on a cluster, also of a dataset that was
// imported before, and once the dataset is deleted.
func TestHeldOutRowsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "s.csv", survey(40))
	reading := []string{"--missing", "drop", "--drop", "id"}
	folds := surveyFolds(t, dir)
	c := start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	works(t, append([]string{"dataset", "import", "--name", "before", "--data", data}, reading...)...)
	for name, how := range map[string][]string{
		"single": {"--test-fraction", "0.3"}, "folds": {"--folds", "3"}, "listed": {"--split", folds},
	} {
		how = append(slices.Clone(small), how...)
		csv, npz := filepath.Join(dir, name+".csv"), filepath.Join(dir, name+".npz")
		var want []int
		var lists [][]int
		for i, args := range [][]string{
			append([]string{"train", "--local", "--data", data}, reading...),
			append([]string{"train", "--name", name, "--data", data}, reading...),
			{"train", "--name", name + "-before", "before"},
			{"train", "--local", "before"},
		} {
			var r result
			if args[len(args)-1] == "before" {
				args = append(args[:len(args)-1], "--dataset", "before")
			}
			inJSON(t, &r, append(append(args, how...), "--predictions-out", csv)...)
			rows, of := rowsOfCSV(t, csv)
			if i == 0 {
				want, lists = rows, heldOutByFold(rows, of)
			}
			if diff := cmp.Diff(want, rows); diff != "" {
				t.Errorf("%q: other rows: %s", args, diff)
			}
			if diff := cmp.Diff(lists, heldOutOf(&r)); diff != "" && of != nil || of == nil && !slices.Equal(r.HeldOut, want) {
				t.Errorf("%q: held_out: %s", args, diff)
			}
		}
		works(t, "job", "predictions", name, "--out", npz)
		values, _ := arrays(t, npz)
		ofSurvey(t, npz, ints(values["rows"]), func(i int) float64 { return values["labels"][2*i] })
		if diff := cmp.Diff(want, ints(values["rows"])); diff != "" {
			t.Error(diff)
		}
		var watched result
		inJSON(t, &watched, "job", "watch", name)
		if diff := cmp.Diff(lists[:len(lists)-1], heldOutOf(&watched)[:len(lists)-1]); diff != "" {
			t.Errorf("job watch %s: held_out: %s", name, diff)
		}
		var shown struct {
			Predictions struct {
				Blob  string
				Bytes int
				Rows  int
			}
		}
		inJSON(t, &shown, "job", "show", name)
		if p := shown.Predictions; p.Rows != len(want) || p.Bytes == 0 || p.Blob == "" {
			t.Errorf("job show %s: %+v", name, p)
		}
	}
	works(t, "dataset", "delete", "before")
	csv := filepath.Join(dir, "deleted.csv")
	works(t, "job", "predictions", "single-before", "--out", csv)
	rowsOfCSV(t, csv)
	e := coppice(t, "job", "watch", "single-before", "-o", "json")
	if e.code != exitOK || strings.Contains(e.stdout, `"held_out"`) || !strings.Contains(e.stderr, "dataset before was deleted") {
		t.Errorf("exit code %d: %s\n%s", e.code, e.stderr, e.stdout)
	}
}

// A dataset of the same rows that other rows of a file were left out of is another one, since
// its row numbers are.
func TestSameRowsOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	c := start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	lines := strings.SplitAfter(survey(40), "\n")
	without := strings.Join(slices.Concat(lines[:4], lines[5:9], lines[10:]), "")
	reading := []string{"--missing", "drop", "--drop", "id"}
	whole, short := write(t, dir, "whole.csv", survey(40)), write(t, dir, "short.csv", without)
	works(t, append([]string{"dataset", "import", "--name", "whole", "--data", short}, reading...)...)
	e := coppice(t, append([]string{"dataset", "import", "--name", "whole", "--data", whole}, reading...)...)
	if e.code != exitFailed || !strings.Contains(e.stderr, "(0, of the new file 2)") || !strings.Contains(e.stderr, "choose another name") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
	var r result
	csv := filepath.Join(dir, "p.csv")
	inJSON(t, &r, append(append(append([]string{"train", "--data", whole}, reading...), small...), "--folds", "2", "--predictions-out", csv)...)
	if rows, _ := rowsOfCSV(t, csv); r.Dataset == "whole" || len(rows) != 38 || rows[37] != 39 {
		t.Errorf("dataset %s, rows %v", r.Dataset, rows)
	}
}

// Predictions and measures of each row say which row of the file they are of, in every
// format and with names from a file.
func TestRowsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	data, model := write(t, dir, "s.csv", survey(40)), filepath.Join(dir, "m.coppice")
	works(t, trainArgs(data, "--missing", "drop", "--drop", "id", "--model-out", model)...)
	var kept []int
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint("row ", i)))
		if i != 3 && i != 8 {
			kept = append(kept, i)
		}
	}
	list := write(t, dir, "names.json", `{"rows": [`+strings.Join(names, ", ")+`]}`)
	for _, command := range [][]string{{"predict"}, {"evaluate", "--per-row"}} {
		args := append(command, "--model", model, "--data", data, "--drop", "id")
		for _, more := range [][]string{nil, {"--names", list}} {
			csv, npz := filepath.Join(dir, "o.csv"), filepath.Join(dir, "o.npz")
			works(t, slices.Concat(args, more, []string{"--out", csv})...)
			works(t, slices.Concat(args, more, []string{"--out", npz})...)
			values, texts := arrays(t, npz)
			if diff := cmp.Diff(kept, ints(values["rows"])); diff != "" {
				t.Errorf("%s %q: rows of .npz: %s", command[0], more, diff)
			}
			for i, record := range readCSV(t, csv)[1:] {
				want := strconv.Itoa(kept[i])
				if more != nil {
					want = "row " + want
				}
				if record[0] != want || more != nil && texts["row_names"][i] != want {
					t.Errorf("%s %q: row %q, not %q; %d names in .npz", command[0], more, record[0], want, len(texts["row_names"]))
				}
			}
		}
	}
	npz := filepath.Join(dir, "all.npz")
	works(t, "predict", "--model", model, "--data", data, "--drop", "id", "--missing", "0", "--out", npz)
	if values, _ := arrays(t, npz); len(values["rows"]) != 40 || values["rows"][39] != 39 {
		t.Errorf("rows %v", values["rows"])
	}
}
