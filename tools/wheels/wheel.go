package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
)

// file is a file of a wheel.
type file struct {
	name string
	mode fs.FileMode
	body []byte
}

// wheel is what decides the bytes of a wheel.
type wheel struct {
	version     string   // of the wheel, as PEP 440 writes it
	tags        []string // platform tags, such as manylinux2014_x86_64
	pure        bool     // true if the wheel has no binary
	description string   // Markdown
	files       []file
}

// name returns the name of the wheel's file.
func (w *wheel) name() string {
	return fmt.Sprintf("coppice_ldl-%s-py3-none-%s.whl", w.version, strings.Join(w.tags, "."))
}

// bytes returns the archive. The files are in the order of their names, then come the files of the folder dist-info.
func (w *wheel) bytes() ([]byte, error) {
	files := slices.Clone(w.files)
	if !w.pure {
		files = append(files, file{"coppice_ldl-" + w.version + ".data/scripts/coppice", 0o755, []byte(script)})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(files); i++ {
		if files[i].name == files[i-1].name {
			return nil, fmt.Errorf("%s: the wheel has this file twice; rename one of them", files[i].name)
		}
	}
	info := "coppice_ldl-" + w.version + ".dist-info/"
	files = append(files, file{info + "METADATA", 0o644, []byte(w.metadata())},
		file{info + "WHEEL", 0o644, []byte(w.wheelFile())})
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.body)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.body))
	}
	record.WriteString(info + "RECORD,,\n")
	files = append(files, file{info + "RECORD", 0o644, []byte(record.String())})
	return archive(files)
}

// archive returns a zip archive with these files. It depends on nothing else.
func archive(files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// script is the command coppice, which pip installs next to the interpreter. It becomes the binary of the package, and
// does not import the package, because that would take longer than many commands.
const script = `#!python
import importlib.util
import os
import sys

path = os.path.join(os.path.dirname(importlib.util.find_spec("coppice_ldl").origin), "bin", "coppice")
os.execv(path, [path, *sys.argv[1:]])
`

// extras are the packages of the optional extra "all".
var extras = []string{"matplotlib", "narwhals", "pandas", "scikit-learn", "tqdm"}

// metadata returns the file METADATA.
func (w *wheel) metadata() string {
	var b strings.Builder
	fmt.Fprintf(&b, `Metadata-Version: 2.1
Name: coppice-ldl
Version: %s
Summary: Label distribution learning: fast, reproducible estimators for one machine or a cluster
Keywords: label distribution learning,machine learning,scikit-learn
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: MacOS
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy>=1.20
Provides-Extra: all
`, w.version)
	for _, name := range extras {
		fmt.Fprintf(&b, "Requires-Dist: %s; extra == \"all\"\n", name)
	}
	b.WriteString("Description-Content-Type: text/markdown\n\n" + w.description)
	return b.String()
}

// wheelFile returns the file WHEEL.
func (w *wheel) wheelFile() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Wheel-Version: 1.0\nGenerator: coppice tools/wheels\nRoot-Is-Purelib: %t\n", w.pure)
	for _, tag := range w.tags {
		fmt.Fprintf(&b, "Tag: py3-none-%s\n", tag)
	}
	return b.String()
}

var (
	semantic = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:-([a-z]+)\.?(\d*))?(?:\+([0-9A-Za-z.-]+))?$`)
	pep      = regexp.MustCompile(`^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?$`)
)

// pep440 returns a version as PEP 440 writes it: 0.2.0-rc.1 is 0.2.0rc1.
func pep440(version string) (string, error) {
	if pep.MatchString(version) {
		return version, nil
	}
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("version %q: want a version such as 0.2.0, 0.2.0-rc.1 or 0.2.0.dev1", version)
	}
	number := m[3]
	if number == "" {
		number = "0"
	}
	phases := map[string]string{"": "", "alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}
	phase, known := phases[m[2]]
	if !known {
		return "", fmt.Errorf("version %q: %q is not alpha, beta, rc or dev", version, m[2])
	}
	if m[2] == "" {
		number = ""
	}
	text := m[1] + phase + number
	if m[4] != "" {
		text += "+" + strings.ToLower(strings.ReplaceAll(m[4], "-", "."))
	}
	return text, nil
}
