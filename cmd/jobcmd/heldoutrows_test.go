package jobcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// ofSurvey refuses rows whose true degrees or names (nil: none) are not those that the row of
// the survey with that number has.
func ofSurvey(t *testing.T, what string, rows []int, names []string, oak func(i int) float64) {
	t.Helper()
	if len(rows) == 0 || slices.Contains(rows, 3) || slices.Contains(rows, 8) || !slices.IsSorted(rows) {
		t.Errorf("%s: rows %v", what, rows)
	}
	for i, row := range rows {
		if want := float64(row*7%11) / 16; oak(i) != want || names != nil && names[i] != fmt.Sprint("row ", row) {
			t.Fatalf("%s: row %d has %v, in the file %v; of the names %q", what, row, oak(i), want, names)
		}
	}
}

// rowsOfCSV reads the rows and folds (nil: none) of predictions, and checks them with
// ofSurvey.
func rowsOfCSV(t *testing.T, path string) (rows, folds []int) {
	t.Helper()
	records := clitest.ReadCSV(t, path)
	column := func(name string) (values []string) {
		at := slices.Index(records[0], name)
		for _, r := range records[1:] {
			if at >= 0 {
				values = append(values, r[at])
			}
		}
		return values
	}
	oak := clitest.Numbers(t, column("true_oak"))
	rows, folds = ints(clitest.Numbers(t, column("row"))), ints(clitest.Numbers(t, column("fold")))
	ofSurvey(t, path, rows, column("name"), func(i int) float64 { return oak[i] })
	return rows, folds
}

func ints(values []float64) (list []int) {
	for _, v := range values {
		list = append(list, int(v))
	}
	return list
}

// heldOutByFold makes what heldOutIn has to be of the rows of a file of predictions.
func heldOutByFold(rows, folds []int) [][]int {
	if folds == nil {
		return [][]int{rows}
	}
	lists := make([][]int, slices.Max(folds)+1)
	for i, row := range rows {
		lists[folds[i]] = append(lists[folds[i]], row)
	}
	return lists
}

// countsHeldOut checks the numbers of held-out rows.
func countsHeldOut(t *testing.T, r *results.Result, rows, folds []int) {
	t.Helper()
	if r.HeldOut != len(rows) {
		t.Errorf("held_out is %d, want %d", r.HeldOut, len(rows))
	}
	for k, f := range r.Folds {
		if want := heldOutByFold(rows, folds)[k]; f.HeldOut != len(want) {
			t.Errorf("held_out of fold %d is %d, want %d", k, f.HeldOut, len(want))
		}
	}
}

// surveyNames gives the survey's rows names.
func surveyNames(t *testing.T, dir string) string {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf(`"row %d"`, i))
	}
	return cmdtest.Write(t, dir, "names.json", `{"rows": [`+strings.Join(names, ", ")+`]}`)
}

// Rows that were held out are numbered as in the file, whose rows 3 and 8 are left out: in
// one process and on a cluster, of a file and of a dataset that was imported before.
func TestHeldOutRowsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	reading := []string{"--data", cmdtest.Write(t, dir, "s.csv", clitest.Survey(40)), "--missing", "drop", "--drop", "id",
		"--names", surveyNames(t, dir)}
	split := clitest.SurveyFolds(t, dir)
	c := cmdtest.Start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	cmdtest.Works(t, slices.Concat([]string{"dataset", "import", "--name", "before"}, reading)...)
	for name, how := range map[string][]string{
		"single": {"--test-fraction", "0.3"}, "folds": {"--folds", "3"}, "listed": {"--split", split},
	} {
		csv, list := filepath.Join(dir, name+".csv"), filepath.Join(dir, name+"-split.csv")
		var first []int
		for _, args := range [][]string{
			slices.Concat([]string{"--local"}, reading), slices.Concat([]string{"--name", name}, reading),
			{"--dataset", "before", "--name", name + "-before"}, {"--dataset", "before", "--local"},
		} {
			var r results.Result
			cmdtest.JSON(t, &r, slices.Concat([]string{"train", "--predictions-out", csv, "--split-out", list}, cmdtest.Small,
				how, args)...)
			rows, folds := rowsOfCSV(t, csv)
			if first == nil {
				first = rows
			}
			if diff := cmp.Diff(heldOutByFold(rows, folds), clitest.HeldOut(t, list)); diff != "" || !slices.Equal(rows, first) {
				t.Errorf("%s, %q: rows %v and %v; in the split file: %s", name, args, rows, first, diff)
			}
			countsHeldOut(t, &r, rows, folds)
			if r.SplitFile != list {
				t.Errorf("split_file %q", r.SplitFile)
			}
		}
		jobOfSurvey(t, dir, name)
	}
	linesOfSurvey(t)
	deletedSurvey(t, c.Client(), dir)
}

// linesOfSurvey checks that the result in lines of JSON counts the rows that -o json counts.
func linesOfSurvey(t *testing.T) {
	t.Helper()
	args := slices.Concat([]string{"train", "--dataset", "before", "--name", "lines", "--test-fraction", "0.3"},
		cmdtest.Small)
	lines := strings.Split(strings.TrimSpace(cmdtest.Works(t, append(args, "-o", "jsonl")...)), "\n")
	var last struct {
		Result results.Result `json:"result"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	var want results.Result
	cmdtest.JSON(t, &want, "job", "watch", "lines")
	if want.HeldOut != 11 || last.Result.HeldOut != 11 {
		t.Errorf("held_out is %d, in lines of JSON %d", want.HeldOut, last.Result.HeldOut)
	}
}

// jobOfSurvey checks what commands say of a job that is done.
func jobOfSurvey(t *testing.T, dir, name string) {
	t.Helper()
	csv, npz := filepath.Join(dir, "again.csv"), filepath.Join(dir, "again.npz")
	cmdtest.Works(t, "job", "predictions", name, "--out", csv)
	cmdtest.Works(t, "job", "predictions", name, "--out", npz)
	rows, folds := rowsOfCSV(t, csv)
	values, texts := clitest.Arrays(t, npz)
	ofSurvey(t, npz, ints(values["rows"]), texts["row_names"], func(i int) float64 { return values["labels"][2*i] })
	if diff := cmp.Diff(rows, ints(values["rows"])); diff != "" {
		t.Error(diff)
	}
	var watched results.Result
	cmdtest.JSON(t, &watched, "job", "watch", name)
	countsHeldOut(t, &watched, rows, folds)
	var j struct{ Predictions shownPredictions }
	cmdtest.JSON(t, &j, "job", "show", name)
	if p := j.Predictions; p.Rows != len(rows) || p.BlobRef == nil || p.Bytes == 0 || p.Blob == "" {
		t.Errorf("job show %s: %+v", name, p)
	}
}

// deletedSurvey: a job keeps the row numbers of its predictions when its dataset is deleted. Its division is an error
// only if it is asked for, and also if another dataset has the name.
func deletedSurvey(t *testing.T, cl *client.Client, dir string) {
	t.Helper()
	cmdtest.Works(t, "dataset", "delete", "before")
	csv := filepath.Join(dir, "deleted.csv")
	cmdtest.Works(t, "job", "predictions", "single-before", "--out", csv)
	rowsOfCSV(t, csv)
	var r results.Result
	if cmdtest.JSON(t, &r, "job", "watch", "single-before"); r.HeldOut != 11 {
		t.Errorf("held_out is %d", r.HeldOut)
	}
	j, err := cl.Jobs().Get(t.Context(), "single-before")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := &cli.App{Ctx: t.Context(), Stderr: new(bytes.Buffer)}
		if err := AddDataset(a, cl, &r, j, true); err == nil ||
			!strings.Contains(err.Error(), "--split-out: dataset before was deleted") {
			t.Errorf("a division without the dataset: %v", err)
		}
		if err := AddDataset(a, cl, &r, j, false); err != nil || r.On != nil {
			t.Errorf("without --split-out: %v, %v", r.On, err)
		}
		cmdtest.Works(t, "dataset", "import", "--name", "before", "--data",
			cmdtest.ArtificialFile(t, dir, "other.csv", 40, 2))
	}
}

// A dataset of the same rows that other rows of a file were left out of is another one, since
// its row numbers are.
func TestSameRowsOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	c := cmdtest.Start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	lines := strings.SplitAfter(clitest.Survey(40), "\n")
	without := strings.Join(slices.Concat(lines[:4], lines[5:9], lines[10:]), "")
	reading := []string{"--missing", "drop", "--drop", "id"}
	whole, short := cmdtest.Write(t, dir, "whole.csv", clitest.Survey(40)), cmdtest.Write(t, dir, "short.csv", without)
	cmdtest.Works(t, append([]string{"dataset", "import", "--name", "whole", "--data", short}, reading...)...)
	e := cmdtest.Run(t, append([]string{"dataset", "import", "--name", "whole", "--data", whole}, reading...)...)
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "(0 rows, in the new dataset 2)") ||
		!strings.Contains(e.Stderr, "choose another name") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	var r results.Result
	csv := filepath.Join(dir, "p.csv")
	cmdtest.JSON(t, &r, append(append(append([]string{"train", "--data", whole}, reading...), cmdtest.Small...), "--folds",
		"2", "--predictions-out", csv)...)
	if rows, _ := rowsOfCSV(t, csv); r.Dataset == "whole" || len(rows) != 38 || rows[37] != 39 {
		t.Errorf("dataset %s, rows %v", r.Dataset, rows)
	}
}

// Predictions and measures of each row say which row of the file they are of, in every
// format and with names from a file.
func TestRowsOfTheFile(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "s.csv", clitest.Survey(40)), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, clitest.TrainArgs(data, "--missing", "drop", "--drop", "id", "--model-out", model)...)
	list := surveyNames(t, dir)
	var kept []int
	for i := range 40 {
		if i != 3 && i != 8 {
			kept = append(kept, i)
		}
	}
	for _, command := range [][]string{{"predict"}, {"evaluate", "--per-sample"}} {
		args := append(command, "--model", model, "--data", data, "--drop", "id")
		for _, more := range [][]string{nil, {"--names", list}} {
			csv, npz := filepath.Join(dir, "o.csv"), filepath.Join(dir, "o.npz")
			cmdtest.Works(t, slices.Concat(args, more, []string{"--out", csv})...)
			cmdtest.Works(t, slices.Concat(args, more, []string{"--out", npz})...)
			values, texts := clitest.Arrays(t, npz)
			if diff := cmp.Diff(kept, ints(values["rows"])); diff != "" {
				t.Errorf("%s %q: rows of .npz: %s", command[0], more, diff)
			}
			for i, record := range clitest.ReadCSV(t, csv)[1:] {
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
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--drop", "id", "--missing", "0", "--out", npz)
	if values, _ := clitest.Arrays(t, npz); len(values["rows"]) != 40 || values["rows"][39] != 39 {
		t.Errorf("rows %v", values["rows"])
	}
}
