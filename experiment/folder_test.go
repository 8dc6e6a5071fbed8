package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

func recordOf(n int, why string) *Record {
	return &Record{Key: strings.Repeat(fmt.Sprint(n), 64), Seconds: float64(n), Outcome: &pipeline.Outcome{Error: why,
		Steps: uint64(n)}}
}

func put(t *testing.T, dir string, records ...*Record) {
	t.Helper()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := f.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func recorded(t *testing.T, dir string) map[string]*Record {
	t.Helper()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Records()
}

// TestTornRecord: wherever a crash cuts the file off, all records before the cut stay, and the
// next ones follow them.
func TestTornRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	put(t, dir, recordOf(1, ""), recordOf(2, ""))
	path := filepath.Join(dir, runsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for _, cut := range []int{0, 1, first - 1, first, first + 1, first + 20, len(whole) - 1} {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		put(t, dir, recordOf(3, ""))
		records, want := recorded(t, dir), 1
		if cut >= first {
			want = 2
		}
		if len(records) != want || records[recordOf(3, "").Key] == nil {
			t.Errorf("cut at %d: %d records", cut, len(records))
		}
	}
}

// TestFailedWrite: records follow each other also where a write between them has failed halfway.
func TestFailedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long, _ := encodeRecord(recordOf(2, strings.Repeat("why ", 50)))
	if err := f.Put(recordOf(1, "")); err != nil {
		t.Fatal(err)
	}
	for _, piece := range [][]byte{long[:20], long[:len(long)-1], long} {
		if _, err := f.file.WriteAt(piece, f.end); err != nil { // as far as the disk had room
			t.Fatal(err)
		}
		if err := f.Put(recordOf(3, "")); err != nil {
			t.Fatal(err)
		}
		if err := f.Put(recordOf(4, "")); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, runsFile))
		if err != nil {
			t.Fatal(err)
		}
		if records, _, _, err := readRecords(bytes.NewReader(b)); err != nil || len(records) != 3 {
			t.Errorf("%d records, error %v", len(records), err)
		}
	}
}

// TestNoLock: a folder that cannot be written to is not taken for one that another process has.
func TestNoLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, lockFile), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err == nil || strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
}

// TestFolder: a later record replaces an earlier one; models are files; one process at a time;
// damage and strangers' folders are refused.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	model := recordOf(2, "")
	model.Outcome.Model, model.Outcome.ModelDigest = []byte("model"), "abc"
	put(t, dir, recordOf(1, "failed"), model, recordOf(1, ""))
	records := recorded(t, dir)
	if len(records) != 2 || records[recordOf(1, "").Key].Outcome.Error != "" || records[model.Key].Seconds != 2 {
		t.Errorf("%v", records)
	}
	if b, err := os.ReadFile(filepath.Join(dir, modelsDir, "abc.model")); string(b) != "model" {
		t.Errorf("model %q, error %v", b, err)
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	f.Close()
	path := filepath.Join(dir, runsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[30] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFolder(dir); err != nil || len(f.Records()) != 2 || !slices.Equal(f.Damaged, []int{1}) {
		t.Fatalf("damaged: %+v, %v", f, err)
	}
	if err := errors.Join(f.Put(recordOf(3, "")), f.Close()); err != nil {
		t.Fatal(err)
	}
	if records := recorded(t, dir); len(records) != 3 {
		t.Errorf("%d records behind the damaged line, want 3", len(records))
	}
	if err := os.WriteFile(path, []byte("no record\nnor this\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); !errors.Is(err, ErrFolder) ||
		!strings.Contains(err.Error(), "none of the 2 lines is a record of a run; move the file away") {
		t.Errorf("no line is a record: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(other); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder of somebody else: %v", err)
	}
}

// FuzzRecords: whatever is in the file, records that were read are written to bytes that are
// read again.
func FuzzRecords(f *testing.F) {
	one, _ := encodeRecord(recordOf(1, "why"))
	two, _ := encodeRecord(recordOf(2, ""))
	f.Add(append(one, two...))
	f.Add(append(one, two[:9]...))
	f.Add([]byte("00000000 \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var records map[string]*Record
		var end int64
		var err error
		allocs.AtMost(t, 128*len(b)+256<<10, "records", func() { records, end, _, err = readRecords(bytes.NewReader(b)) })
		if err != nil {
			if !errors.Is(err, ErrFolder) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if end < 0 || end > int64(len(b)) {
			t.Fatalf("the records end at %d of %d", end, len(b))
		}
		for _, r := range records {
			line, err := encodeRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			if again, _, _, err := readRecords(bytes.NewReader(line)); err != nil || again[r.Key] == nil {
				t.Fatalf("%q is not read again: %v", line, err)
			}
		}
	})
}

// FuzzLayout: a layout is one whose runs have keys, or an error.
func FuzzLayout(f *testing.F) {
	f.Add([]byte(`{"table":{"name":"a","datasets":[],"rows":[],"measures":[],"cells":[]},"keys":[]}`))
	f.Add([]byte(`{"keys":["a"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeLayout(b)
		if err != nil {
			return
		}
		l.Fill(nil)
	})
}

// FuzzJobSpec: what a job keeps of an experiment is read, or refused, and then its runs are.
func FuzzJobSpec(f *testing.F) {
	f.Add([]byte(`{"dataset":"d","rows":["a","b"],"tested":["x"]}`))
	f.Add([]byte(`{"dataset":"d","rows":["a"]}`))
	j := &round.Job{Algorithm: round.AlgorithmCells, Split: dataset.Split{Folds: 2, Overlap: true},
		Cells: &round.Cells{Rows: []round.CellRow{{Algorithm: "rf"}}, Repeats: 1, Folds: 2}}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeJobSpec(b)
		if err != nil {
			if !errors.Is(err, ErrFolder) {
				t.Fatalf("error %v", err)
			}
			return
		}
		of := &ClusterJob{&protocol.JobInfo{Name: "n", Job: j}, s}
		cells, err := of.Runs()
		if good := len(s.Methods) == 1 && len(s.Tested) == 2; good != (err == nil) || err == nil &&
			(len(cells) != 2 || of.NameOf(&cells[1]).Method != s.Methods[0]) {
			t.Fatalf("%d runs, error %v", len(cells), err)
		}
	})
}

// FuzzOutline: an outline makes a layout of at most a million runs, or an error.
func FuzzOutline(f *testing.F) {
	s, p := planned(f, "name: a\ndatasets: [b]\nmethods: [ranking, rf]\nfolds: {sklearn: 3, repeats: 2, seed: 1}")
	b, err := json.Marshal(NewOutline(s, []*Plan{p}, []string{"x"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(
		[]byte(
			`{"table":{"name":"a","datasets":[{"name":"d","folds":2}],"rows":[{"name":"r"}],"measures":["kl"],"cells":[]},"sets":[{"repeats":3,"refused":{"0":"why"}}]}`))
	f.Add([]byte(`{"table":{"datasets":[{"folds":1000000}],"rows":[{},{}]},"sets":[{"repeats":1000000}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := DecodeOutline(b)
		if err != nil {
			if !errors.Is(err, ErrFolder) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if _, err := o.Runs(); err == nil && tooMany(o) { // it is lawful, and takes long
			return
		}
		if l, err := o.Layout(); err == nil && len(l.Keys) != len(l.Table.Runs) {
			t.Fatalf("%d keys of %d runs", len(l.Keys), len(l.Table.Runs))
		}
	})
}

func tooMany(o *Outline) bool {
	cells := 0
	for i, set := range o.Sets {
		cells += max(0, set.Repeats) * max(0, o.Table.Datasets[i].Folds) * len(o.Table.Methods)
		if set.Job != nil && set.Job.Cells != nil {
			cells += max(0, set.Job.Cells.Repeats) * max(0, set.Job.Cells.Folds) * len(set.Job.Cells.Rows)
		}
	}
	return cells > 1<<12
}
