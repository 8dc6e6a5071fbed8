package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// readAll reads the columns that can be read, each as numbers or, if it has texts or if asText is true, as texts.
func readAll(b []byte, asText bool, most ...int) (f *File, numbers [][]float64, texts [][]string, err error) {
	f, err = Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, nil, err
	}
	width, rows := 0, 0
	var use []Use
	for i, c := range f.Columns {
		width += c.Width
		if c.Kind != Unreadable {
			use = append(use, Use{i, !c.IsNumber() || asText && !c.List})
		}
	}
	r := f.Read(use)
	row, words := make([]float64, width), make([]string, width)
	for {
		if err := r.Next(row, words); errors.Is(err, io.EOF) {
			return f, numbers, texts, nil
		} else if err != nil {
			return f, nil, nil, err
		}
		if rows++; len(most) > 0 && rows > most[0] {
			return f, numbers, texts, nil
		}
		if len(numbers) < 1000 {
			numbers, texts = append(numbers, slices.Clone(row)), append(texts, slices.Clone(words))
		}
	}
}

// TestFilesOfArrow reads the table of testdata/make.py in all encodings and codecs.
func TestFilesOfArrow(t *testing.T) {
	files, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, numbers, texts, err := readAll(b, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var why []string
		for _, c := range f.Columns {
			if c.Kind == Unreadable {
				why = append(why, c.Name+": "+c.Why)
			}
		}
		if got := strings.Join(why, "; "); got != "when: timestamps; ragged: lists of texts" {
			t.Errorf("%s: not read: %s", name, got)
		}
		if len(numbers) != 300 {
			t.Fatalf("%s: %d rows", name, len(numbers))
		}
		missing := func(no bool, v float64) float64 {
			if no {
				return math.NaN()
			}
			return v
		}
		for i, got := range numbers {
			x := float64(i)
			sign := float64(1 - i%2*2)
			want := []float64{x/2 - 20, missing(i%13 == 0, x/4), x / 8, float64(i%100 - 50), missing(i%11 == 0, x*x*sign),
				(x - 7) * 1e15, math.Ldexp(1, 63) + x, missing(i%3 != 0, 1), 0, 0, (x*125 - 500) / 100, x, x + .25, math.NaN(),
				x, missing(i%2 != 0, x/2), 0, math.NaN(), 0}
			if i%3 != 0 {
				want[7] = 0
			}
			for k := range want {
				if got[k] != want[k] && (got[k] == got[k] || want[k] == want[k]) {
					t.Fatalf("%s: row %d, value %d: %v, want %v", name, i, k, got[k], want[k])
				}
			}
			kind := fmt.Sprintf("kind %d", i%5)
			if i%7 == 0 {
				kind = ""
			}
			if texts[i][8] != kind || texts[i][9] != fmt.Sprintf("common prefix %05d", i) {
				t.Fatalf("%s: row %d: texts %q", name, i, texts[i])
			}
		}
		_, _, texts, err = readAll(b, true)
		if err != nil {
			t.Errorf("%s as texts: %v", name, err)
			continue
		}
		want := []string{"-18.5", "0.75", "0.375", "-47", "-9", "-4000000000000000", "9223372036854775811", "True", "kind 3",
			"common prefix 00003", "-1.25", "", "", "", "3", "", "", "", ""}
		if got := texts[3]; !slices.Equal(got, want) {
			t.Errorf("%s as texts: %q, want %q", name, got, want)
		}
	}
}

// sample writes a file of n rows.
func sample(t testing.TB, n int) []byte {
	var b bytes.Buffer
	w := NewWriter(&b, []WriteColumn{{"row", Int}, {"x", Float}, {"y", Double}, {"name", Text}})
	for i := range n {
		w.Int(0, int64(i))
		w.Number(1, float64(i)/4)
		w.Number(2, float64(i)/3)
		w.Text(3, strings.Repeat("é", i%4))
		if err := w.Row(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWritten: what Writer writes is read back, also without rows and in several row groups.
func TestWritten(t *testing.T) {
	for _, n := range []int{0, 1, 9, groupRows + 3} {
		f, numbers, texts, err := readAll(sample(t, n), false)
		if err != nil || f.Rows != int64(n) || n > 0 && len(f.groups) != (n+groupRows-1)/groupRows {
			t.Fatalf("%d rows: %v, %+v", n, err, f)
		}
		for i := range numbers {
			if x := float64(i); numbers[i][0] != x || numbers[i][1] != x/4 || numbers[i][2] != x/3 ||
				texts[i][3] != strings.Repeat("é", i%4) {
				t.Fatalf("row %d: %v, %q", i, numbers[i], texts[i])
			}
		}
	}
}

// TestDamaged: files that are cut or changed are refused or read, and never more than their bytes allow is allocated.
func TestDamaged(t *testing.T) {
	b := sample(t, 200)
	for n := range b {
		if _, _, _, err := readAll(b[:n], false); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	for i := range b {
		for _, x := range []byte{1, 0x80, 0xff} {
			changed := slices.Clone(b)
			changed[i] ^= x
			if _, _, _, err := readAll(changed, false); err != nil && !errors.Is(err, ErrFormat) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

// TestClaims: a footer that claims 2^31 row groups, and pages that claim to unpack to 2 GiB, allocate nothing for it.
func TestClaims(t *testing.T) {
	w := thriftWriter{}
	w.begin()
	w.list(2, thriftStruct, math.MaxInt32)
	w.end()
	b := slices.Concat([]byte(magic), w.b, []byte{byte(len(w.b)), 0, 0, 0}, []byte(magic))
	allocs.AtMost(t, 1<<20, "a footer", func() {
		if _, _, _, err := readAll(b, false); !errors.Is(err, ErrFormat) {
			t.Error(err)
		}
	})
	for codec := range int32(8) {
		allocs.AtMost(t, 1<<25, "a page", func() {
			if out, err := new(unpacker).unpack(codec, nil, []byte("\xff\xff\xff\xff\x07abcdefgh"), math.MaxInt32); err == nil {
				t.Errorf("codec %d: %d bytes", codec, len(out))
			}
		})
	}
}

// FuzzRead: a file is read or refused, in proportion to its size.
func FuzzRead(f *testing.F) {
	f.Add(sample(f, 20), false)
	files, _ := filepath.Glob("testdata/*.parquet")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, asText bool) {
		if len(b) > 1<<17 {
			return
		}
		allocs.AtMost(t, 512*len(b)+768<<20, "a Parquet file", func() {
			_, _, _, err := readAll(b, asText, 1000)
			if err != nil && !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
		})
	})
}
