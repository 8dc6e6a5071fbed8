package dataset_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzManifest: what Check passes describes a dataset whose every shard can be
// asked for, and has a digest that JSON does not change.
func FuzzManifest(f *testing.F) {
	for _, rows := range []int{1, 9, 300} {
		m, _, err := importer.Build(generate.Artificial(rows, 1), importer.Options{})
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	left, _, err := importer.Build(datasettest.SomeRows(9), importer.Options{})
	if err != nil {
		f.Fatal(err)
	}
	left.LeftOut, left.Missing = dataset.LeftOut{1, 3}, "drop"
	b, err := json.Marshal(left)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	scaled := *left
	scaled.LabelType.Scale, scaled.HasIntervals = &dataset.Scale{Low: -1, True: dataset.TrueMode}, true
	scaled.Groups = &dataset.Groups{Digest: left.Shards[0].Digest, Names: []string{"a", "b"}}
	if b, err = json.Marshal(&scaled); err != nil || scaled.Check() != nil {
		f.Fatal(err, scaled.Check())
	}
	f.Add(b)
	f.Add([]byte(`{"format":1,"rows":4294967295,"features":16777216,"labels":65536,"non_zeros":-1,"shards":[{},{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(dataset.Manifest)
		allocs.AtMost(t, 64*len(b)+64<<10, "a manifest", func() {
			if json.Unmarshal(b, m) != nil || m.Check() != nil {
				m = nil
			}
		})
		if m == nil {
			return
		}
		rows := 0
		for i, ref := range m.Shards {
			from, to := dataset.ShardSpan(i, len(m.Shards), m.Rows)
			if from != rows || to-from != ref.Rows {
				t.Fatalf("shard %d has rows %d to %d, %d stated", i, from, to, ref.Rows)
			}
			rows = to
		}
		if rows != m.Rows || m.Bytes() < 0 {
			t.Fatalf("%d of %d rows, %d bytes", rows, m.Rows, m.Bytes())
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back := new(dataset.Manifest)
		if err := json.Unmarshal(again, back); err != nil || back.Check() != nil || back.Digest() != m.Digest() ||
			back.String() != m.String() {
			t.Fatalf("a manifest changes on the way: %v", err)
		}
	})
}
