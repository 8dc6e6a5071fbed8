package ndf

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// rowsOf cuts rows that make gives into shards of every row i, i + shards, and so on, in dense or
// sparse storage.
func rowsOf(n, features, labels, shards int, sparse bool, row func(i int) (x, d []float32)) *dataset.Data {
	m := &dataset.Manifest{
		Format: dataset.ManifestFormat, Rows: n, Features: features, Labels: labels, Sparse: sparse,
		Shards: make([]dataset.ShardRef, shards),
	}
	roles := make([]dataset.Roles, n)
	for i := range roles {
		roles[i] = dataset.Train
	}
	data := dataset.NewData(m, roles)
	for s := range shards {
		r := &dataset.Rows{Features: features, Labels: labels, Sparse: sparse, Start: []uint32{0}}
		for i := s; i < n; i += shards {
			x, d := row(i)
			r.N++
			r.Row = append(r.Row, uint32(i))
			r.D = append(r.D, d...)
			for j, v := range x {
				if !sparse {
					r.X = append(r.X, v)
				} else if v != 0 {
					r.X, r.Index = append(r.X, v), append(r.Index, uint32(j))
				}
			}
			r.Start = append(r.Start, uint32(len(r.X)))
		}
		if !sparse {
			r.Start = nil
		}
		data.SetShard(s, r)
	}
	return data
}

// someRows draws rows of which a third of the features are 0. The label degrees are multiples of 1/8, or
// one of them is 1.
func someRows(seed uint64, features, labels int, classes bool) func(i int) (x, d []float32) {
	return func(i int) (x, d []float32) {
		s := num.NewStream(num.NewKey(seed, "rows"), uint64(i), 0)
		x, d = make([]float32, features), make([]float32, labels)
		best := 0
		for j := range x {
			if s.Float64() < 2.0/3 {
				x[j] = float32(int(16*s.Normal())) / 8
			}
			if j < labels && x[j] > x[best] {
				best = j
			}
		}
		if classes {
			d[best] = 1
			return x, d
		}
		d[best] = 0.5
		d[int(s.Uint64n(uint64(labels)))] += 0.375
		d[int(s.Uint64n(uint64(labels)))] += 0.125
		return x, d
	}
}

// job resolves settings into a job.
func jobOf(t testing.TB, m *dataset.Manifest, given param.Values) *round.Job {
	t.Helper()
	r, err := New().Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
}

// trained trains a model.
func trained(t testing.TB, d *dataset.Data, lanes int, given param.Values) algorithms.Model {
	t.Helper()
	j := jobOf(t, d.Manifest, given)
	tr, err := New().NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, lanes, nil), none); err != nil {
		t.Fatal(err)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// configOf returns the settings of a job.
func configOf(t testing.TB, given param.Values, m *dataset.Manifest) *Config {
	t.Helper()
	c, err := settings.Parse(jobOf(t, m, given).Params)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// growerOf returns a grower whose sample has each training row once.
func growerOf(t testing.TB, c *Config, d *dataset.Data) *grower {
	t.Helper()
	u := round.Task{Op: 1, Scope: round.Whole, Roles: dataset.Train, Of: 1}
	table, err := newTable(c, u, d)
	if err != nil {
		t.Fatal(err)
	}
	g := newGrower(c, 1, table)
	for i := range g.source.counts {
		g.source.counts[i] = 1
		g.rows = append(g.rows, uint32(i))
	}
	g.source.order(g.rows)
	return g
}
