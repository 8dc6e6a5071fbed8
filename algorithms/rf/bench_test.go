package rf_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
)

// BenchmarkGrow grows 50 trees of min_samples 2 on one lane.
func BenchmarkGrow(b *testing.B) {
	for _, name := range []string{"Yeast_alpha", "Movie", "SJAFFE"} {
		b.Run(name, func(b *testing.B) {
			m, d := load(b, name)
			r, err := rf.New().Resolve(algorithms.Values{"min_samples": int64(2)}, m)
			if err != nil {
				b.Fatal(err)
			}
			j := &algorithms.Job{Algorithm: rf.Name, Numerics: algorithms.Numerics, Seed: 1, Params: r.Params}
			for b.Loop() {
				k, err := rf.New().NewKernel(j, m)
				if err != nil {
					b.Fatal(err)
				}
				tr, err := rf.New().NewTrainer(j, m, nil)
				if err != nil {
					b.Fatal(err)
				}
				none := func(uint64, algorithms.Trainer) error { return nil }
				if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, 1, nil), none); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// load reads a dataset of the shared folder beside the checkout as an import would,
// or skips.
func load(t testing.TB, name string) (*dataset.Manifest, *dataset.Data) {
	t.Helper()
	path := ""
	for dir, _ := os.Getwd(); path == ""; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "shared", "data")); err == nil {
			path = filepath.Join(dir, "shared", "data", name+".mat")
		} else if dir == filepath.Dir(dir) {
			t.Skipf("no folder shared/data in any parent folder: %s is not at hand", name)
		}
	}
	src, err := dataset.Open(path, dataset.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, shards, err := dataset.Build(src, dataset.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := dataset.Split{}.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return m, d
}
