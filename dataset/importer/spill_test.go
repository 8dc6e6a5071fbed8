package importer

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestSpillMemory: what waits in the buffers is bounded, however many shards there are and
// however long their rows.
func TestSpillMemory(t *testing.T) {
	testkit.WithoutRace(t)
	m := &dataset.Manifest{Rows: 1 << 20, Features: 1 << 14, Labels: 1, Shards: make([]dataset.ShardRef, 1<<11)}
	s := newSpill(m, t.TempDir())
	row := storedRow{values: make([]float32, m.Features), labels: []float32{1}}
	for i := range 3 * len(m.Shards) {
		if err := s.add(i*7%len(m.Shards), &row); err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, b := range s.buffers {
			held += cap(b)
		}
		if s.buffered > spillMemory || held > 2*spillMemory+1<<20 {
			t.Fatalf("after %d rows %d bytes wait in %d bytes of buffers", i+1, s.buffered, held)
		}
	}
}

func TestSpillOfManyFlushes(t *testing.T) {
	want, _, err := Build(datasettest.SomeRows(2000), Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{}
	first, err := Measure(datasettest.SomeRows(2000), o)
	if err != nil {
		t.Fatal(err)
	}
	m := first.manifest()
	s := newSpill(m, t.TempDir())
	s.limit = 1 // a write for each row
	_, err = first.sortRows(datasettest.SomeRows(2000), m, o, s.add)
	if err := errors.Join(err, s.end()); err != nil {
		t.Fatal(err)
	}
	for i := range m.Shards {
		rows, names, err := s.build(i)
		if err != nil {
			t.Fatal(err)
		}
		if _, ref := encodeShard(rows, names); ref != want.Shards[i] {
			t.Errorf("shard %d differs", i)
		}
	}
}
