package ldlboost

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestVectors: the vector instructions give the bits of the portable loops.
func TestVectors(t *testing.T) {
	if !num.Accelerated {
		t.Skip("this build or processor has no vector instructions")
	}
	rapid.Check(t, checkVectors)
}

func checkVectors(t *rapid.T) {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	stride := vectorWords * rapid.IntRange(1, 15).Draw(t, "vectors")
	total := rapid.IntRange(1, 60).Draw(t, "samples")
	dense := rapid.IntRange(1, 9).Draw(t, "columns")
	words, codes := make([]int64, total*stride), make([]uint8, total*dense)
	for i := range words {
		words[i] = int64(s.Uint64n(math.MaxUint64))
	}
	for i := range codes {
		codes[i] = uint8(s.Uint64n(256))
	}
	var rows, at, first []uint32
	for range rapid.IntRange(0, 50).Draw(t, "added") {
		rows = append(rows, uint32(s.Uint64n(uint64(total))))
	}
	for i := range dense {
		if s.Uint64n(3) > 0 {
			at, first = append(at, uint32(i)), append(first, uint32(256*len(at)))
		}
	}
	block := make([]int64, 256*stride*max(1, len(at))+1) // a number behind it
	want := slices.Clone(block)
	addBins(block, words, stride, codes, dense, rows, at, first)
	addBinsGo(want, words, stride, codes, dense, rows, at, first)
	if !slices.Equal(block, want) {
		t.Fatal("other sums of dense columns")
	}
	var list []uint32
	start, to := []uint32{0}, make([]int32, 20)
	for i := range to {
		to[i] = int32(s.Uint64n(12)) - 1
	}
	for range total {
		for range s.Uint64n(4) {
			list = append(list, uint32(s.Uint64n(20)))
		}
		start = append(start, uint32(len(list)))
	}
	addLists(block, words, stride, list, start, to, rows)
	addListsGo(want, words, stride, list, start, to, rows)
	if !slices.Equal(block, want) {
		t.Fatal("other sums of sparse columns")
	}
	sums := make([]float64, 2*stride-int(s.Uint64n(8)))
	for i := range sums {
		sums[i] = float64(s.Uint64n(1 << 50))
	}
	unpacked := slices.Clone(sums)
	unpack(sums, block[:stride])
	unpackGo(unpacked, block[:stride])
	if !slices.Equal(sums, unpacked) {
		t.Fatalf("sums %v, want %v", sums, unpacked)
	}
	checkNarrow(t, s, block, stride)
	labels, hessian := rapid.IntRange(1, 23).Draw(t, "labels"), rapid.SampledFrom([]string{hessianDiagonal, hessianBound})
	checkScan(t, s, labels, &Config{Hessian: hessian.Draw(t, "hessian"), L2: 0.7}, rapid.Bool().Draw(t, "weighted"))
}

// checkNarrow holds unpackNarrow and widen against their loops, given words of bins: they write no number behind
// the sums.
func checkNarrow(t *rapid.T, s *num.Stream, words []int64, stride int) {
	width := 2*stride - int(s.Uint64n(8))
	bins := int(s.Uint64n(uint64(min(9, len(words)/stride)))) + 1
	words = slices.Clone(words[:bins*stride])
	for bin := range bins {
		own := words[bin*stride:][:stride]
		if clear(own[(width+1)/2:]); width%2 == 1 {
			own[width/2] = int64(int32(own[width/2]))
		}
		if s.Uint64n(3) == 0 {
			clear(own)
		}
	}
	sums := make([]int32, bins*width+1)
	for i := range sums {
		sums[i] = int32(s.Uint64n(math.MaxUint32))
	}
	wantWords, want := slices.Clone(words), slices.Clone(sums)
	unpackNarrow(sums[:bins*width], words, width, stride)
	unpackNarrowGo(want[:bins*width], wantWords, width, stride)
	if !slices.Equal(sums, want) || !slices.Equal(words, wantWords) {
		t.Fatalf("sums %v, want %v", sums, want)
	}
	wide, wantWide := make([]float64, bins*width), make([]float64, bins*width)
	widen(wide, sums)
	if widenGo(wantWide, sums); !slices.Equal(wide, wantWide) {
		t.Fatalf("numbers %v, want %v", wide, wantWide)
	}
	less := make([]int32, len(sums)) // and a number behind it
	got, wantLess := make([]int32, len(sums)), make([]int32, len(sums))
	for i := range less {
		less[i] = int32(s.Uint64n(math.MaxUint32))
	}
	n := bins * width
	subtract(got[:n], sums[:n], less[:n])
	if subtractGo(wantLess[:n], sums[:n], less[:n]); !slices.Equal(got, wantLess) {
		t.Fatalf("differences %v, want %v", got, wantLess)
	}
}

// checkScan holds scan against score and scoreRest.
func checkScan(t *rapid.T, s *num.Stream, labels int, c *Config, weighted bool) {
	x := newSearch(c, labels, weighted)
	draw := func() []float64 {
		sums := make([]float64, c.width(labels, weighted))
		for i := range sums {
			if sums[i] = float64(s.Uint64n(3) * s.Uint64n(1<<36)); i > 0 && i <= labels {
				sums[i] = float64(s.Uint64n(1<<40)) - 1<<39
			}
		}
		return sums
	}
	left, own := draw(), draw()
	node := draw()
	for k := range node {
		node[k] += left[k] + own[k]
	}
	want := slices.Clone(left)
	num.Add64(want, own)
	before := slices.Clone(left)
	check := func(score, rest float64) {
		if !slices.Equal(left, want) || score != x.score(want) || rest != x.scoreRest(node, want) {
			t.Fatalf("sums %v, want %v; scores %v and %v, want %v and %v", left, want, score, rest, x.score(want),
				x.scoreRest(node, want))
		}
	}
	check(x.scan(left, own, node))
	if weighted {
		return
	}
	narrow := make([]int32, len(own))
	for i := range narrow {
		narrow[i] = int32(int64(own[i])) >> (i % 16)
		own[i] = float64(narrow[i])
	}
	copy(left, before)
	copy(want, before)
	num.Add64(want, own)
	check(x.scanNarrow(left, narrow, node))
}

// TestGroups: sums of scattered rows over several groups of columns, dense and sparse, equal the sums of a plain loop.
func TestGroups(t *testing.T) {
	const rows, labels, dense, bins = 700, 20, 14, 200
	s := num.NewStream(num.NewKey(1, "groups"), 0, 0)
	cfg, b := &Config{Hessian: hessianDiagonal, FeatureFraction: 0.9, Bins: bins}, new(binning.Bins)
	cuts := make([]float32, bins-1)
	for i := range cuts {
		cuts[i] = float32(i + 1)
	}
	for f := range dense + 1 {
		b.Add(binning.Column{Feature: uint32(f), Cuts: cuts, Sparse: f == 3})
	}
	key := num.NewKey(2, "columns")
	k, a := &job{cfg: cfg, labels: labels}, new(adder)
	l := a.prepare(k, b, key, 1)
	if len(a.groups) < 3 || len(l.columns) == len(b.Columns) {
		t.Fatalf("%d groups of %d columns: the test does nothing", len(a.groups), len(l.columns))
	}
	p := &part{codes: binning.Codes{Dense: make([]uint8, rows*dense), Start: []uint32{0}},
		words: make([]int64, rows*l.stride)}
	want := make([]float64, l.size())
	var some []uint32
	for row := range rows {
		numbers := []int32{1}
		for range 2 * labels {
			numbers = append(numbers, int32(s.Uint64n(1<<16))-1<<15)
		}
		pack(p.words[row*l.stride:][:(l.width+1)/2], numbers)
		list := uint32(b.Columns[3].Base) + uint32(s.Uint64n(bins-1)) + 1
		p.codes.Listed = append(p.codes.Listed, list)
		p.codes.Start = append(p.codes.Start, uint32(len(p.codes.Listed)))
		for i := range dense {
			p.codes.Dense[row*dense+i] = uint8(s.Uint64n(bins))
		}
		if s.Uint64n(3) == 0 {
			continue
		}
		some = append(some, uint32(row))
		places := []int{0}
		for i, at := range l.columns {
			if c := &b.Columns[at]; c.Sparse {
				places = append(places, l.first[i]+int(list)-c.Base)
			} else {
				places = append(places, l.first[i]+int(p.codes.Dense[row*dense+c.At]))
			}
		}
		for _, place := range places {
			for i, x := range numbers {
				want[place*l.width+i] += float64(x)
			}
		}
	}
	for range 2 { // what it leaves behind changes nothing
		own, narrow := make([]float64, l.size()), make([]int32, l.size())
		for _, dst := range []sums{{wide: own}, {narrow: narrow}} {
			a.addNode(dst, some, p, l)
			a.add(dst, some, p, b, l)
		}
		if !slices.Equal(own, want) {
			t.Fatal("other sums")
		}
		if widen(own, narrow); !slices.Equal(own, want) {
			t.Fatal("other int32 sums")
		}
	}
}
