package forest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// mixedProblem draws rows with features of the kinds of drawValue, in turn. A third of the rows repeat
// an earlier row's features.
func mixedProblem(n, features, labels int) *problem {
	p := &problem{n: n, features: features, labels: labels}
	s := num.NewStream(num.NewKey(7, "test"), 0, 0)
	for i := range n {
		if i > 0 && s.Uint64n(3) == 0 {
			p.x = append(p.x, p.row(int(s.Uint64n(uint64(i))))...)
		} else {
			for j := range features {
				p.x = append(p.x, drawValue(s, j%7))
			}
		}
		d, sum := make([]float32, labels), float32(0)
		for c := range d {
			d[c] = float32(0.1 + s.Float64() + max(0, float64(p.row(i)[c+2])))
			sum += d[c]
		}
		for c := range d {
			d[c] /= sum
		}
		p.d = append(p.d, d...)
	}
	return p
}

// TestTreesKeepTheirBits holds the encoded trees of many rows against digests. Their columns have ties,
// few values, constants and zeros of all shares.
func TestTreesKeepTheirBits(t *testing.T) {
	testkit.WithoutRace(t)
	cases := []struct {
		rows, features int
		family         string
		tried, step    string
		digest         string
		large          bool
	}{
		{5_000, 9, "two", "all", stepExhaustive, "3063718903a6c97c", false},
		{5_000, 9, "two", "all", stepAdaptive, "bc2b0d796eed46b2", false},
		{5_000, 9, "two", "0.5", stepExhaustive, "d015e20a01f14537", false},
		{5_000, 20, "two", "sqrt", stepExhaustive, "98869e07ab8c9f83", false},
		{5_000, 9, "many", "all", stepExhaustive, "c568f78e44c35747", false},
		{5_000, 9, "many", "0.5", stepAdaptive, "890e82e474b81428", false},
		{5_000, 20, "many", "sqrt", stepExhaustive, "e658d1faa1ac5780", false},
		{120_000, 14, "two", "all", stepExhaustive, "1166ed2274cf94f0", true},
		{120_000, 14, "many", "0.5", stepExhaustive, "317bc9f7ec72bdb1", true},
		{120_000, 20, "two", "sqrt", stepExhaustive, "6b941e54368911fc", false},
		{300_000, 7, "two", "all", stepExhaustive, "2242b1ad4bda4ea0", true},
		{300_000, 10, "many", "0.2", stepExhaustive, "2e8e4de9c6c6b66a", false},
	}
	for _, k := range cases {
		t.Run(fmt.Sprintf("%d-%d-%s-%s-%s", k.rows, k.features, k.family, k.tried, k.step), func(t *testing.T) {
			if testing.Short() && k.rows > 10_000 {
				t.Skip("many rows: not with -short")
			}
			if k.large {
				testkit.Large(t)
			}
			p := mixedProblem(k.rows, k.features, 4)
			c := smallConfig()
			c.Trees, c.MinSamples, c.Features, c.Step = 2, 3, k.tried, k.step
			for _, sparse := range []bool{false, true} {
				h := sha256.New()
				for _, tree := range growTrees(t, families[k.family], c, 5,
					p.data(4, sparse, dataset.Split{Seed: 3, TestFraction: 0.1}), 1) {
					h.Write(tree.Encode())
				}
				if got := hex.EncodeToString(h.Sum(nil)[:8]); got != k.digest {
					t.Errorf("sparse %v: the trees have the digest %s, want %s", sparse, got, k.digest)
				}
			}
		})
	}
}
