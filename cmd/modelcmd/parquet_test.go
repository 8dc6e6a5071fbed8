package modelcmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestParquetPredictions: a Parquet file of predictions has the columns and the values of the CSV file, for classes
// with names of samples and for ordinal labels.
func TestParquetPredictions(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content string
		flags   []string
	}{
		"classes": {
			"name,x,class\nann,1,ash\nbob,2,oak\ncat,3,ash\ndan,4,oak\neve,5,ash\nfay,6,oak\n",
			[]string{"--labels", "class"},
		},
		"ages": {"x,age\n1,3\n2,4\n3,5\n4,3\n5,4\n6,5\n", []string{"--labels", "age", "--sigma", "1", "--range", "0:9"}},
	} {
		data, model := cmdtest.Write(t, dir, name+".csv", c.content), filepath.Join(dir, name)
		cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "k=1",
			"--model-out", model}, c.flags...)...)
		csv, out := filepath.Join(dir, name+".p.csv"), filepath.Join(dir, name+".p.parquet")
		for _, path := range []string{csv, out} {
			cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", path)
		}
		in, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.Open(in, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		var use []parquet.Use
		for i := range f.Columns {
			use = append(use, parquet.Use{Column: i, AsText: true})
		}
		records, rows := clitest.ReadCSV(t, csv), f.Read(use)
		if int(f.Rows) != len(records)-1 || len(f.Columns) != len(records[0]) {
			t.Fatalf("%s: %d rows of %d columns, want %q", name, f.Rows, len(f.Columns), records)
		}
		texts, numbers := make([]string, len(use)), make([]float64, len(use))
		for n := 0; ; n++ {
			if err := rows.Next(numbers, texts); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for i, got := range texts {
				a, isNumber := strconv.ParseFloat(got, 64)
				b, _ := strconv.ParseFloat(records[n+1][i], 64)
				if f.Columns[i].Name != records[0][i] || isNumber == nil && a != b ||
					isNumber != nil && got != records[n+1][i] {
					t.Errorf("%s, row %d: %s is %q, want %s %q", name, n, f.Columns[i].Name, got, records[0][i], records[n+1][i])
				}
			}
		}
	}
}

// TestParquetPattern: a quoted pattern is imported, trained on, predicted and verified as the folder of the same files.
// An output file that the pattern matches is refused.
func TestParquetPattern(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for i, name := range []string{"part-1.parquet", "part-2.parquet"} {
		cmdtest.Works(t, "dataset", "generate", "--rows", "60", "--seed", strconv.Itoa(i+1), "--out",
			filepath.Join(dir, name))
	}
	pattern, model := filepath.Join(dir, "part-*.parquet"), filepath.Join(t.TempDir(), "model")
	train := func(data string) (v struct {
		DatasetDigest string `json:"dataset_digest"`
		ModelDigest   string `json:"model_digest"`
		Name          string `json:"name"`
	}) {
		cmdtest.JSON(t, &v, "train", "--local", "--data", data, "--algorithm", "aa-knn", "--model-out", model)
		return v
	}
	folder, own := train(dir), train(pattern)
	if folder.DatasetDigest != own.DatasetDigest || folder.ModelDigest != own.ModelDigest || own.ModelDigest == "" {
		t.Errorf("the folder has %+v, the pattern %+v", folder, own)
	}
	if text := cmdtest.Works(t, "dataset", "inspect", pattern); !strings.Contains(text, "120") {
		t.Errorf("inspect does not say 120 samples:\n%s", text)
	}
	out := filepath.Join(t.TempDir(), "p.csv")
	cmdtest.Works(t, "predict", "--model", model, "--data", pattern, "--out", out)
	if n := len(clitest.ReadCSV(t, out)); n != 121 {
		t.Errorf("the predictions have %d lines, want 121", n)
	}
	cmdtest.Works(t, "model", "verify", model, "--data", pattern)
	for args, say := range map[string]string{
		"predict --model " + model + " --data @/x-*.parquet --out @/p.csv": "x-*.parquet: no file matches this pattern",
		"train --local --data @/x-*.parquet":                               "x-*.parquet: no file matches this pattern",
		"dataset import --server 127.0.0.1:1 --data @/x-*.parquet":         "x-*.parquet: no file matches this pattern",
	} {
		cmdtest.Refused(t, nil, args, 1, []string{say})
	}
	e := cmdtest.Run(t, "predict", "--model", model, "--data", pattern, "--out", filepath.Join(dir, "part-1.parquet"))
	if e.Code != 2 || !strings.Contains(e.Stderr, "this command reads that file") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
}
