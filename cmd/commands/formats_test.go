package commands

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

var updateFormats = flag.Bool("update-formats", false, "write the files of this version that later versions must read")

// formats has a folder for each version with files that it wrote:
//
//	set.csv, ages.csv    data
//	models/NAME.coppice  a model of each algorithm, trained on it
//	small.yaml, small.results  a spec, and the results of its runs
//	coordinator.tar.gz   the folder of a coordinator with jobs of every final state
//	cluster.backup       a backup of the same cluster
//	expected.json        what all of this says
const formats = "testdata/formats"

// said is what the files of a version say.
type said struct {
	Predictions map[string]string // SHA-256 of the predictions for set.csv, by algorithm
	Runs        []string          // dataset, method, fold, state and digest of each run of the experiment
	Jobs        []string          // name, state, owner and model digest of each job of the cluster
	Datasets    []string          // name and digest
}

// TestFormats: models, results of experiments, folders of coordinators and backups of every
// version are read, and say what they said.
func TestFormats(t *testing.T) {
	testkit.WithoutRace(t)
	if *updateFormats {
		writeFormats(t, filepath.Join(formats, version.String))
	}
	versions, err := os.ReadDir(formats)
	if err != nil || len(versions) == 0 {
		t.Fatalf("no version has files: %v", err)
	}
	for _, v := range versions {
		t.Run(v.Name(), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(formats, v.Name()))); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want said
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			got := said{Predictions: predictionsOf(t, dir), Runs: runsIn(t, dir)}
			folder := filepath.Join(dir, "coordinator")
			unpack(t, filepath.Join(dir, "coordinator.tar.gz"), folder)
			got.Jobs, got.Datasets = heldIn(t, folder)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the files say %+v\nthey said %+v", got, want)
			}
			restored := filepath.Join(dir, "restored")
			cmdtest.Works(t, "restore", filepath.Join(dir, "cluster.backup"), "--dir", restored, "--peers", "a=127.0.0.1:1")
			if jobs, datasets := heldIn(t, restored); !slices.Equal(jobs, want.Jobs) || !slices.Equal(datasets, want.Datasets) {
				t.Errorf("the backup says %v, %v", jobs, datasets)
			}
		})
	}
}

// predictionsOf predicts with each model.
func predictionsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := make(map[string]string)
	models, err := filepath.Glob(filepath.Join(dir, "models", "*.coppice"))
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range models {
		out := filepath.Join(t.TempDir(), "predictions.csv")
		data := filepath.Join(dir, "set.csv")
		if registry.Output(strings.TrimSuffix(filepath.Base(model), ".coppice")) == algorithms.Number {
			data = filepath.Join(dir, "ages.csv")
		}
		cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		sums[filepath.Base(model)] = hex.EncodeToString(sum[:])
	}
	return sums
}

// runsIn lists the runs of the experiment.
func runsIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	var report struct {
		Runs []struct {
			Dataset, Method, Fold int
			State, Digest         string
		}
	}
	cmdtest.JSON(t, &report, "experiment", "report", filepath.Join(dir, "small.yaml"), "--dir",
		filepath.Join(dir, "small.results"))
	for _, r := range report.Runs {
		list = append(list, fmt.Sprint(r.Dataset, r.Method, r.Fold, r.State, r.Digest))
	}
	slices.Sort(list)
	return list
}

// heldIn starts a coordinator on a folder, and lists what it has.
func heldIn(t *testing.T, folder string) (jobs, datasets []string) {
	t.Helper()
	at, stop := coordinate(t, folder)
	defer stop()
	return listed(t, at)
}

// coordinate starts the coordinator of a cluster of one.
func coordinate(t *testing.T, folder string) (at string, stop func()) {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n, err := proc.Launch(exe, []string{cmdtest.AsCommand + "=1"}, "coordinator", filepath.Join(t.TempDir(), "log"),
		"coordinator", "--id", "a", "--dir", folder, "--peers", "a="+at, "--die-with-stdin")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the coordinator to be ready", func() bool {
		return cmdtest.Run(t, "job", "list", "--server", at).Code == cli.ExitOK
	})
	return at, func() {
		if err := n.Quit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// listed lists the jobs and datasets of a cluster.
func listed(t *testing.T, at string) (jobs, datasets []string) {
	t.Helper()
	var list []protocol.JobInfo
	cmdtest.JSON(t, &list, "job", "list", "--server", at)
	for i := range list {
		j := new(protocol.JobInfo)
		cmdtest.JSON(t, j, "job", "show", list[i].Name, "--server", at)
		digest := ""
		for _, m := range j.Models {
			digest += " " + m.Digest
		}
		state := string(j.State)
		if !j.State.Final() { // it becomes running soon
			state = "not ended"
		}
		jobs = append(jobs, fmt.Sprintf("%s %s owner %q experiment %q%s", j.Name, state, j.Owner, j.Experiment, digest))
	}
	var sets []protocol.Dataset
	cmdtest.JSON(t, &sets, "dataset", "list", "--server", at)
	for _, d := range sets {
		datasets = append(datasets, d.Name+" "+d.Digest)
	}
	slices.Sort(jobs)
	return jobs, datasets
}

// smallSpec is the experiment in the files.
const smallSpec = `name: small
datasets: [set.csv]
folds: {k: 2}
methods:
  - {algorithm: sa-bfgs, grid: {l2: [0.1, 0.01]}}
  - {algorithm: structrf, settings: {trees: 2}}
measures: [kl]
record: [curve, predictions]
`

// writeFormats writes the files of this version.
func writeFormats(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{dir, filepath.Join(dir, "models")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, spec := filepath.Join(dir, "set.csv"), cmdtest.Write(t, dir, "small.yaml", smallSpec)
	cmdtest.Works(t, "dataset", "generate", "--rows", "60", "--out", data)
	for _, a := range registry.Names() {
		args := []string{"train", "--local", "--algorithm", a, "--model-out", filepath.Join(dir, "models", a+".coppice")}
		switch {
		case a == "rf" || a == "structrf": // the default of 50 trees makes a large file
			args = append(args, "--data", data, "--set", "trees=2")
		case strings.HasSuffix(a, "boost"):
			args = append(args, "--data", data, "--set", "rounds=3")
		case a == "ensemble":
			args = append(args, "--data", data, "--set", "members=sa-bfgs,aa-knn")
		case registry.Output(a) == algorithms.Number:
			args = append(args, "--data", cmdtest.Write(t, dir, "ages.csv", ages()), "--labels", "age", "--sigma", "1",
				"--range", "0:9")
		case registry.Output(a) == algorithms.Targets:
			args = append(args, "--data", data, "--labels", "bounded")
		default:
			args = append(args, "--data", data)
		}
		cmdtest.Works(t, args...)
	}
	cmdtest.Works(t, "experiment", "run", spec, "--data", dir, "--local", "--dir", filepath.Join(dir, "small.results"))
	plan := filepath.Join(dir, "small.results", "plan.json")
	b, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(here), []byte("/study")) // no path of the machine that writes the files
	if err := os.WriteFile(plan, b, 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "coordinator")
	expected := said{Predictions: predictionsOf(t, dir), Runs: runsIn(t, dir)}
	expected.Jobs, expected.Datasets = fill(t, dir, folder)
	pack(t, folder, filepath.Join(dir, "coordinator.tar.gz"))
	b, err = json.MarshalIndent(expected, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	cmdtest.Write(t, dir, "expected.json", string(b)+"\n")
}

// ages is a table of numbers.
func ages() string {
	text := "x,age\n"
	for i := range 24 {
		text += fmt.Sprintf("%d,%d\n", i, i*i%10)
	}
	return text
}

// fill runs jobs on a new cluster with a folder, makes a backup, and lists what it has.
func fill(t *testing.T, dir, folder string) (jobs, datasets []string) {
	t.Helper()
	at, stop := coordinate(t, folder)
	defer stop()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w, err := proc.Launch(exe, []string{cmdtest.AsCommand + "=1"}, "worker", filepath.Join(t.TempDir(), "log"), "worker",
		"--join", at, "--dir", filepath.Join(t.TempDir(), "worker"), "--die-with-stdin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COPPICE_SERVER", at)
	data := filepath.Join(dir, "set.csv")
	cmdtest.Works(t, "train", "--data", data, "--name", "one", "--steps", "20", "--set", "trees=2", "--set", "depth=3")
	cmdtest.Works(t, "train", "--data", data, "--name", "folds", "--steps", "20", "--set", "trees=2", "--set", "depth=3",
		"--folds", "2")
	cmdtest.Works(t, "experiment", "run", filepath.Join(dir, "small.yaml"), "--data", dir)
	cmdtest.Works(t, "job", "submit", "--data", data, "--name", "cancelled", "--steps", "100000")
	cmdtest.Works(t, "job", "cancel", "cancelled")
	cmdtest.Works(t, "train", "--data", data, "--name", "deleted", "--steps", "20", "--set", "trees=2", "--set", "depth=3")
	cmdtest.Works(t, "job", "delete", "deleted")
	if err := w.Quit(t.Context()); err != nil {
		t.Error(err)
	}
	cmdtest.Works(t, "job", "submit", "--data", data, "--name", "queued", "--steps", "20")
	cmdtest.Works(t, "backup", filepath.Join(dir, "cluster.backup"))
	return listed(t, at)
}

// pack writes the files of a folder to an archive, in order.
func pack(t *testing.T, folder, to string) {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	compressed := gzip.NewWriter(f)
	archive := tar.NewWriter(compressed)
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Size: int64(len(b)),
			Mode: 0o600}); err != nil {
			return err
		}
		_, err = archive.Write(b)
		return err
	})
	if err = errors.Join(err, archive.Close(), compressed.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// unpack writes the files of an archive to a new folder.
func unpack(t *testing.T, from, folder string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	archive, names := tar.NewReader(compressed), make(map[string]bool)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(h.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
	}
	if len(names) < 5 {
		t.Fatalf("%s has only the files %v", from, slices.Sorted(maps.Keys(names)))
	}
}
