package open_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// job resolves a job of rf, of so many folds, on the artificial set.
func job(t *testing.T, folds int) (*round.Job, *dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	m, shards := datatest.Artificial(t, 300)
	a, err := registry.Find("rf")
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(param.Values{}, m)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{
		Algorithm: "rf", Numerics: round.Numerics, Seed: 5, Dataset: m.Digest(), Params: r.Params, Folds: folds,
		Split: dataset.Split{Seed: 5, Folds: folds},
	}, m, shards
}

// TestOpenRefuses what does not belong together, with the reason; a panic is an error.
func TestOpenRefuses(t *testing.T) {
	short := func(string, int64) ([]byte, error) { return make([]byte, 10), nil }
	missing := errors.New("no such blob")
	for name, c := range map[string]struct {
		spoil func(*round.Job, *dataset.Manifest)
		list  open.Blob
		want  string
		is    error
	}{
		"another dataset": {spoil: func(_ *round.Job, m *dataset.Manifest) {
			m.Features++
		}, want: "the job needs dataset"},
		"another numerics": {spoil: func(j *round.Job, _ *dataset.Manifest) {
			j.Numerics++
		}, want: "arithmetic version 2", is: pipeline.ErrNumerics},
		"no manifest": {spoil: func(j *round.Job, m *dataset.Manifest) {
			m.Rows--
			j.Dataset = m.Digest()
		}, is: dataset.ErrFormat},
		"another algorithm": {spoil: func(j *round.Job, _ *dataset.Manifest) { j.Algorithm = "oak" }, want: "rf"},
		"a fold of none": {spoil: func(j *round.Job, _ *dataset.Manifest) {
			j.Split.Fold = 9
		}, want: "there is no fold 9"},
		"a list cut short": {spoil: listed, list: short, is: dataset.ErrFormat},
		"a list nobody has": {spoil: listed, list: func(string, int64) ([]byte, error) {
			return nil, missing
		}, is: missing},
		"a list that panics": {spoil: listed, want: "setting up the job panicked"},
		"settings of another": {spoil: func(j *round.Job, _ *dataset.Manifest) {
			j.Params = []byte(`{"oak":1}`)
		}, want: "oak"},
	} {
		j, m, _ := job(t, 2)
		c.spoil(j, m)
		_, err := open.Open(j, m, c.list)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func listed(j *round.Job, _ *dataset.Manifest) { j.Split.Assigned = strings.Repeat("ab", 32) }

// TestList: the list of folds decides the test rows, of the job and of its children.
func TestList(t *testing.T) {
	j, m, shards := job(t, 3)
	listed(j, m)
	folds := make([]uint16, m.Rows)
	for row := range folds {
		folds[row] = uint16(row % 3)
	}
	parent, err := open.Open(j, m, func(digest string, n int64) ([]byte, error) {
		if digest != j.Split.Assigned || n != int64(2*m.Rows) {
			t.Errorf("asked for %d bytes of %s", n, digest)
		}
		return dataset.EncodeFolds(folds), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, rows := range shards {
		if added, err := parent.AddShard(i, rows); !added || err != nil {
			t.Fatalf("shard %d: %v, %v", i, added, err)
		}
	}
	for f := range 3 {
		child, err := parent.SubJob(pipeline.SubJob(j, f))
		if err != nil {
			t.Fatal(err)
		}
		for row := range folds {
			if test := child.Data.Role(uint32(row)) == dataset.Test; test != (row%3 == f) {
				t.Fatalf("fold %d: row %d is a test row: %v", f, row, test)
			}
		}
		for i, rows := range shards {
			if child.Data.Shard(i) != rows {
				t.Errorf("fold %d: shard %d is a copy", f, i)
			}
		}
	}
}

// TestChildWants all shards.
func TestSubJobWants(t *testing.T) {
	j, m, shards := job(t, 2)
	parent, err := open.Open(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parent.AddShard(0, shards[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := parent.SubJob(pipeline.SubJob(j, 0)); err == nil || !strings.Contains(err.Error(), "shard 1") {
		t.Errorf("error %v", err)
	}
}

// TestAddShard adds what the manifest says, once, and refuses everything else.
func TestAddShard(t *testing.T) {
	j, m, shards := job(t, 0)
	opened, err := open.Open(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r *dataset.Rows){
		"another shard":     func(r *dataset.Rows) { *r = *shards[1] },
		"too few rows":      func(r *dataset.Rows) { r.N-- },
		"more labels":       func(r *dataset.Rows) { r.Labels++ },
		"rows that swapped": func(r *dataset.Rows) { r.Row[0], r.Row[1] = r.Row[1], r.Row[0] },
		"a row beyond all":  func(r *dataset.Rows) { r.Row[0] = uint32(m.Rows) },
	} {
		bad := *shards[0]
		bad.Row = slices.Clone(bad.Row)
		change(&bad)
		if added, err := opened.AddShard(0, &bad); added || !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: added %v, error %v", name, added, err)
		}
		if opened.Data.HasShard(0) {
			t.Fatalf("%s: the shard was added", name)
		}
	}
	rows, err := dataset.DecodeShard(dataset.EncodeShard(shards[0], nil))
	if err != nil {
		t.Fatal(err)
	}
	if added, err := opened.AddShard(0, shards[0]); !added || err != nil {
		t.Errorf("added %v, error %v", added, err)
	}
	if added, err := opened.AddShard(0, rows); added || err != nil || opened.Data.Shard(0) != shards[0] {
		t.Errorf("a second time: added %v, error %v", added, err)
	}
	if !bytes.Equal(dataset.EncodeShard(opened.Data.Shard(0), nil), dataset.EncodeShard(rows, nil)) {
		t.Error("the shard changed")
	}
}
