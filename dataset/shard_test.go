package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

func denseRows() *Rows {
	return &Rows{
		N: 3, Features: 2, Labels: 2,
		X: []float32{1, -2, 0, 0.5, 3, 4}, D: []float32{1, 0, 0.25, 0.75, 0.5, 0.5}, Row: []uint32{7, 0, 2},
	}
}

func sparseRows() *Rows {
	return &Rows{
		N: 3, Features: 10, Labels: 1, Sparse: true,
		X: []float32{1, -2, 8}, Index: []uint32{3, 9, 0}, Start: []uint32{0, 2, 2, 3},
		D: []float32{1, 1, 1}, Row: []uint32{2, 1, 0},
	}
}

// numberedRows have exact numbers and intervals.
func numberedRows() *Rows {
	r := denseRows()
	r.Value, r.Interval = []float64{1.5, -2, 1e300}, []float64{1, 2, -2, -2, 0, 1e308}
	return r
}

// weightedRows have exact numbers and weights.
func weightedRows() *Rows {
	r := denseRows()
	r.Value, r.Weight = []float64{1.5, -2, 1e300}, []float64{0, 2.5, MaxWeight}
	return r
}

// The section of weights follows all others. Weights that no row can have are refused.
func TestWeightedShard(t *testing.T) {
	b := EncodeShard(weightedRows(), nil)
	if plain := EncodeShard(numberedRows(), nil); b[12] != 1<<2|1<<5 || len(b) != len(plain)-24 {
		t.Errorf("the shard has the flags %d and %d bytes", b[12], len(b))
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), 2 * MaxWeight} {
		bad := bytes.Clone(b)
		binary.LittleEndian.PutUint64(bad[len(bad)-8:], math.Float64bits(w))
		if _, err := DecodeShard(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("weight %v: error %v", w, err)
		}
	}
}

func TestShardRoundTrip(t *testing.T) {
	for name, r := range map[string]*Rows{"dense": denseRows(), "sparse": sparseRows(), "numbered": numberedRows(),
		"weighted": weightedRows()} {
		for _, names := range [][]string{nil, {"", "b", "Zoë"}} {
			b := EncodeShard(r, names)
			for shift := range 2 { // aligned, then not
				in := append(make([]byte, shift), b...)[shift:]
				got, err := DecodeShard(in)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want := *r
				want.SetNames(names)
				if d := cmp.Diff(&want, got, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s, shift %d: %s", name, shift, d)
				}
				if d := cmp.Diff(names, allNames(got)); d != "" {
					t.Errorf("%s: names: %s", name, d)
				}
			}
		}
	}
}

func TestShardIsNotCopied(t *testing.T) {
	if !littleEndian {
		t.Skip("only little-endian machines read shards in place")
	}
	b := EncodeShard(denseRows(), nil)
	r, err := DecodeShard(b)
	if err != nil {
		t.Fatal(err)
	}
	b[64] = 99
	if r.Row[0] != 99 {
		t.Error("an aligned shard was copied")
	}
}

// The bytes of version 1 can never change: digests of datasets hang on them.
func TestShardGoldenBytes(t *testing.T) {
	want := strings.Join([]string{
		"434f505348415244", "01000000", "03000000", "03000000", "0a000000", "01000000", "00000000",
		"0300000000000000", "0300000000000000", "a800000000000000", "0000000000000000",
		"020000000100000000000000", "00000000", // row numbers
		"0000803f0000803f0000803f", "00000000", // labels
		"0000803f000000c000000041", "00000000", // values
		"030000000900000000000000", "00000000", // columns
		"00000000020000000200000003000000",     // starts
		"010000000100000003000000", "00000000", // ends of names
		"616263", "0000000000", // names
	}, "")
	if got := hex.EncodeToString(EncodeShard(sparseRows(), []string{"a", "", "bc"})); got != want {
		t.Errorf("encoded\n%s, want\n%s", got, want)
	}
}

func TestDecodeShardRefusesDamage(t *testing.T) {
	for _, r := range []*Rows{denseRows(), sparseRows()} {
		b := EncodeShard(r, []string{"x", "yy", ""})
		for n := range len(b) {
			if _, err := DecodeShard(b[:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("%d of %d bytes: %v", n, len(b), err)
			}
		}
		for i := range shardHeader {
			for bit := range 8 {
				bad := bytes.Clone(b)
				bad[i] ^= 1 << bit
				checkDecoded(t, bad)
			}
		}
	}
	const index, start = 64 + 3*16, 64 + 4*16 // of sparseRows
	for name, change := range map[string]map[int]byte{
		"equal columns":      {index + 4: 3},
		"descending columns": {index + 4: 2},
		"far column":         {index + 4: 10},
		"far start":          {start + 4: 9, start + 8: 9},
		"descending starts":  {start + 4: 2, start + 8: 1},
		"first start":        {start: 1},
		"last start":         {start + 12: 2},
		"padding":            {64 + 12: 1},
	} {
		bad := EncodeShard(sparseRows(), nil)
		for i, v := range change {
			bad[i] = v
		}
		if _, err := DecodeShard(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkDecoded checks that b is refused, or decodes to what encodes to b again.
func checkDecoded(t *testing.T, b []byte) {
	t.Helper()
	var r *Rows
	var err error
	allocs.AtMost(t, 16*len(b)+64<<10, "a shard", func() { r, err = DecodeShard(b) })
	if err != nil {
		if !errors.Is(err, ErrFormat) {
			t.Fatalf("not ErrFormat: %v", err)
		}
		return
	}
	if r.N > 0 {
		r.Label(r.N - 1)
		if r.Sparse {
			r.NonZeros(r.N - 1)
		} else {
			r.Dense(r.N - 1)
		}
	}
	if !bytes.Equal(EncodeShard(r, allNames(r)), b) {
		t.Fatal("decoded rows encode to other bytes")
	}
}

// The sections of exact numbers and intervals follow all others.
func TestNumberedShardGoldenBytes(t *testing.T) {
	r := &Rows{N: 1, Features: 1, Labels: 2, X: []float32{1}, D: []float32{1, 0}, Row: []uint32{0}, Value: []float64{1.5},
		Interval: []float64{1, 2}}
	want := strings.Join([]string{
		"434f505348415244", "01000000", "0c000000", "01000000", "01000000", "02000000", "00000000",
		"0100000000000000", "0000000000000000", "7000000000000000", "0000000000000000",
		"0000000000000000", "0000803f00000000", "0000803f00000000", // row number, labels, value
		"000000000000f83f", "000000000000f03f0000000000000040", // exact number, interval
	}, "")
	if got := hex.EncodeToString(EncodeShard(r, nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, v := range []string{"f0ff", "f87f"} { // -Inf, NaN
		b := EncodeShard(r, nil)
		bad, _ := hex.DecodeString(v)
		copy(b[len(b)-18:], bad)
		if _, err := DecodeShard(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v", v, err)
		}
	}
	b := EncodeShard(r, nil)
	copy(b[len(b)-8:], b[len(b)-40:]) // the interval ends at 0
	if _, err := DecodeShard(b); !errors.Is(err, ErrFormat) {
		t.Errorf("a turned interval: error %v", err)
	}
}

func FuzzDecodeShard(f *testing.F) {
	f.Add(EncodeShard(denseRows(), nil))
	f.Add(EncodeShard(sparseRows(), []string{"a", "", "bc"}))
	f.Add(EncodeShard(numberedRows(), nil))
	f.Add(EncodeShard(numberedRows(), []string{"a", "", "bc"}))
	f.Add(EncodeShard(weightedRows(), []string{"a", "", "bc"}))
	f.Fuzz(func(t *testing.T, b []byte) { checkDecoded(t, b) })
}

func TestEncodeShardPanicsOnMisshapenRows(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("no panic")
		}
	}()
	r := denseRows()
	r.X = r.X[1:]
	EncodeShard(r, nil)
}

func TestOpenShardFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shard")
	for _, r := range []*Rows{denseRows(), sparseRows()} {
		if err := os.WriteFile(path, EncodeShard(r, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		got, closeFile, err := OpenShardFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, got, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
		if err := closeFile(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenShardFileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := OpenShardFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	for _, content := range []string{"", "short", strings.Repeat("x", 100)} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenShardFile(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// allNames returns the names of all rows; nil: they have none.
func allNames(r *Rows) (names []string) {
	for i := 0; r.Named() && i < r.N; i++ {
		names = append(names, r.Name(i))
	}
	return names
}
