package modelcmd

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestNamesOfPredictions: the columns of predictions and of held-out predictions have distinct names, whatever the
// labels are called, and the files are read back with the labels of the model.
func TestNamesOfPredictions(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	classes := func(a, b string) string {
		return "x,class\n" + strings.Repeat("1,"+a+"\n2,"+b+"\n", 12)
	}
	for _, c := range []struct{ a, b, header, heldOut string }{
		{"ash", "oak", "row,ash,oak,predicted_class",
			"row,true_ash,true_oak,predicted_ash,predicted_oak,true_class,predicted_class"},
		{"row", "predicted_class", "row,label_predicted_class,label_row,predicted_class",
			"row,true_predicted_class,true_row,predicted_predicted_class,predicted_row,true_class,predicted_class"},
		{"class", "number", "row,class,number,predicted_class",
			"row,true_label_class,true_label_number,predicted_label_class,predicted_label_number,true_class,predicted_class"},
		{"label_row", "row", "row,label_label_row,label_row,predicted_class",
			"row,true_label_row,true_row,predicted_label_row,predicted_row,true_class,predicted_class"},
	} {
		data, model := cmdtest.Write(t, dir, "d.csv", classes(c.a, c.b)), filepath.Join(dir, "m")
		out, held := filepath.Join(dir, "p.csv"), filepath.Join(dir, "h.csv")
		cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "class", "--algorithm", "aa-knn", "--set", "k=1",
			"--model-out", model, "--test-fraction", "0.25", "--predictions-out", held)
		cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
		for path, want := range map[string]string{out: c.header, held: c.heldOut} {
			if got := strings.Join(clitest.ReadCSV(t, path)[0], ","); got != want {
				t.Errorf("%s, %s: %s, want %s", c.a, c.b, got, want)
			}
		}
		columns := strings.Split(c.header, ",")
		// Predictions are no data to train on, but for their columns of labels; the class is left out.
		rows := 0
		src, err := read.Open(out, read.OpenOptions{FeatureColumns: []string{"row"}, Drop: []string{"predicted_class"},
			Labels: read.LabelOptions{Columns: columns[1:3]}})
		if err == nil {
			err = src.Scan(func(r *dataset.Row) error {
				if rows++; len(r.Labels) != 2 || r.Labels[0]+r.Labels[1] < 0.99 {
					t.Errorf("%+v", r)
				}
				return nil
			})
		}
		if err != nil || rows != 24 {
			t.Errorf("%s, %s: %d rows are read back, %v", c.a, c.b, rows, err)
		}
	}
	scale := cmdtest.Write(t, dir, "s.csv", "x,expected,median\n"+strings.Repeat("1,1,0\n2,0,1\n", 12))
	model, out := filepath.Join(dir, "s"), filepath.Join(dir, "s.out.csv")
	cmdtest.Works(t, "train", "--local", "--data", scale, "--label-columns", "expected,median", "--range", "0:1",
		"--algorithm", "aa-knn", "--set", "k=1", "--model-out", model)
	cmdtest.Works(t, "predict", "--model", model, "--data", scale, "--out", out)
	if got := strings.Join(clitest.ReadCSV(t, out)[0],
		","); got != "row,label_expected,label_median,expected,median,mode" {
		t.Errorf("a scale: %s", got)
	}
}

// TestPredictedNumbersInFull: numbers of a scale have no exponent, whatever their size, and neither have predicted
// numbers.
func TestPredictedNumbersInFull(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	content := "x,age\n"
	for i := range 24 {
		content += fmt.Sprintf("%d,%d\n", i, 1_000_000+i%4)
	}
	data := cmdtest.Write(t, dir, "a.csv", content)
	for algorithm, settings := range map[string][]string{"aa-knn": {"--set", "k=1"}, "mlp-regression": nil} {
		model, out, held := filepath.Join(dir, algorithm), filepath.Join(dir, algorithm+".csv"),
			filepath.Join(dir, algorithm+".held.csv")
		train := append([]string{"train", "--local", "--data", data, "--labels", "age", "--sigma", "1", "--range",
			"999998:1000007", "--values", "age", "--algorithm", algorithm}, settings...)
		cmdtest.Works(t, append(train, "--model-out", model)...)
		cmdtest.Works(t, append(train, "--folds", "3", "--predictions-out", held)...)
		cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
		for _, path := range []string{out, held} {
			for _, record := range clitest.ReadCSV(t, path) {
				if strings.Contains(strings.Join(record, ","), "e+") {
					t.Fatalf("%s: %s", path, record)
				}
			}
		}
	}
	if records := clitest.ReadCSV(t, filepath.Join(dir, "aa-knn.csv")); records[1][len(records[1])-1] != "1000000" {
		t.Errorf("mode %q", records[1])
	}
	shown := cmdtest.Works(t, "dataset", "inspect",
		cmdtest.Write(t, dir, "b.csv", "t,label_x,label_y\n1700000000,.5,.5\n1700000601,.5,.5\n1700000302,0,1\n"))
	if !strings.Contains(shown, "1700000000  1700000601") {
		t.Errorf("inspect: %s", shown)
	}
}

// A command that goes through a file in a format whose number of rows only its end tells says
