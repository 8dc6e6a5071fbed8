package ldlboost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/dataset"
)

// TestBetween: no float32 lies between neighbours, so the cut is the upper one.
func TestBetween(t *testing.T) {
	low, high := float32(1), math.Float32frombits(math.Float32bits(1)+1)
	if got := between(low, high); got != high {
		t.Errorf("between neighbours: %v", got)
	}
}

// binsOf encodes columns that each have the cuts 1, 2, ..., cuts.
func binsOf(columns, cuts int) []byte {
	b := new(binning.Bins)
	for i := range columns {
		c := binning.Column{Feature: uint32(i), Sparse: i%2 == 1}
		for k := range cuts {
			c.Cuts = append(c.Cuts, float32(k+1))
		}
		b.Add(c)
	}
	return appendBins(nil, b)
}

// TestImpossibleBins: bins that the samples cannot have are refused.
func TestImpossibleBins(t *testing.T) {
	few := &dataset.Manifest{Rows: 4, Features: 3, Labels: 2}
	sparse := &dataset.Manifest{Rows: 100, Features: 3, Labels: 2, NonZeros: 5}
	for name, c := range map[string]struct {
		m    *dataset.Manifest
		b    []byte
		good bool
	}{
		"as many as samples allow":   {few, binsOf(3, 4), true},
		"more than samples":          {few, binsOf(3, 5), false},
		"as many as values allow":    {sparse, binsOf(2, 3), true},
		"more than values":           {sparse, binsOf(3, 3), false},
		"more features than data":    {few, binsOf(4, 1), false},
		"a number of cuts too great": {few, binary.LittleEndian.AppendUint32(binsOf(3, 1)[:8], math.MaxUint32), false},
	} {
		if _, err := decodeBins(c.b, c.m, 255); (err == nil) != c.good || err != nil && !errors.Is(err, binning.ErrBins) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzDecodeBins: bytes are refused, or are the bins that they encode, which the samples can have.
func FuzzDecodeBins(f *testing.F) {
	f.Add(binsOf(3, 2), uint16(10), uint16(0))
	f.Add(binsOf(2, 9), uint16(5), uint16(7))
	f.Fuzz(func(t *testing.T, b []byte, rows, nonZeros uint16) {
		m := &dataset.Manifest{Rows: 1 + int(rows), Features: 5, Labels: 2, NonZeros: int64(nonZeros)}
		bins, err := decodeBins(b, m, 9)
		if err != nil {
			if !errors.Is(err, binning.ErrBins) {
				t.Fatal(err)
			}
			return
		}
		if int64(bins.All) > binning.AtMost(m, 9) {
			t.Fatalf("%d bins of at most %d", bins.All, binning.AtMost(m, 9))
		}
		if again := appendBins(nil, bins); !bytes.Equal(again, b) {
			t.Fatalf("bins %x were %x", again, b)
		}
	})
}
