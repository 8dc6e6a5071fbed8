package traincmd

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// unzipped writes the arrays of a .npz file to files, and returns the JSON object that names them.
func unzipped(t *testing.T, archive string) string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir, object := t.TempDir(), map[string]string{}
	for _, e := range z.File {
		in, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		object[strings.TrimSuffix(e.Name, ".npy")] = cmdtest.Write(t, dir, e.Name, string(b))
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unnamed makes an open file without a name, and returns its path in /dev/fd.
func unnamed(t *testing.T) (*os.File, string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "unnamed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	path := fmt.Sprintf("/dev/fd/%d", f.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd")
	}
	if _, err := f.WriteString(strings.Repeat("before", 1<<16)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f, path
}

// contentsOf reads an open file from its beginning.
func contentsOf(t *testing.T, f *os.File) []byte {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}

// TestTrainOnArrays: arrays in files give the model of the .npz file, which predicts them all. A model and predictions
// go to files without names.
func TestTrainOnArrays(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "a.csv", 60, 1)
	archive := filepath.Join(dir, "a.npz")
	cmdtest.Works(t, "dataset", "convert", "--data", data, "--out", archive)
	arrays := unzipped(t, archive)
	model, modelPath := unnamed(t)
	train := func(data, out string) (r struct {
		Dataset string `json:"dataset"`
		Digest  string `json:"dataset_digest"`
		Model   string `json:"model_digest"`
	}) {
		cmdtest.JSON(t, &r, "train", "--local", "--algorithm", "aa-knn", "--data", data, "--model-out", out)
		return r
	}
	want, got := train(archive, filepath.Join(dir, "m.ldlf")), train(arrays, modelPath)
	if got.Digest != want.Digest || got.Model != want.Model || got.Dataset != "arrays" {
		t.Errorf("arrays: %+v, file: %+v", got, want)
	}
	if b := contentsOf(t, model); len(b) == 0 || bytes.HasPrefix(b, []byte("before")) {
		t.Errorf("a model of %d bytes", len(b))
	}
	predictions := map[string]string{}
	for _, file := range []string{arrays, archive, data} {
		predictions[cmdtest.Works(t, "predict", "--model", modelPath, "--data", file, "--out", "-")] = file
	}
	if len(predictions) != 1 {
		t.Errorf("%d different predictions: %q", len(predictions), predictions)
	}
	out, outPath := unnamed(t)
	cmdtest.Works(t, "predict", "--model", modelPath, "--data", arrays, "--out", outPath, "--format", "npz")
	z, err := zip.NewReader(bytes.NewReader(contentsOf(t, out)), int64(len(contentsOf(t, out))))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range z.File {
		if e.Method != zip.Store {
			t.Errorf("%s is compressed", e.Name)
		}
	}
	var e struct {
		Data string `json:"data"`
	}
	if cmdtest.JSON(t, &e, "evaluate", "--model", modelPath, "--data", arrays); e.Data != read.NamedArrays {
		t.Errorf("evaluated on %q", e.Data)
	}
	var object map[string]string
	if err := json.Unmarshal([]byte(arrays), &object); err != nil {
		t.Fatal(err)
	}
	cmdtest.Refused(t, nil, "predict --format npz --model "+modelPath+" --out "+object["features"]+" --data "+
		strings.ReplaceAll(arrays, " ", ""), cli.ExitUsage, []string{"this command reads that file"})
	cmdtest.Refused(t, nil, `train --local --data {"features":1}`, cli.ExitUsage,
		[]string{`the arrays: the array "features"`, ".npy"})
}

// TestFailedDescriptor: a command that fails leaves an empty file, and no file next to it.
func TestFailedDescriptor(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	bad := cmdtest.Write(t, dir, "bad.csv", "a,label_x,label_y\n1,1,0\n2,0,1\n3,0.5,nan\n")
	f, path := unnamed(t)
	cmdtest.Refused(t, nil, "dataset convert --data "+bad+" --out "+path, cli.ExitFailed, []string{"bad.csv: row 2"})
	if b := contentsOf(t, f); len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// TestConvert: a converted file gives the dataset of its source with the flags that the output names.
func TestConvert(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	ages := filepath.Join(dir, "ages.csv")
	cmdtest.Works(t, "dataset", "generate", "--kind", "ages", "--rows", "30", "--out", ages)
	images := filepath.Join(dir, "images.npz")
	cmdtest.Works(t, "dataset", "generate", "--kind", "ages", "--rows", "30", "--out", images)
	sparse := filepath.Join(dir, "sparse.npz")
	cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "30", "--density", "0.1", "--out", sparse)
	for name, c := range map[string]struct {
		flags  []string
		sparse bool
	}{
		cmdtest.Write(t, dir, "c.csv",
			"town,a,kind,who\nx,1,calm,p\ny,2,sad,q\nx,nan,sad,p\ny,5,calm,q\n"): {[]string{"--categories", "town", "--labels",
			"class", "--label-columns", "kind", "--groups", "who", "--missing", "drop"}, false},
		cmdtest.Write(t, dir, "m.csv", "a,label_x,label_y\n1,1,0\nnan,0.3,0.7\n3,0.25,0.75\n"): {[]string{"--missing",
			"median"}, false},
		cmdtest.Write(t, dir, "d.libsvm", "1,0 1:1 9:2\n0,1 3:4\n.5,.5 2:1\n"): {nil, true},
		ages:   {[]string{"--range", "0:69", "--values", "value", "--shape", "1x32x32"}, false},
		images: {[]string{"--range", "0:69", "--values", "value"}, false},
		sparse: {nil, true},
	} {
		out, stored := filepath.Join(dir, "out.npz"), filepath.Join(dir, "stored.npz")
		var r struct {
			Rows int    `json:"samples"`
			Read string `json:"read"`
		}
		cmdtest.JSON(t, &r, append([]string{"dataset", "convert", "--data", name, "--out", out}, c.flags...)...)
		cmdtest.Works(t, append([]string{"dataset", "convert", "--store", "--data", name, "--out", stored}, c.flags...)...)
		want := trainedOn(t, name, c.flags)
		for _, file := range []string{out, stored, unzipped(t, out)} {
			if got := trainedOn(t, file, strings.Fields(r.Read)); got != want {
				t.Errorf("%s, %s: dataset %s, want %s", name, file, got, want)
			}
		}
		z, err := zip.OpenReader(stored)
		if err != nil {
			t.Fatal(err)
		}
		isSparse := false
		for _, e := range z.File {
			isSparse = isSparse || e.Name == "features_indptr.npy"
			if e.Method != zip.Store {
				t.Errorf("%s: %s is compressed", name, e.Name)
			}
		}
		if z.Close(); isSparse != c.sparse {
			t.Errorf("%s: sparse %v, want %v", name, isSparse, c.sparse)
		}
	}
	cmdtest.Refused(t, nil, "dataset convert --data "+ages+" --out @/x.csv", cli.ExitUsage, []string{"x.csv", ".npz"})
	cmdtest.Refused(t, nil, "dataset convert --data "+images+" --out "+images, cli.ExitUsage,
		[]string{"this command reads that file"})
}

// trainedOn returns the digest of the dataset that a training reads.
func trainedOn(t *testing.T, data string, flags []string) string {
	t.Helper()
	var r struct {
		Digest string `json:"dataset_digest"`
	}
	cmdtest.JSON(t, &r, append([]string{"train", "--local", "--algorithm", "aa-knn", "--data", data}, flags...)...)
	return r.Digest
}
