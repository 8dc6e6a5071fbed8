// Package datatest builds data sets for tests, as imports do.
package datatest

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// Build returns the manifest and the shards of a source.
func Build(t testing.TB, src dataset.Source) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	m, shards, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m, shards
}

// Artificial builds the artificial set of Geng 2016 with seed 1.
func Artificial(t testing.TB, rows int) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	return Build(t, generate.Artificial(rows, 1))
}

// Shared builds a real data set of the folder shared/data, such as "Movie.mat", or skips the
// test where there is none.
func Shared(t testing.TB, name string) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := read.Open(testkit.Shared(t, "data/"+name), read.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Build(t, src)
}

// Data returns the data of a job: shards, with the rows' roles by a split, whose folds are
// those of assigned if it has a file of them.
func Data(t testing.TB, m *dataset.Manifest, shards []*dataset.Rows, split dataset.Split,
	assigned []uint16) *dataset.Data {
	t.Helper()
	roles, err := split.Assign(m.Rows, assigned)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return d
}
