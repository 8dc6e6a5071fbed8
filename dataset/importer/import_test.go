package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/datasettest/sources"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/google/go-cmp/cmp"
)

func TestImportEqualsBuild(t *testing.T) {
	for name, src := range sources.All(t) {
		dir := filepath.Join(t.TempDir(), "new", "folder")
		imported, err := Import(src, dir, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		built, shards, err := Build(src, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(imported, built); d != "" {
			t.Errorf("%s: Import and Build differ: %s", name, d)
		}
		if err := imported.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkShardFiles(t, dir, imported)
		checkStored(t, name, src, built, shards, dir)
	}
}

// checkShardFiles checks that dir holds just the shards of m, by their digests.
func checkShardFiles(t *testing.T, dir string, m *dataset.Manifest) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(m.Shards) {
		t.Errorf("%d files for %d shards", len(entries), len(m.Shards))
	}
	for _, s := range m.Shards {
		b, err := os.ReadFile(filepath.Join(dir, s.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != s.Digest || int64(len(b)) != s.Bytes {
			t.Errorf("shard %s has other bytes", s.Digest)
		}
	}
}

// checkStored checks each row of the shards, by its number, against src.
func checkStored(t *testing.T, name string, src dataset.Source, m *dataset.Manifest, shards []*dataset.Rows,
	dir string) {
	t.Helper()
	want := datasettest.Collect(t, src)
	var names [][]string
	for i, r := range shards {
		if err := m.CheckShard(i, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, m.Shards[i].Digest))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := dataset.DecodeShard(b)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, datasettest.RowNames(stored))
	}
	if !m.HasRowNames {
		names = nil
	}
	got := datasettest.Collect(t, datasettest.StoredSource(m, shards, names))
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", name, len(got), len(want))
	}
	for i := range got {
		if got[i].Number != i || got[i].Name != want[i].Name ||
			!datasettest.SameFloat32(datasettest.Dense(got[i], m.Features), datasettest.Dense(want[i], m.Features)) ||
			!datasettest.SameFloat32(got[i].Labels, want[i].Labels) {
			t.Fatalf("%s: row %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}

func TestManifest(t *testing.T) {
	src := datasettest.SomeRows(64)
	src.Rows[3].Values = []float64{0, 0}
	src.Rows[4].Labels = []float64{1, 0}
	m, _, err := Build(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Row 0 has one zero, row 3 two.
	if m.Rows != 64 || m.NonZeros != 125 || m.Sparse || len(m.Shards) != 8 {
		t.Errorf("%+v", m)
	}
	if want := (63*0.25 + 1) / 64; math.Abs(m.MeanLabel[0]-want) > 1e-12 {
		t.Errorf("mean label %v, want %v first", m.MeanLabel, want)
	}
	digest := m.Digest()
	m.FeatureNames, m.MeanLabel = []string{"a", "b"}, nil
	if m.Digest() != digest {
		t.Error("names change the digest")
	}
	src.Rows[5].Values[1] = 1.5
	if m, _, err = Build(src, Options{}); err != nil || m.Digest() == digest {
		t.Errorf("another value gives the same digest (%v)", err)
	}
}

func TestManifestCheck(t *testing.T) {
	for name, spoil := range map[string]func(*dataset.Manifest){
		"format":     func(m *dataset.Manifest) { m.Format = 2 },
		"no samples": func(m *dataset.Manifest) { m.Rows = 0 },
		"rows":       func(m *dataset.Manifest) { m.Rows++ },
		"features":   func(m *dataset.Manifest) { m.Features = 0 },
		"sparse":     func(m *dataset.Manifest) { m.Sparse = true },
		"non-zeros":  func(m *dataset.Manifest) { m.NonZeros = -1 },
		"shards":     func(m *dataset.Manifest) { m.Shards = m.Shards[:4] },
		"digest":     func(m *dataset.Manifest) { m.Shards[1].Digest = "../../etc/passwd" },
		"shard":      func(m *dataset.Manifest) { m.Shards[1].Rows++ },
		"names":      func(m *dataset.Manifest) { m.LabelNames = []string{"a"} },
	} {
		m, _, err := Build(datasettest.SomeRows(64), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if spoil(m); m.Check() == nil {
			t.Errorf("%s: a wrong manifest passes", name)
		}
	}
}

// brokenImports are sources and options with which an import fails.
func brokenImports() map[string]func() (dataset.Source, Options, error) {
	canceled := func(phase string) func() (dataset.Source, Options, error) {
		return func() (dataset.Source, Options, error) {
			ctx, cancel := context.WithCancel(context.Background())
			o := Options{Context: ctx, Progress: func(p Progress) {
				if p.Phase == phase {
					cancel()
				}
			}}
			return datasettest.SomeRows(10_000), o, context.Canceled
		}
	}
	changing := func(change func(*datasettest.Listed)) func() (dataset.Source, Options, error) {
		return func() (dataset.Source, Options, error) {
			l := datasettest.SomeRows(100)
			l.Change = func(l *datasettest.Listed) {
				if l.Scans == 2 {
					change(l)
				}
			}
			return l, Options{}, dataset.ErrChanged
		}
	}
	return map[string]func() (dataset.Source, Options, error){
		"canceled in the first pass":  canceled("check"),
		"canceled in the second pass": canceled("sort"),
		"canceled while writing":      canceled("store"),
		"fewer rows":                  changing(func(l *datasettest.Listed) { l.Rows = l.Rows[:99] }),
		"more rows":                   changing(func(l *datasettest.Listed) { l.Rows = append(l.Rows, l.Rows[0]) }),
		"other rows":                  changing(func(l *datasettest.Listed) { l.Rows[50].Values = []float64{0, 0} }),
	}
}

func TestFailedImportLeavesNothing(t *testing.T) {
	for name, broken := range brokenImports() {
		src, o, want := broken()
		parent := t.TempDir()
		if _, err := Import(src, filepath.Join(parent, "a", "b"), o); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, "*")); left != nil {
			t.Errorf("%s: left %v", name, left)
		}
		src, o, want = broken()
		if _, _, err := Build(src, o); !errors.Is(err, want) {
			t.Errorf("%s: Build: %v, want %v", name, err, want)
		}
	}
}

func TestFailedMoveTakesBack(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, "other")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, _, err := Build(datasettest.SomeRows(64), Options{})
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for _, s := range m.Shards[:5] { // the sixth cannot be moved
		if err := os.WriteFile(filepath.Join(work, s.Digest), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := moveShards(m, work, dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 || left[0] != keep {
		t.Errorf("left %v", left)
	}
}

func TestImportTwice(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		m, err := Import(generate.Artificial(100, 1), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkShardFiles(t, dir, m)
	}
}

func TestImportReportsProgress(t *testing.T) {
	var seen []string
	o := Options{Progress: func(p Progress) { seen = append(seen, fmt.Sprint(p)) }}
	if _, _, err := Build(datasettest.SomeRows(500), o); err != nil {
		t.Fatal(err)
	}
	want := []string{"{check 256 500 0.512}", "{sort 256 500 0.512}", "{store 1 16 0.0625}"}
	if len(seen) != 18 || !slices.Equal(seen[:3], want) || seen[17] != "{store 16 16 1}" {
		t.Errorf("%v", seen)
	}
}

func TestBlocks(t *testing.T) {
	for name, src := range sources.All(t) {
		want, next := datasettest.Collect(t, src), 0
		err := Blocks(src, 7, Options{}, func(r *dataset.Rows, names []string) error {
			if r.N > 7 || r.N < 7 && next+r.N != len(want) {
				t.Errorf("%s: a block of %d rows at %d of %d", name, r.N, next, len(want))
			}
			var row dataset.Row
			for i := range r.N {
				datasettest.RowAt(r, i, &row)
				w := want[next]
				if r.Row[i] != uint32(next) || !datasettest.SameFloat32(datasettest.Dense(row, r.Features),
					datasettest.Dense(w, r.Features)) ||
					!datasettest.SameFloat32(row.Labels, w.Labels) || names != nil && names[i] != w.Name {
					t.Fatalf("%s: row %d is %v, want %v", name, next, row, w)
				}
				next++
			}
			return nil
		})
		if err != nil || next != len(want) {
			t.Errorf("%s: %d of %d rows, %v", name, next, len(want), err)
		}
	}
	stop := errors.New("stop")
	err := Blocks(datasettest.SomeRows(9), 3, Options{}, func(*dataset.Rows, []string) error { return stop })
	datasettest.MustBe(t, err, stop)
}
