package structrf_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
)

// shared returns the path of a file of the shared folder beside the checkout, or
// skips.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "data")); err == nil {
			return filepath.Join(dir, "shared", name)
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("no folder shared/data in any parent folder: %s is not at hand", name)
		}
		dir = filepath.Dir(dir)
	}
}

// load reads a dataset of the shared folder as an import would.
func load(t testing.TB, name string) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := dataset.Open(shared(t, "data/"+name+".mat"), dataset.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, shards, err := dataset.Build(src, dataset.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m, shards
}

// dataOf makes the data of a job on all rows.
func dataOf(t testing.TB, m *dataset.Manifest, shards []*dataset.Rows) *dataset.Data {
	t.Helper()
	roles, err := dataset.Split{}.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return d
}

// jobOf resolves a job of structrf.
func jobOf(t testing.TB, m *dataset.Manifest, set algorithms.Values) *algorithms.Job {
	t.Helper()
	r, err := structrf.New().Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	return &algorithms.Job{Algorithm: structrf.Name, Numerics: algorithms.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params}
}

// grow grows a forest on one slot and returns its trainer.
func grow(t testing.TB, j *algorithms.Job, m *dataset.Manifest, d *dataset.Data) algorithms.Trainer {
	t.Helper()
	tr, err := structrf.New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := structrf.New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, algorithms.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, 1, nil), none); err != nil {
		t.Fatal(err)
	}
	return tr
}
