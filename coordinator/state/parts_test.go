package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestPartList: whatever the order, a list has what was put, in order, each task once;
// lists that were handed out stay; blocks are not empty and not too long.
func TestPartList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l recordedList
		want := make(map[[2]uint64]RecordedResult)
		span := rapid.SampledFrom([]uint32{3, 700, 3000}).Draw(t, "units")
		next := uint32(0)
		for range rapid.IntRange(0, 1500).Draw(t, "parts") {
			p := RecordedResult{Round: 1 + rapid.Uint64Range(0, 2).Draw(t, "round"), Task: next, Of: span,
				Bytes: uint64(len(want))}
			if next++; rapid.IntRange(0, 3).Draw(t, "any") == 0 {
				p.Task = rapid.Uint32Range(0, span).Draw(t, "unit")
			}
			_, there := want[[2]uint64{p.Round, uint64(p.Task)}]
			before, n := l, len(want)
			var put bool
			if l, put = l.put(p); put == there || before.n != n {
				t.Fatalf("put %v, it was there: %v; the list before has %d parts, it had %d", put, there, before.n, n)
			}
			if put {
				want[[2]uint64{p.Round, uint64(p.Task)}] = p
			}
		}
		checkParts(t, l, want)
		var pushed recordedList
		for p := range l.all {
			pushed.push(p)
		}
		if checkParts(t, pushed, want); len(pushed.blocks) != (len(want)+maxBlock-1)/maxBlock {
			t.Fatalf("%d parts, one behind the other, are in %d blocks", len(want), len(pushed.blocks))
		}
		upTo := rapid.Uint64Range(0, 4).Draw(t, "committed")
		l = l.after(upTo)
		maps.DeleteFunc(want, func(at [2]uint64, _ RecordedResult) bool { return at[0] <= upTo })
		checkParts(t, l, want)
	})
}

func checkParts(t *rapid.T, l recordedList, want map[[2]uint64]RecordedResult) {
	sorted := slices.SortedFunc(maps.Values(want), compareRecorded)
	if got := slices.Collect(l.all); !slices.Equal(got, sorted) || l.n != len(sorted) {
		t.Fatalf("%d parts, want %d", len(got), len(sorted))
	}
	for _, b := range l.blocks {
		if len(b) == 0 || len(b) > maxBlock {
			t.Fatalf("a block of %d parts", len(b))
		}
	}
	last, ok := l.last()
	if ok != (len(sorted) > 0) || ok && last != sorted[len(sorted)-1] {
		t.Fatalf("the last is %+v", last)
	}
	round, unit := rapid.Uint64Range(0, 5).Draw(t, "of"), rapid.Uint32Range(0, 3000).Draw(t, "from")
	of := slices.DeleteFunc(slices.Clone(sorted), func(p RecordedResult) bool { return p.Round != round })
	if l.count(round) != len(of) {
		t.Fatalf("%d parts of round %d, want %d", l.count(round), round, len(of))
	}
	of = slices.DeleteFunc(of, func(p RecordedResult) bool { return p.Task < unit })
	if got := slices.Collect(l.from(round, unit)); !slices.Equal(got, of) {
		t.Fatalf("%d parts of round %d from %d on, want %d", len(got), round, unit, len(of))
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one swept late
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// manyCells returns a state with a job of n runs, all of which are recorded, and how many
// bytes the records take.
func manyCells(t testing.TB, n int) (*State, int64) {
	t.Helper()
	m := newMachine(t)
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "a"})
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "many", Manifest: manifest('d')})
	j := m.do(protocol.EntryExperiment, &protocol.ExperimentEntry{Name: "e", Jobs: []protocol.SubmitEntry{{
		Token: "t/0", Name: "e.many", Dataset: "many",
		Job: &round.Job{Algorithm: round.AlgorithmCells, Dataset: manifest('d').Digest(),
			Cells: &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}}, Repeats: n, Folds: 1}},
	}}}).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	before := heap()
	for u := range n {
		sum := sha256.Sum256(fmt.Append(nil, u))
		m.do(protocol.EntryResult, &protocol.ResultEntry{
			Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Task: uint32(u), Of: uint32(n), Digest: hex.EncodeToString(sum[:]),
			Bytes: 4000, Compute: 1e6,
		})
	}
	return m.s, heap() - before
}

// TestManyCells: a run that is recorded takes few bytes of memory and of a snapshot.
func TestManyCells(t *testing.T) {
	const n = 20_000
	s, bytesUsed := manyCells(t, n)
	if each := float64(bytesUsed) / n; each > 78 {
		t.Errorf("a cell takes %.0f bytes of memory", each)
	}
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	if each := float64(b.Len()) / n; each > 75 {
		t.Errorf("a cell takes %.0f bytes of a snapshot", each)
	}
	again := decode(t, b.Bytes())
	if got := again.Jobs()[0].Recorded(1); len(got) != n || got[n-1] != s.Jobs()[0].Recorded(1)[n-1] {
		t.Errorf("%d cells are read again", len(got))
	}
}

// BenchmarkManyCells tells the bytes of 100,000 recorded runs, in memory and in a
// snapshot.
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
