package read

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"pgregory.net/rapid"
)

// TestTodaysDatasets: files of before there were types of labels keep the digests of their
// datasets, and those of distributions and counts their manifests, byte for byte.
func TestTodaysDatasets(t *testing.T) {
	age := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 3, Low: 0, High: 69}}
	for _, c := range []struct {
		name, content, digest, manifest, says string
		o                                     OpenOptions
	}{
		{"ages", "a,age\n1,20\n2,0\n3,69\n4,31.5\n", "bb15923da0d899fe7da4ad3442e413c2caa596e823c30176284d941ae2419fe0", "",
			`"label_type":{"scale":{"low":0,"true":"mode"}}`, age},
		{"classes", "a,class\n1,x\n2,y\n3,10\n4,y\n", "8879d0a4dd349ce67b0e7771eecb062dd761921238073617910447d027f27b14", "",
			`"label_type":{"classes":true}`, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}},
		{"counts", "a,label_p,label_q\n1,2,3\n2,0,1\n3,1,1\n4,5,0\n",
			"a9f06110313ad1af608daff4d0b132901db15a1b6ecd4c0ab5fe5c299266c383",
			"b2011ffe43c41ae28fb5b5f97f28b3ef11593733bce2f190b5452390d28588b4", "",
			OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}},
		{"distributions", "name,a,label_p,label_q\nr,1,.5,.5\ns,2,0,1\nt,3,1,0\nu,4,.25,.75\n",
			"fef31eb15ab90a784c8b9112d0fd3a9029163a9373d125a41af523809f25f6d0",
			"e57ebc1be3bc508b235dc745d927aa3dc6e00ebd8c10d054073f93147dfa02aa", "", OpenOptions{}},
	} {
		src, err := OpenFile(t, "a.csv", c.content, c.o)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Reading = dataset.Reading{} // a file's manifest has it
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if m.Digest() != c.digest || c.manifest != "" && hex.EncodeToString(sum[:]) != c.manifest ||
			!strings.Contains(string(b), c.says) {
			t.Errorf("%s: digest %s, manifest %x: %s", c.name, m.Digest(), sum, b)
		}
	}
}

// TestScale compares expected value, median and mode with slow twins.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &dataset.Scale{Low: rapid.IntRange(-20, 20).Draw(t, "low")}
		parts := rapid.SliceOfN(rapid.IntRange(0, 4), 2, 9).Filter(func(v []int) bool {
			sum := 0
			for _, x := range v {
				sum += x
			}
			return sum > 0
		}).Draw(t, "parts")
		p, sum, first, most := make([]float32, len(parts)), 0, 0, 0
		for i, x := range parts {
			p[i], sum, first = float32(x), sum+x, first+x*(s.Low+i)
			if x > parts[most] {
				most = i
			}
		}
		median, below := 0, parts[0]
		for 2*below < sum {
			median++
			below += parts[median]
		}
		if got, want := s.Expected(p), float64(first)/float64(sum); math.Abs(got-want) > 1e-12 {
			t.Errorf("expected %v, want %v", got, want)
		}
		if got := s.Median(p); got != float64(s.Low+median) {
			t.Errorf("median %v, want %d", got, s.Low+median)
		}
		if got := s.Mode(p); got != float64(s.Low+most) {
			t.Errorf("mode %v, want %d", got, s.Low+most)
		}
	})
	if s := (&dataset.Scale{}); !math.IsNaN(s.Median([]float32{float32(math.NaN()), 1})) ||
		s.Mode([]float32{float32(math.NaN()), 1}) != 0 {
		t.Error("a distribution with NaN")
	}
}

// TestTrueNumbers: the number and the interval of a row, for each kind of truth.
func TestTrueNumbers(t *testing.T) {
	r := &dataset.Rows{N: 2, Labels: 3, D: []float32{0, .25, .75, .5, .5, 0}, Value: []float64{31, 31.5}}
	for _, c := range []struct {
		truth     dataset.Truth
		want      [2]float64
		intervals []float64
		low, high float64 // of row 1
	}{
		{dataset.TrueMode, [2]float64{32, 30}, nil, 30, 31 - 1e-9},
		{dataset.TrueExpected, [2]float64{31.75, 30.5}, nil, 30.5, 30.5},
		{dataset.TrueValue, [2]float64{31, 31.5}, nil, 31.5, 31.5},
		{dataset.TrueValue, [2]float64{31, 31.5}, []float64{30, 31, 30.5, 32}, 30.5, 32},
	} {
		s := &dataset.Scale{Low: 30, True: c.truth}
		r.Interval = c.intervals
		if a, b := s.Number(r, 0), s.Number(r, 1); a != c.want[0] || b != c.want[1] {
			t.Errorf("%s: %v and %v", c.truth, a, b)
		}
		if low, high := s.Interval(r, 1); low != c.low || high != c.high {
			t.Errorf("%s: %v to %v", c.truth, low, high)
		}
	}
}

// TestLabelTypesThatCannotBe are refused, of a manifest too.
func TestLabelTypesThatCannotBe(t *testing.T) {
	m, _, err := importer.Build(datasettest.SomeRows(9), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(m *dataset.Manifest){
		func(m *dataset.Manifest) { m.HasValues = true },
		func(m *dataset.Manifest) { m.HasIntervals = true },
		func(m *dataset.Manifest) { m.LabelType.Scale = &dataset.Scale{True: "guess"} },
		func(m *dataset.Manifest) { m.LabelType.Scale = &dataset.Scale{True: dataset.TrueValue} },
		func(m *dataset.Manifest) {
			m.LabelType.Scale, m.HasValues = &dataset.Scale{True: dataset.TrueMode}, true
		},
		func(m *dataset.Manifest) {
			m.LabelType.Scale = &dataset.Scale{Low: math.MinInt, True: dataset.TrueMode}
		},
		func(m *dataset.Manifest) { m.LabelType.Scale = &dataset.Scale{Low: 1 << 23, True: dataset.TrueMode} },
		func(m *dataset.Manifest) {
			m.LabelType = dataset.LabelType{Classes: true, Scale: &dataset.Scale{True: dataset.TrueMode}}
		},
		func(m *dataset.Manifest) { m.Groups = &dataset.Groups{Digest: m.Shards[0].Digest} },
		func(m *dataset.Manifest) { m.Groups = &dataset.Groups{Digest: "x", Names: []string{"a"}} },
		func(m *dataset.Manifest) {
			m.Groups = &dataset.Groups{Digest: m.Shards[0].Digest, Names: []string{"a", "a"}}
		},
		func(m *dataset.Manifest) { m.Groups = &dataset.Groups{Digest: m.Shards[0].Digest, Names: []string{""}} },
	} {
		bad := *m
		change(&bad)
		datasettest.MustBe(t, bad.Check(), dataset.ErrFormat)
		if bad.Digest() != m.Digest() {
			t.Errorf("change %d: what is like names is part of the digest", i)
		}
	}
}
