package speed

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/version"
)

// Machine is what figures depend on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`  // that this process may use
	System    string `json:"system"` // "linux/amd64"
	// Kernels is what Coppice's kernels run as here: "AVX2" or "portable Go".
	Kernels string `json:"kernels"`
}

// ThisMachine describes the machine that this process runs on.
func ThisMachine() Machine {
	m := Machine{
		Processor: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Kernels: "portable Go",
	}
	if num.Accelerated {
		m.Kernels = "AVX2"
	}
	if name := processor(); name != "" { // Linux only
		m.Processor = name
	}
	return m
}

// Versions are those of what is measured, by name.
func Versions() map[string]string {
	return map[string]string{"Coppice": version.String, "Go": strings.TrimPrefix(runtime.Version(), "go")}
}

// processor returns the name of the processor, if the system tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	return valueOf(f, "model name")
}

// valueOf returns the value of the first line "key : value"; empty where there is none.
func valueOf(r io.Reader, key string) string {
	for s := bufio.NewScanner(r); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Shape is a dataset that is measured on: a file where it is at hand, else generated
// rows of the same shape.
type Shape struct {
	Name                   string
	Rows, Features, Labels int
	Density                float64
	NoFile                 bool // generated in any case
}

// The datasets of the tables.
var (
	YeastAlpha = Shape{Name: "Yeast_alpha", Rows: 2465, Features: 24, Labels: 18, Density: 1}
	Movie      = Shape{Name: "Movie", Rows: 7755, Features: 1869, Labels: 5, Density: 0.0113}
	SJAFFE     = Shape{Name: "SJAFFE", Rows: 213, Features: 243, Labels: 6, Density: 1}
	Dense      = Shape{Name: "dense 2,500 x 243 x 6", Rows: 2500, Features: 243, Labels: 6, Density: 1, NoFile: true}
	Large      = Shape{Name: "100,000 x 100 x 20", Rows: 100_000, Features: 100, Labels: 20, Density: 1, NoFile: true}
)

// Set is a dataset as jobs see it.
type Set struct {
	Shape
	Source   Source
	Manifest *dataset.Manifest
	Data     *dataset.Data // all rows are training rows

	file string // for peers, once one wants it
	rows dataset.Source
}

// Open reads NAME.mat of a folder, or generates rows where the folder is not given or
// has no such file.
func (s Shape) Open(folder string) (*Set, error) {
	src, from, err := s.source(folder)
	if err != nil {
		return nil, err
	}
	m, shards, err := importer.Build(src, importer.Options{})
	if err != nil {
		return nil, err
	}
	roles, err := dataset.Split{}.Assign(m.Rows, nil)
	if err != nil {
		return nil, err
	}
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return &Set{Shape: s, Source: from, Manifest: m, Data: d, rows: src}, nil
}

func (s Shape) source(folder string) (dataset.Source, Source, error) {
	if path := filepath.Join(folder, s.Name+".mat"); folder != "" && !s.NoFile {
		src, err := read.Open(path, read.OpenOptions{})
		if !errors.Is(err, fs.ErrNotExist) {
			return src, Source{Name: s.Name, File: path}, err
		}
	}
	src, err := generate.New(generate.Options{Rows: s.Rows, Features: s.Features, Labels: s.Labels,
		Density: s.Density, Seed: 1})
	return src, Source{Name: s.Name, Generated: true}, err
}

// ForPeers writes the dataset to a file of a folder, once, and returns its path.
func (s *Set) ForPeers(folder string) (path string, err error) {
	if s.file != "" {
		return s.file, nil
	}
	f, err := os.CreateTemp(folder, "*.npz")
	if err != nil {
		return "", err
	}
	_, err = write.WriteNPZ(f, s.rows, importer.Options{}, write.NPZOptions{})
	if err = errors.Join(err, f.Close()); err == nil {
		s.file = f.Name()
	}
	return f.Name(), err
}
