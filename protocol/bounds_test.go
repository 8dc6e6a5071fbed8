package protocol

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
)

// TestBounds: what exceeds a stated bound is refused though the bytes are there.
func TestBounds(t *testing.T) {
	run := func(change func(*Run)) []byte {
		m := Run{Of: 4, Tasks: []uint32{1}}
		change(&m)
		return m.Append(nil)
	}
	stamp := raw(make([]byte, 24))
	refs := raw(bytes.Repeat(make([]byte, 10), MaxVars+1))
	numbers := func(sizes ...int) []byte {
		f := []any{KindPartial, stamp, "w", byte(0), uint32(0), uint64(0), uint32(0)}
		for _, n := range sizes {
			f = append(f, make([]byte, n))
		}
		return box(f...)
	}
	part := func() message { return &Partial{Partial: new(round.Partial)} }
	commit := func(e CommitEntry) []byte { return e.Append(nil) }
	for _, c := range []struct {
		what string
		into message
		b    []byte
	}{
		{"a unit beyond the round", new(Run), run(func(m *Run) { m.Tasks[0] = 4 })},
		{"a round without units", new(Run), run(func(m *Run) { m.Of, m.Tasks = 0, nil })},
		{"too many units", new(Run), run(func(m *Run) { m.Of = MaxTasks + 1 })},
		{"a long kind", new(Run), run(func(m *Run) { m.Kind = strings.Repeat("x", round.MaxKind+1) })},
		{"a kind that is no word", new(Run), run(func(m *Run) { m.Kind = "\xff" })},
		{"an unknown scope", new(Run), run(func(m *Run) { m.Scope = round.None + 1 })},
		{"an unknown combination", new(Run), run(func(m *Run) { m.How = round.Gather + 1 })},
		{"a huge float64 shape", new(Run), run(func(m *Run) { m.Shape.F64 = MaxMessage/8 + 1 })},
		{"a huge float32 shape", new(Run), run(func(m *Run) { m.Shape.F32 = MaxMessage/4 + 1 })},
		{"a huge number of rows", new(Run), run(func(m *Run) { m.Shape.Rows = MaxMessage/4 + 1 })},
		{"a huge width", new(Run), run(func(m *Run) { m.Shape.Width = MaxMessage/4 + 1 })},
		{"too many values", new(Run), box(KindRun, stamp, "step", raw(make([]byte, 4)), byte(0), uint32(4), raw(make([]byte, 24+16)), byte(MaxVars+1), refs, uint32(0))},
		{"a flag of 2", new(Run), box(KindRun, stamp, "step", raw(make([]byte, 4)), byte(2), uint32(4), raw(make([]byte, 24+16)), byte(0), uint32(0))},
		{"more units than bytes", new(Run), box(KindRun, stamp, "step", raw(make([]byte, 5)), uint32(4), raw(make([]byte, 24+16)), byte(0), uint32(MaxTasks))},
		{"too many values", new(Need), box(KindNeed, stamp, "w", byte(0), byte(MaxVars+1), refs)},
		{"a flag of 2", new(Need), box(KindNeed, stamp, "w", byte(2), byte(0))},
		{"an unknown kind of failure", new(Fail), box(KindFail, stamp, "w", uint32(0), byte(8), "")},
		{"a long worker", new(Result), (&Result{Worker: strings.Repeat("w", MaxText+1)}).Append(nil)},
		{"a long digest", new(Result), (&Result{Digest: strings.Repeat("0", 65)}).Append(nil)},
		{"half a float64", part(), numbers(9, 0, 0, 0)},
		{"half a float32", part(), numbers(0, 5, 0, 0)},
		{"half a row number", part(), numbers(0, 0, 3, 0)},
		{"half a value", part(), numbers(0, 0, 0, 6)},
		{"bytes that are not there", new(Value), box(KindValue, raw(make([]byte, 26)), uint64(math.MaxUint64))},
		{"a count that no float64 holds", new(Progress), (&Progress{Done: Work{Samples: MaxCount + 1}}).Append(nil)},
		{"too many steps", new(Progress), (&Progress{Steps: MaxCount + 1}).Append(nil)},
		{"a loss that is no number", new(Progress), (&Progress{Loss: math.NaN()}).Append(nil)},
		{"an infinite loss", new(Progress), (&Progress{Loss: math.Inf(1)}).Append(nil)},
		{"a long piece", new(BlobGet), (&BlobGet{Length: BlobChunk + 1}).Append(nil)},
		{"neither found, nor missing, nor unreadable", new(BlobData), box(KindBlobData, byte(3), uint64(0), []byte{})},
		{"a huge message", new(Fragment), (&Fragment{Total: MaxMessage + 1}).Append(nil)},
		{"data past the end", new(Fragment), (&Fragment{Offset: 2, Total: 3, Data: []byte{1, 2}}).Append(nil)},
		{"an offset that wraps", new(Fragment), (&Fragment{Offset: math.MaxUint64, Total: 3, Data: []byte{1, 2}}).Append(nil)},
		{"a huge state", new(CommitEntry), commit(CommitEntry{Total: MaxRaftState + 1})},
		{"data past the end", new(CommitEntry), commit(CommitEntry{Offset: 2, Total: 3, Data: []byte{1, 2}})},
		{"an offset that wraps", new(CommitEntry), commit(CommitEntry{Offset: math.MaxUint64, Total: 3, Data: []byte{1, 2}})},
		{"a long piece", new(CommitEntry), commit(CommitEntry{Total: MaxRaftState, Data: make([]byte, CommitChunk+1)})},
		{"a long progress", new(CommitEntry), commit(CommitEntry{Total: 1, Data: []byte{1}, Progress: make([]byte, MaxProgress+1)})},
		{"a long curve", new(CommitEntry), commit(CommitEntry{Total: 1, Data: []byte{1}, Curve: make([]byte, MaxCurve+1)})},
		{"a blob and bytes", new(CommitEntry), commit(CommitEntry{Total: 9, Data: []byte{1}, Blob: sampleText})},
		{"a blob at an offset", new(CommitEntry), commit(CommitEntry{Total: 9, Offset: 1, Blob: sampleText})},
	} {
		if err := c.into.Decode(c.b); !errors.Is(err, ErrMessage) {
			t.Errorf("%T with %s: error %v", c.into, c.what, err)
		}
	}
}

// TestGreatestSizes: the sizes that the declarations state hold for messages that
// go to their bounds.
func TestGreatestSizes(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	refs := make([]Ref, MaxVars)
	units := make([]uint32, 1000)
	for _, c := range []struct {
		m    message
		most int
	}{
		{&Run{Kind: long[:round.MaxKind], Of: MaxTasks, Tasks: units, Refs: refs}, 160 + 10*MaxVars + 4*len(units)},
		{&Result{Worker: long, Digest: sampleText}, 64<<10 + 200},
		{&Progress{Worker: long}, 64<<10 + 200},
		{&Need{Worker: long, Refs: refs}, 64<<10 + 1<<10},
		{&Fail{Worker: long, Reason: long + long}, 128<<10 + 100},
		{&BlobData{Data: make([]byte, BlobChunk)}, BlobChunk + 32},
		{&CommitEntry{Total: MaxRaftState, Progress: make([]byte, MaxProgress), Curve: make([]byte, MaxCurve), Data: make([]byte, CommitChunk)}, 512 << 10},
		{&CommitEntry{Total: MaxRaftState, Blob: sampleText, Progress: make([]byte, MaxProgress), Curve: make([]byte, MaxCurve)}, 512 << 10},
	} {
		b := c.m.Append(nil)
		if len(b) > c.most {
			t.Errorf("%T takes %d bytes, at most %d are stated", c.m, len(b), c.most)
		}
		if err := c.m.Decode(b); err != nil {
			t.Errorf("%T at its bounds: %v", c.m, err)
		}
	}
}

// TestProgrammersMistakesPanic names the package.
func TestProgrammersMistakesPanic(t *testing.T) {
	for what, f := range map[string]func(){
		"too many values of a Run":  func() { (&Run{Refs: make([]Ref, MaxVars+1)}).Append(nil) },
		"too many values of a Need": func() { (&Need{Refs: make([]Ref, 256)}).Append(nil) },
		"no room in a fragment":     func() { Split([][]byte{make([]byte, 100)}, fragmentHead, 1, 1, func([]byte) error { return nil }) },
		"a body that is no JSON":    func() { EncodeEntry(EntryLead, func() {}) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "protocol: ") {
					t.Errorf("%s: panic %q", what, text)
				}
			}()
			f()
		}()
	}
}

// TestHotMessagesDoNotAllocate: what is sent in every round is encoded and decoded
// in memory that is there, however its numbers are aligned.
func TestHotMessagesDoNotAllocate(t *testing.T) {
	run := &Run{Kind: "step", Of: 16, Refs: []Ref{{1, 2}, {3, 4}}, Tasks: []uint32{1, 2, 3}}
	value := &Value{Data: make([]byte, 1000)}
	partial := &round.Partial{F64: make([]float64, 9), F32: make([]float32, 9), Index: make([]uint32, 3), Values: make([]float32, 6), Width: 2}
	part := &Partial{Worker: "w1", Partial: partial}
	for _, into := range []message{new(Run), new(Value)} {
		var m message = run
		if _, ok := into.(*Value); ok {
			m = value
		}
		buf := m.Append(nil)
		if n := testing.AllocsPerRun(50, func() {
			buf = m.Append(buf[:0])
			if err := into.Decode(buf); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%T: %v allocations, want none", m, n)
		}
	}
	for shift := range 8 {
		buf := part.Append(make([]byte, shift))[shift:]
		into := &Partial{Partial: new(round.Partial)}
		if n := testing.AllocsPerRun(50, func() {
			if err := into.Decode(buf); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("Part at offset %d: %v allocations, want none", shift, n)
		}
	}
}

// TestACurveFitsInItsField: the longest learning curve that is encoded is one that an entry
// takes, and there is no room for what is none.
func TestACurveFitsInItsField(t *testing.T) {
	if curve.MaxBytes != MaxCurve {
		t.Errorf("a curve has at most %d bytes, an entry's field %d", curve.MaxBytes, MaxCurve)
	}
}
