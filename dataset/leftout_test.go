package dataset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLeftOut: a list of rows is read as it was written.
func TestLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 1<<32-1).Draw(t, "rows")
		want := rapid.SliceOfDistinct(rapid.IntRange(0, rows-1), rapid.ID[int]).Draw(t, "left out")
		slices.Sort(want)
		var l LeftOut
		last := -1
		for _, row := range want {
			l.Add(last, row)
			last = row
		}
		if got, err := l.Rows(rows); !slices.Equal(got, want) || err != nil || l.Count() != len(want) {
			t.Fatalf("%v, error %v, want %v", got, err, want)
		}
		if _, err := l.Rows(last); len(want) > 0 && err == nil {
			t.Fatalf("row %d of %d", last, last)
		}
	})
}

// FuzzLeftOut: a list in a manifest has ascending rows, or is refused.
func FuzzLeftOut(f *testing.F) {
	f.Add([]byte{1, 1, 0x80, 1}, 300)
	f.Add([]byte{0}, 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1<<32-1)
	f.Fuzz(func(t *testing.T, b []byte, rows int) {
		all, err := LeftOut(b).Rows(rows)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Error(err)
			}
			return
		}
		var again LeftOut
		last := -1
		for _, row := range all {
			if row <= last || row >= rows {
				t.Fatalf("%v of %d rows", all, rows)
			}
			again.Add(last, row)
			last = row
		}
		if got, err := again.Rows(rows); err != nil || !slices.Equal(got, all) || again.Count() != len(all) {
			t.Fatalf("%v, then %v (error %v)", all, got, err)
		}
	})
}

// TestFileRows: rows that are left out shift no number of the others in the file, and make
// another dataset of the same content.
func TestFileRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, last := &Manifest{}, -1
		var kept []uint32
		for row, out := range rapid.SliceOfN(rapid.Bool(), 1, 50).Draw(t, "left out") {
			if out {
				m.LeftOut.Add(last, row)
				last = row
			} else {
				kept = append(kept, uint32(row))
			}
		}
		m.Rows = len(kept)
		rows := make([]uint32, m.Rows)
		for i := range rows {
			rows[i] = uint32(i)
		}
		if err := m.ToFile(rows); err != nil || !slices.Equal(rows, kept) {
			t.Fatalf("%v, not %v: %v", rows, kept, err)
		}
		if err := m.ToFile([]uint32{uint32(m.Rows)}); !errors.Is(err, ErrFormat) {
			t.Fatalf("row %d of %d: %v", m.Rows, m.Rows, err)
		}
		if all := (&Manifest{Rows: m.Rows}); (m.SameRows(all) == nil) != (last < 0) || m.SameRows(m) != nil {
			t.Fatalf("%v", m.SameRows(all))
		}
	})
}

func TestParseMissing(t *testing.T) {
	for s, want := range map[string]Missing{
		"": {}, "refuse": {}, "drop": {Drop: true}, "0": {Fill: true}, "-1.5": {Fill: true, Value: -1.5},
		"mean": {By: FillMean}, "median": {By: FillMedian},
	} {
		got, err := ParseMissing(s)
		if got != want || err != nil {
			t.Errorf("%q: %+v, error %v", s, got, err)
		}
		if again, err := ParseMissing(got.String()); again != want || err != nil {
			t.Errorf("%q: written as %q, read as %+v", s, got, again)
		}
	}
	for _, s := range []string{"mode", "nan", "inf", "1e99"} {
		_, err := ParseMissing(s)
		if err == nil || !strings.Contains(err.Error(), s) ||
			!strings.Contains(err.Error(), "refuse, drop, mean, median or a number") {
			t.Error(err)
		}
	}
}
