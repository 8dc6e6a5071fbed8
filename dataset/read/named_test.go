package read

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"golang.org/x/sys/unix"
)

// namedObject writes arrays to files and returns the JSON object that names them.
func namedObject(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	dir, object := t.TempDir(), map[string]string{}
	for name, b := range arrays {
		object[name] = filepath.Join(dir, name+".npy")
		if err := os.WriteFile(object[name], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNamedArrays(t *testing.T) {
	arrays := goodCSR()
	arrays["row_names"] = NpyBytes("|S1", false, "(3,)", []byte("xyz"))
	arrays["label_names"] = NpyBytes("|S4", false, "(2,)", []byte("calmsad\x00"))
	src, err := Open(namedObject(t, arrays), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := importer.Build(want, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info := src.Info(); info.File != NamedArrays || info.Reading.Kind != "npz" || !info.HasRowNames ||
		a.Digest() != b.Digest() || info.LabelNames[1] != "sad" {
		t.Errorf("%+v: digest %s, want %s", info, a.Digest(), b.Digest())
	}
}

// TestNamedDescriptors: files without names are read by their descriptors. Each scan begins at the first byte.
func TestNamedDescriptors(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("no /dev/fd")
	}
	object := map[string]string{}
	files := map[string]*os.File{}
	for name, b := range map[string][]byte{"features": float64s(1, 2), "labels": NpyBytes("<f4", false, "(2, 2)",
		[]float32{1, 0, 0, 1})} {
		f, err := os.CreateTemp(t.TempDir(), "array")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(os.Remove(f.Name()), func() error { _, err := f.Write(b); return err }()); err != nil {
			t.Fatal(err)
		}
		object[name], files[name] = fmt.Sprintf("/dev/fd/%d", f.Fd()), f
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	src, err := Open(string(text), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rows := append(datasettest.Collect(t, src), datasettest.Collect(t, src)...); len(rows) != 4 ||
		rows[1].Values[0] != 2 || rows[3].Labels[1] != 1 {
		t.Errorf("%+v", rows)
	}
	if err := files["features"].Truncate(80); err != nil {
		t.Fatal(err)
	}
	_, err = Open(string(text), OpenOptions{})
	datasettest.MustContain(t, err, `the arrays: "features"`)
	if err != nil && strings.Contains(err.Error(), "/dev/fd") {
		t.Errorf("error %q names the descriptor", err)
	}
}

func TestNamedArrayErrors(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "empty.npy"), nil, 0o600),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.WriteFile(filepath.Join(dir, "x.npy"), float64s(1, 2),
			0o600)); err != nil {
		t.Fatal(err)
	}
	many := map[string]string{}
	for i := range maxArrays + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	tooMany, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	for text, c := range map[string]struct {
		usage bool
		says  string
	}{
		`{}`:                               {true, "no arrays"},
		`{"features"`:                      {true, "unexpected"},
		`{"features": "@/x.npy"`:           {true, "unexpected"},
		`{"features": 1}`:                  {true, `"features" has the value 1`},
		`{"features": null}`:               {true, `"features" has the value`},
		`{"features": ["x"]}`:              {true, `"features" has the value [`},
		`{"features": {"a": "b"}}`:         {true, `"features" has the value {`},
		`{"a": "@/x.npy", "a": "@/x.npy"}`: {true, `"a" occurs twice`},
		`{"features": ""}`:                 {true, "must not be empty"},
		`{"": "x"}`:                        {true, "must not be empty"},
		`{features: x}`:                    {true, "invalid character"},
		`{"a": "@/x.npy"} {}`:              {true, "text follows"},
		"{\"a\": \"\xff\"}":                {true, "not UTF-8"},
		string(tooMany):                    {true, "more than 4,096 arrays"},
		`{"features": "@/none.npy"}`:       {false, `array "features": stat`},
		`{"features": "@"}`:                {false, `array "features": this is a folder`},
		`{"features": "@/empty.npy"}`:      {false, `array "features": the file is empty`},
		`{"features": "@/pipe"}`: {false,
			`array "features": a pipe or device cannot be read twice; give a regular file`},
		`{"features": "@/x.npy"}`:               {false, `no array "labels"; it has features (2 float64)`},
		`{"X": "@/x.npy", "labels": "@/x.npy"}`: {false, `no array "features"`},
	} {
		_, err := Open(strings.ReplaceAll(text, "@", dir), OpenOptions{})
		datasettest.MustContain(t, err, NamedArrays+": ", c.says)
		if usage := errors.As(err, new(*dataset.OptionError)); usage != c.usage {
			t.Errorf("%.60s: usage error %v, want %v: %v", text, usage, c.usage, err)
		}
	}
	_, err = Open(fmt.Sprintf(`{"features": %q}`, filepath.Join(dir, "x.npy")), OpenOptions{Format: "csv"})
	datasettest.MustContain(t, err, "--data-format csv")
	if files := FilesOf(`{"features": "a", "labels": "b"}`); len(files) != 2 || files[1] != "b" {
		t.Errorf("files %q", files)
	}
}

// TestNamedArraysForAModel: a model of named arrays reads a .npz file with the same flags, and the other way round.
func TestNamedArraysForAModel(t *testing.T) {
	arrays := goodCSR()
	for _, part := range csrParts {
		arrays["X"+part] = arrays["features"+part]
		delete(arrays, "features"+part)
	}
	object, archive := namedObject(t, arrays), datasettest.WriteFile(t, "a.npz", string(archiveOf(arrays)))
	for _, paths := range [][2]string{{object, archive}, {archive, object}} {
		trained, err := Open(paths[0], OpenOptions{Arrays: ArrayOptions{FeaturesVariable: "X"}})
		if err != nil {
			t.Fatal(err)
		}
		info := trained.Info()
		src, _, err := OpenFor(paths[1], OpenOptions{NoLabels: true}, &dataset.Schema{Features: info.Features,
			Labels: info.Labels, Reading: info.Reading})
		if err != nil {
			t.Fatal(err)
		}
		if rows := datasettest.Collect(t, src); len(rows) != 3 || datasettest.Dense(rows[0], 4)[3] != -2 {
			t.Errorf("%+v", rows)
		}
	}
}

// FuzzNamedArrays: an object is parsed, or refused as wrong usage, in proportion to its size.
func FuzzNamedArrays(f *testing.F) {
	f.Add(`{"features": "X.npy", "labels": "D.npy"}`)
	f.Add(`{"features": [1, {}]}`)
	f.Add(`{"a": "\u0000", "a": "b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var arrays []namedArray
		var err error
		allocs.AtMost(t, 256*len(text)+64<<10, "named arrays", func() { arrays, err = parseNamedArrays(text) })
		if err != nil {
			if !errors.As(err, new(*dataset.OptionError)) || arrays != nil {
				t.Fatalf("%d arrays, error %v", len(arrays), err)
			}
			return
		}
		object := map[string]string{}
		for _, a := range arrays {
			object[a.name] = a.path
		}
		again, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseNamedArrays(string(again)); err != nil || len(back) != len(arrays) ||
			len(object) != len(arrays) {
			t.Fatalf("%d arrays of %q, %d again, error %v", len(arrays), text, len(back), err)
		}
	})
}
