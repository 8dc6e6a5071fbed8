package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/version"
)

// build1 builds one wheel into a new folder and returns its path.
func build1(t *testing.T, only string) string {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	if err := run(t.Context(), &b, []string{"--out", dir, "--only", only}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", b.String())
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("wheels: %v, error %v", found, err)
	}
	return found[0]
}

// contents reads a wheel, checks every line of RECORD and the modes, and returns the files by name.
func contents(t *testing.T, wheel string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files, record := make(map[string]string), ""
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		files[f.Name] = string(body)
		want := os.FileMode(0o644)
		if path.Base(f.Name) == "coppice" {
			want = 0o755
		}
		if f.Mode() != want || f.Modified.UTC().Format("2006-01-02 15:04:05") != "1980-01-01 00:00:00" {
			t.Errorf("%s: mode %v, time %v", f.Name, f.Mode(), f.Modified)
		}
		if strings.HasSuffix(f.Name, "/RECORD") {
			record = string(body)
		}
	}
	lines := strings.Split(strings.TrimSpace(record), "\n")
	if len(lines) != len(files) {
		t.Errorf("RECORD has %d lines for %d files", len(lines), len(files))
	}
	for _, line := range lines {
		fields := strings.Split(line, ",")
		body, ok := files[fields[0]]
		if !ok {
			t.Errorf("RECORD has %s, the wheel has not", fields[0])
		}
		sum := sha256.Sum256([]byte(body))
		want := []string{"sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), strconv.Itoa(len(body))}
		if strings.HasSuffix(fields[0], "/RECORD") {
			want = []string{"", ""}
		}
		if !slices.Equal(fields[1:], want) {
			t.Errorf("RECORD of %s: %v, want %v", fields[0], fields[1:], want)
		}
	}
	return files
}

// TestAny: the wheel without a binary has all files of the package, and equal sources give equal bytes.
func TestAny(t *testing.T) {
	path := build1(t, "any")
	if want := "coppice_ldl-" + version.String + "-py3-none-any.whl"; filepath.Base(path) != want {
		t.Errorf("name %s, want %s", filepath.Base(path), want)
	}
	files := contents(t, path)
	info := "coppice_ldl-" + version.String + ".dist-info/"
	for name, want := range map[string]string{
		"coppice_ldl/_build.py": "\nVERSION = \"" + version.String +
			"\"\n# BUNDLED is true if the wheel has the binary.\nBUNDLED = False\n",
		"coppice_ldl/estimators.py":  "class StructRF(Estimator):",
		"coppice_ldl/py.typed":       "",
		info + "WHEEL":               "Root-Is-Purelib: true\nTag: py3-none-any\n",
		info + "METADATA":            "Name: coppice-ldl\nVersion: " + version.String + "\n",
		info + "RECORD":              "coppice_ldl/estimators.py,sha256=",
		"coppice_ldl/bin/coppice":    "absent",
		"coppice_ldl/tests/test_.py": "absent",
	} {
		body, ok := files[name]
		if want == "absent" {
			if ok {
				t.Errorf("the wheel has %s", name)
			}
		} else if !ok || !strings.Contains(body, want) {
			t.Errorf("%s: %q, want %q", name, body, want)
		}
	}
	for _, want := range []string{"Requires-Python: >=3.9\n", "Requires-Dist: numpy>=1.20\n",
		"Requires-Dist: scikit-learn; extra == \"all\"\n", "\n\n# coppice-ldl\n"} {
		if !strings.Contains(files[info+"METADATA"], want) {
			t.Errorf("METADATA lacks %q", want)
		}
	}
	hand, err := filepath.Glob("../../python/coppice_ldl/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hand {
		base := filepath.Base(name)
		if _, ok := files["coppice_ldl/"+base]; !ok && !strings.HasPrefix(base, "test_") {
			t.Errorf("the wheel lacks %s", base)
		}
	}
	equal(t, path, build1(t, "any"))
}

// equal fails if two files differ.
func equal(t *testing.T, a, b string) {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("two builds of %s differ", filepath.Base(a))
	}
}

// TestHost: the wheel of this platform has the binary, is not too large, and both builds are equal. If there is Python,
// pip installs it, and the installed binary runs.
func TestHost(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("builds the binary")
	}
	if _, err := choose("host"); err != nil {
		t.Skip(err)
	}
	path := build1(t, "host")
	files := contents(t, path)
	if len(files["coppice_ldl/bin/coppice"]) < 1<<20 || !strings.Contains(files["coppice_ldl/_build.py"],
		"\nBUNDLED = True\n") {
		t.Error("the wheel lacks the binary")
	}
	wheelFile := files["coppice_ldl-"+version.String+".dist-info/WHEEL"]
	for tag := range strings.SplitSeq(strings.TrimSuffix(strings.SplitN(filepath.Base(path), "-none-", 2)[1], ".whl"),
		".") {
		if !strings.Contains(wheelFile, "\nTag: py3-none-"+tag+"\n") {
			t.Errorf("WHEEL lacks the tag %s of the file name:\n%s", tag, wheelFile)
		}
	}
	if !strings.Contains(wheelFile, "Root-Is-Purelib: false\n") {
		t.Error("a wheel with a binary is pure")
	}
	equal(t, path, build1(t, "host"))

	py, target := python(t), filepath.Join(t.TempDir(), "site")
	if exec.CommandContext(t.Context(), py, "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	if text, err := exec.CommandContext(t.Context(), py, "-m", "pip", "install", "--no-deps", "--no-index", "--target",
		target, path).CombinedOutput(); err != nil {
		t.Fatalf("pip: %v\n%s", err, text)
	}
	for _, name := range []string{filepath.Join("coppice_ldl", "bin", "coppice"), filepath.Join("bin", "coppice")} {
		command := exec.CommandContext(t.Context(), filepath.Join(target, name), "version")
		command.Env = append(os.Environ(), "PYTHONPATH="+target)
		if text, err := command.CombinedOutput(); err != nil || !strings.Contains(string(text), version.String) {
			t.Errorf("%s of the installed wheel: %v\n%s", name, err, text)
		}
	}
}

// TestHandWritten: a wheel has the modules of all folders, but no tests, no caches and no generated files of a working
// copy.
func TestHandWritten(t *testing.T) {
	python := fstest.MapFS{}
	for _, name := range []string{
		"coppice_ldl/__init__.py", "coppice_ldl/sub/a.py", "coppice_ldl/py.typed", "coppice_ldl/tests/a.py",
		"coppice_ldl/test_a.py", "coppice_ldl/conftest.py",
		"coppice_ldl/__pycache__/a.py", "coppice_ldl/bin/coppice", "coppice_ldl/estimators.py", "coppice_ldl/_build.py",
		"coppice_ldl/a.txt", "setup.py",
	} {
		python[name] = &fstest.MapFile{}
	}
	files, err := handWritten(python)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if want := []string{"coppice_ldl/__init__.py", "coppice_ldl/py.typed", "coppice_ldl/sub/a.py"}; !slices.Equal(names,
		want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// TestTwice: a wheel cannot have two files with one name.
func TestTwice(t *testing.T) {
	w := wheel{version: "1", tags: []string{"any"}, files: []file{{"a", 0o644, nil}, {"b", 0o644, nil}, {"a", 0o644, nil}}}
	if _, err := w.bytes(); err == nil || !strings.Contains(err.Error(), "a: the wheel has this file twice") {
		t.Errorf("error %v", err)
	}
}

func TestPEP440(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0": "0.1.0", "v1.2.3": "1.2.3", "0.2.0-rc.1": "0.2.0rc1", "0.2.0-alpha": "0.2.0a0", "0.2.0-beta2": "0.2.0b2",
		"0.2.0-dev":  "0.2.0.dev0",
		"0.2.0.dev4": "0.2.0.dev4", "0.2.0rc1": "0.2.0rc1", "1.0.0+Linux-X": "1.0.0+linux.x",
		"": "", "next": "", "1.0-nightly": "", "1.0 0": "", "../1.0": "",
	} {
		got, err := pep440(version)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, error %v, want %q", version, got, err, want)
		}
	}
}

// TestUsage: wrong flags are errors of usage that say what is right.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "--out is missing",
		"--out x --only windows/amd64": "want host, linux/amd64, linux/arm64, darwin/amd64, darwin/arm64, any",
		"--out x --version next":       `version "next": want a version such as`,
		"--out x y":                    `"y": want only flags`,
		"--unknown":                    "unknown",
	} {
		err := run(t.Context(), io.Discard, strings.Fields(args))
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat("x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("wrong usage leaves a folder: %v", err)
	}
}

// TestPackageSizes: sizes of symbols are added by package; what is not in the file does not count.
func TestPackageSizes(t *testing.T) {
	const symbols = `  401000       500 T runtime.main
  402000       700 T github.com/a/b/v2.(*T[go.shape.int]).Do
  403000       100 R github.com/a/b/v2.table
  404000       900 B runtime.heap
  404400  33554432 D crypto/internal/fips140/drbg.memory
  405000        60 R type:*runtime.g
  406000        10 T main.f[github.com/x/y.Z]
                20 U free
`
	got := packageSizes(symbols)
	want := []packageSize{{"github.com/a/b/v2", 800}, {"runtime", 500}, {"type:", 60}, {"main", 10}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
