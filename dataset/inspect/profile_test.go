package inspect

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/dataset/read"
)

// gappyProfile is that of rows of numbers of 0 to 1, some of which are missing, with labels from column at up to column
// at+n.
func gappyProfile(rng *rand.Rand, rows, columns, at, n int, gaps float64) *profile {
	p := &profile{rows: rows, columns: make([]ColumnProfile, columns)}
	least, most := 0.0, 1.0
	for i := range p.columns {
		p.columns[i] = ColumnProfile{Column: i, Values: rows, Numbers: rows, Least: &least, Most: &most}
	}
	for range rows {
		row := make([]float64, columns)
		for i := range row {
			if row[i] = float64(rng.IntN(5)) / 4; i >= at && i < at+n {
				row[i] = 1 / float64(n)
			}
			if rng.Float64() < gaps {
				row[i] = numbers.NaN
			}
		}
		p.first = append(p.first, row)
	}
	return p
}

// Labels are the longest run of columns that sum to 1 in each row without gaps.
func TestSumsToOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(36, 8))
	for range 500 {
		rows, columns := 1+rng.IntN(4), 2+rng.IntN(10)
		n := 1 + rng.IntN(columns)
		p := gappyProfile(rng, rows, columns, rng.IntN(columns-n+1), n, 0.2)
		var free []int
		for i := range columns {
			if rng.IntN(8) > 0 {
				free = append(free, i)
			}
		}
		wantFrom, wantTo := 0, 0
		for i := range columns {
			for j := i + 2; j <= columns; j++ {
				all := true
				for k := i; k < j; k++ {
					all = all && slices.Contains(free, k)
				}
				if all && j-i >= wantTo-wantFrom && p.isOne(i, j) {
					wantFrom, wantTo = i, j
				}
			}
		}
		if from, to := p.sumsToOne(free); from != wantFrom || to != wantTo {
			t.Fatalf("%v of %v: %d to %d, want %d to %d", free, p.first, from, to, wantFrom, wantTo)
		}
	}
}

// The time of inspect does not grow with the cube of the columns.
func TestInspectWideWithGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(36, 9))
	const rows, columns = 100, 4000
	var b strings.Builder
	for i := range columns {
		fmt.Fprintf(&b, "x%d,", i)
	}
	b.WriteString("last\n")
	for range rows {
		for range columns {
			if rng.IntN(100) > 0 {
				fmt.Fprintf(&b, "%.3f", rng.Float64())
			}
			b.WriteByte(',')
		}
		b.WriteString("0.5\n")
	}
	path := filepath.Join(t.TempDir(), "wide.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := Inspect(path, read.OpenOptions{}, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("%d columns took %v", columns, took)
	}
}

// Fields that are no numbers cost no texts and errors: a column of dates, or of other texts of digits and marks.
func TestProfileTexts(t *testing.T) {
	for _, field := range []string{"2024-01-31", "31.12.2024", "12:30", "1-2-3", "1.2.3.4", "555-1234", "e10", "no",
		"north", "in", "x"} {
		for _, m := range []numbers.Marks{{}, {Comma: true}, {Thousands: ','}} {
			c := ColumnProfile{whole: true, rises: true, dates: true, seen: map[string]bool{}}
			c.add(field, m)
			if n := testing.AllocsPerRun(100, func() { c.add(field, m) }); n > 1 || c.Numbers > 0 || c.otherwise > 0 {
				t.Errorf("%q as %v: %v allocations, %+v", field, m, n, c)
			}
		}
	}
}

// A number has the same value with a reason and without one.
func TestValueWithoutReason(t *testing.T) {
	fields := []string{"", "-", "1", "+1", "-1", "+-1", "1.5", "1,5", ".5", ",5", "5.", "5,", "1e5", "1e", "1e+5", "1E-05",
		"1e5.5", "1e999", "inf", "-Infinity", "nan", "n", "infinite", "1_0", "0x1", "1,234.5", "1.234,5",
		"1'234", "1 234,5", "1\u00a0234", "12,34,567", "1,23", "1.2.3", "2024-01-31", " 7 ", "\u00a07"}
	others := numbers.Marks{}.Others()
	for _, m := range append(others[:], numbers.Marks{}) {
		for _, field := range fields {
			want, reason := m.Parse(field)
			if got, ok := m.Value(field); ok != (reason == "") || ok && got != want && got == got {
				t.Errorf("%q as %v: %v %v, want %v %q", field, m, got, ok, want, reason)
			}
		}
	}
}
