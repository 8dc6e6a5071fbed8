package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one swept late
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// manyCells returns a state with a job of n cells, all of which are recorded, and how many bytes the records take.
func manyCells(t testing.TB, n int) (*State, int64) {
	t.Helper()
	m := newMachine(t)
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "a"})
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "many", Manifest: manifest('d')})
	j := m.do(protocol.EntryExperiment, &protocol.ExperimentEntry{Name: "e", Jobs: []protocol.SubmitEntry{{
		Token: "t/0", Name: "e.many", Dataset: "many",
		Job: &round.Job{Algorithm: round.AlgorithmCells, Dataset: manifest('d').Digest(), Cells: &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}}, Repeats: n, Folds: 1}},
	}}}).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	before := heap()
	for u := range n {
		sum := sha256.Sum256(fmt.Append(nil, u))
		m.do(protocol.EntryCollected, &protocol.CollectedEntry{
			Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Unit: uint32(u), Of: uint32(n), Digest: hex.EncodeToString(sum[:]), Bytes: 4000, Compute: 1e6,
		})
	}
	return m.s, heap() - before
}

// TestManyCells: a cell that is recorded takes few bytes of memory and of a snapshot.
func TestManyCells(t *testing.T) {
	const n = 20_000
	s, bytesUsed := manyCells(t, n)
	if each := float64(bytesUsed) / n; each > 70 {
		t.Errorf("a cell takes %.0f bytes of memory", each)
	}
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	if each := float64(b.Len()) / n; each > 74 {
		t.Errorf("a cell takes %.0f bytes of a snapshot", each)
	}
	again := decode(t, b.Bytes())
	if got := again.Jobs()[0].Parts(1); len(got) != n || got[n-1] != s.Jobs()[0].Parts(1)[n-1] {
		t.Errorf("%d cells are read again", len(got))
	}
}

// BenchmarkManyCells tells the bytes of 100,000 recorded cells, in memory and in a snapshot.
func BenchmarkManyCells(b *testing.B) {
	for b.Loop() {
		const n = 100_000
		s, used := manyCells(b, n)
		var snapshot bytes.Buffer
		if err := s.Encode(&snapshot); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(used)/n, "B-heap/cell")
		b.ReportMetric(float64(snapshot.Len())/n, "B-snapshot/cell")
		runtime.KeepAlive(s)
	}
}
