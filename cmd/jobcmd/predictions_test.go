package jobcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// Predictions of held-out rows are those of the model that did not learn from them,
// and have the rows' numbers, names, folds and true labels.
func TestPredictionsOut(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(90)
	for i := range m.Rows {
		m.Rows[i] = append(m.Rows[i], fmt.Sprint("row ", i))
	}
	data := m.File(t, dir, "moods.csv", append(m.Header, "name"), 0, 1, 2, 3, 4, 5, 6, 7)
	out, model, split := filepath.Join(dir, "p.csv"), filepath.Join(dir, "m.coppice"), filepath.Join(dir, "s.csv")
	var r results.Result
	cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--folds", "3", "--model-out", model, "--predictions-out", out,
		"--split-out", split)...)
	lists := clitest.HeldOut(t, split)
	records := clitest.ReadCSV(t, out)
	want := []string{"row", "name", "fold", "true_happy", "true_sad", "true_angry", "predicted_happy", "predicted_sad",
		"predicted_angry"}
	if diff := cmp.Diff(want, records[0]); diff != "" || len(records) != 91 || r.Predictions != out {
		t.Fatalf("%d lines at %q: %s", len(records), r.Predictions, diff)
	}
	var byFold [3][][]string
	for fold := range byFold {
		cmdtest.Works(t, "predict", "--model", filepath.Join(dir, fmt.Sprintf("m-fold%d.coppice", fold)), "--data", data,
			"--out", filepath.Join(dir, "all.csv"))
		byFold[fold] = clitest.ReadCSV(t, filepath.Join(dir, "all.csv"))
	}
	truth := clitest.ReadCSV(t, data)
	for i, record := range records[1:] {
		fold, err := strconv.Atoi(record[2])
		if err != nil || record[0] != strconv.Itoa(i) || record[1] != "row "+record[0] || !slices.Contains(lists[fold], i) {
			t.Fatalf("row %d is %q", i, record)
		}
		if diff := cmp.Diff(byFold[fold][i+1][1:], record[6:]); diff != "" {
			t.Errorf("row %d: predicted otherwise: %s", i, diff)
		}
		for c, v := range clitest.Numbers(t, truth[i+1][4:7]) {
			if got := clitest.Numbers(t, record[3:6])[c]; float32(got) != float32(v) {
				t.Errorf("row %d: label %d is %v, not %v", i, c, got, v)
			}
		}
	}
	npz := filepath.Join(dir, "p.npz")
	cmdtest.Works(t, clitest.TrainArgs(data, "--folds", "3", "--predictions-out", npz)...)
	values, texts := clitest.Arrays(t, npz)
	if len(values["rows"]) != 90 || values["rows"][89] != 89 || len(values["folds"]) != 90 ||
		len(values["labels"]) != 270 || len(values["predictions"]) != 270 ||
		texts["row_names"][89] != "row 89" || texts["label_names"][2] != "angry" {
		t.Errorf("in .npz: %d rows, %d folds, %v", len(values["rows"]), len(values["folds"]), texts)
	}
	cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--test-fraction", "0.1", "--predictions-out", out,
		"--split-out", split)...)
	var held []string
	for _, row := range clitest.HeldOut(t, split)[0] {
		held = append(held, strconv.Itoa(row))
	}
	var rows []string
	for _, record := range clitest.ReadCSV(t, out)[1:] {
		rows = append(rows, record[0])
	}
	if diff := cmp.Diff(held, rows); diff != "" || len(rows) != 9 {
		t.Errorf("%d rows held out: %s", len(rows), diff)
	}
}

func TestPredictionsRefusals(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "x.csv", 100, 1)
	for args, says := range map[string]string{
		"--predictions-out @/p.csv": "no samples are held out",
		"--test-fraction 0.1 --predictions-out @/p.txt": "p.txt: the format of the file to " +
			"write is unknown",
		"--test-fraction 0.1 --predictions-out -": "stdout",
		"--test-fraction 0.1 --predictions-out @/p.csv --set keep_predictions=100": "the predictions take 300 bytes, " +
			"more than the setting keep_predictions; give --set keep_predictions=300",
		"--folds 2 --predictions-out @/p.csv --set keep_predictions=2999":               "keep_predictions=3000",
		"--folds 2 --set keep_predictions=-1":                                           "keep_predictions",
		"--folds 2 --predictions-out @/p.csv --set keep_predictions=0 --set bias=false": "keep_predictions=3000",
	} {
		cmdtest.Refused(t, nil, "train --local --steps 2 --data "+data+" "+args, cli.ExitUsage, []string{says})
	}
	if text := cmdtest.Works(t, clitest.TrainArgs(data, "--folds", "2", "--set",
		"keep_predictions=2999")...); !strings.Contains(text, "not kept (keep_predictions)") {
		t.Errorf("got\n%s", text)
	}
}

// A cluster keeps the predictions of --local, bit for bit: of one unit and of several,
// of a split, of folds and of listed folds; also where units are computed twice.
func TestClusterPredictions(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(90)
	for i := range m.Rows {
		m.Rows[i] = append(m.Rows[i], fmt.Sprint("row ", i))
	}
	data := m.File(t, dir, "moods.csv", append(m.Header, "name"), 0, 1, 2, 3, 4, 5, 6, 7)
	large := filepath.Join(dir, "large.npz")
	cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "20000", "--features", "2", "--labels", "30",
		"--out", large)
	var list strings.Builder
	for i := range 90 {
		fmt.Fprintf(&list, "%d,%d\n", i, i%2)
	}
	split := cmdtest.Write(t, dir, "folds.csv", "row,fold\n"+list.String())
	c := cmdtest.Start(t, 1, 2)
	t.Setenv("COPPICE_SERVER", c.Servers())
	for name, args := range map[string][]string{
		"single": clitest.TrainArgs(data, "--test-fraction", "0.2")[3:],
		"folds":  clitest.TrainArgs(data, "--folds", "3")[3:],
		"listed": clitest.TrainArgs(data, "--split", split)[3:],
		"forest": {data, "--algorithm", "rf", "--folds", "2", "--set", "trees=3"},
		"large":  {large, "--test-fraction", "0.9", "--steps", "2", "--set", "trees=1", "--set", "depth=2"},
	} {
		here, there := filepath.Join(dir, name+"-here.csv"), filepath.Join(dir, name+"-there.csv")
		var local, remote results.Result
		cmdtest.JSON(t, &local, append([]string{"train", "--local", "--predictions-out", here, "--data"}, args...)...)
		cmdtest.JSON(t, &remote, append([]string{"train", "--audit", "0.5", "--name", name, "--predictions-out", there,
			"--data"}, args...)...)
		if local.ModelDigest != remote.ModelDigest || cmdtest.Read(t, here) != cmdtest.Read(t, there) ||
			len(cmdtest.Read(t, here)) == 0 {
			t.Errorf("%s: models %.12s and %.12s, %d and %d bytes of predictions", name, local.ModelDigest, remote.ModelDigest,
				len(cmdtest.Read(t, here)), len(cmdtest.Read(t, there)))
		}
		if local.HeldOut != remote.HeldOut {
			t.Errorf("%s: %d rows were held out, on the cluster %d", name, local.HeldOut, remote.HeldOut)
		}
		if got := cmdtest.Works(t, "job", "predictions", name, "--out", "-"); got != cmdtest.Read(t, here) {
			t.Errorf("%s: job predictions gives %d bytes", name, len(got))
		}
	}
	var j protocol.JobInfo
	cmdtest.JSON(t, &j, "job", "show", "single")
	if j.Predictions == nil || j.Predictions.Bytes == 0 {
		t.Errorf("predictions %+v", j.Predictions)
	}
	if text := cmdtest.Works(t, "job", "show", "single"); !strings.Contains(text,
		"coppice job predictions single --out FILE") {
		t.Errorf("shown as\n%s", text)
	}
	cmdtest.Works(t, append([]string{"train", "--name", "none", "--data"}, clitest.TrainArgs(data)[3:]...)...)
	cmdtest.Refused(t, nil, "job predictions none --out @/p.csv", cli.ExitFailed, []string{"job none held out no samples"})
	cmdtest.Works(t, append([]string{"train", "--name", "few", "--test-fraction", "0.1", "--set", "keep_predictions=1",
		"--data"}, clitest.TrainArgs(data)[3:]...)...)
	cmdtest.Refused(t, nil, "job predictions few --out @/p.csv", cli.ExitFailed, []string{"job few kept no predictions"})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 13 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// TestSplitOut: --split holds out what --split-out wrote again, with the same models, also where rows are left out.
func TestSplitOut(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, list := cmdtest.Write(t, dir, "s.csv", clitest.Survey(40)), filepath.Join(dir, "split.csv")
	columns := "row,a,b\n"
	for i := range 40 {
		columns += fmt.Sprintf("%d,%d,%d\n", i, max(0, 1-i%3), max(0, min(1, 2-i%5)))
	}
	for _, c := range []struct {
		header string
		how    []string
	}{
		{"row,fold", []string{"--folds", "3", "--seed", "5"}},
		{"row,fold", []string{"--folds", "sklearn:4"}},
		{"row,fold", []string{"--split", clitest.SurveyFolds(t, t.TempDir())}},
		{"row,test0,test1", []string{"--split", cmdtest.Write(t, dir, "columns.csv", columns)}},
		{"row,test", []string{"--test-fraction", "0.3", "--seed", "5"}},
		{"row,test", []string{"--folds", "4", "--fold", "2"}},
	} {
		args := []string{"--missing", "drop", "--drop", "id"}
		var want, got results.Result
		cmdtest.JSON(t, &want, clitest.TrainArgs(data, slices.Concat(args, c.how, []string{"--split-out", list})...)...)
		lines := strings.Split(cmdtest.Read(t, list), "\n")
		if empty := "3" + strings.Repeat(",", strings.Count(c.header, ",")); lines[0] != c.header || len(lines) != 42 ||
			lines[4] != empty || lines[41] != "" {
			t.Errorf("%q: %q", c.how, lines)
		}
		if i := slices.Index(c.how, "--seed"); i >= 0 {
			args = append(args, c.how[i:]...)
		}
		again := filepath.Join(dir, "again.csv")
		cmdtest.JSON(t, &got, clitest.TrainArgs(data,
			slices.Concat(args, []string{"--split", list, "--split-out", again})...)...)
		digest := got.ModelDigest
		if len(want.Folds) == 0 && len(got.Folds) == 1 {
			digest = got.Folds[0].ModelDigest
		}
		if digest != want.ModelDigest || got.HeldOut != want.HeldOut || cmdtest.Read(t, again) != cmdtest.Read(t, list) {
			t.Errorf("%q: the digest is %.12s, again %.12s; %d samples held out, again %d", c.how, want.ModelDigest, digest,
				want.HeldOut, got.HeldOut)
		}
	}
	cmdtest.Refused(t, nil, "train --local --missing 0 --drop id --data "+data+" --split "+list, cli.ExitFailed,
		[]string{"line 5", "want 1 for a test sample"})
	for args, says := range map[string]string{
		"--split-out @/s.csv":                                       "--split-out: no samples are held out",
		"--folds 2 --split-out @/s.npz":                             "the name must end in .csv",
		"--folds 2 --split-out -":                                   "stdout",
		"--folds 2 --split-out @/s.csv --predictions-out @/./s.csv": "--predictions-out writes to this file",
		"--split " + list + " --split-out " + list:                  "reads that file",
	} {
		cmdtest.Refused(t, nil, "train --local --steps 2 --missing drop --drop id --data "+data+" "+args, cli.ExitUsage,
			[]string{says})
	}
}
