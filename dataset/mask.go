package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Mask says which degrees of complete labels a training does not see. The zero value hides none. The seed of the split
// draws them, by counters: whether a degree is hidden depends on the seed, the sample's number and the label alone.
// Validation samples are masked as training samples are. Test samples keep their labels.
type Mask struct {
	// Rate is the probability that a degree is hidden, from 0 to below 1.
	Rate float64 `json:"rate,omitempty"`
	// Unlabelled is the probability that a sample has no degree, from 0 to below 1.
	Unlabelled float64 `json:"unlabelled,omitempty"`
	// Golden draws the degrees by SplitMix64 from the seed 0, whatever the seed of the split: see GoldenUniform.
	Golden bool `json:"golden,omitempty"`
}

// ParseMask reads what Mask.String writes: a rate such as 0.5 or golden:0.5, unlabelled:0.1, or two with a comma
// between them. An empty text is no mask.
func ParseMask(text string) (k Mask, err error) {
	if text == "" {
		return k, nil
	}
	for _, part := range strings.Split(text, ",") {
		kind, value, named := strings.Cut(strings.TrimSpace(part), ":")
		if !named {
			kind, value = "rate", kind
		}
		x, err := strconv.ParseFloat(value, 64)
		to := &k.Rate
		if kind == "unlabelled" {
			to = &k.Unlabelled
		}
		if err != nil || !(x > 0 && x < 1) || *to != 0 || kind == "rate" && named ||
			kind != "rate" && kind != "golden" && kind != "unlabelled" {
			return Mask{}, fmt.Errorf("want a fraction above 0 and below 1, golden:FRACTION, unlabelled:FRACTION, or " +
				"two of them, such as 0.5,unlabelled:0.1")
		}
		*to, k.Golden = x, k.Golden || kind == "golden"
	}
	return k, nil
}

// String writes the mask as ParseMask reads it.
func (k Mask) String() string {
	var parts []string
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	switch {
	case k.Golden:
		parts = append(parts, "golden:"+number(k.Rate))
	case k.Rate > 0:
		parts = append(parts, number(k.Rate))
	}
	if k.Unlabelled > 0 {
		parts = append(parts, "unlabelled:"+number(k.Unlabelled))
	}
	return strings.Join(parts, ",")
}

// Any reports whether the mask hides anything.
func (k Mask) Any() bool { return k != Mask{} }

// Check returns an error if a probability is out of range.
func (k Mask) Check() error {
	for _, x := range []float64{k.Rate, k.Unlabelled} {
		if !(x >= 0 && x < 1) {
			return fmt.Errorf("a mask cannot hide the fraction %v; want a number from 0 to below 1", x)
		}
	}
	if k.Golden && k.Rate == 0 {
		return errors.New("a golden mask needs a rate above 0")
	}
	return nil
}

// The streams of a mask's random numbers.
const (
	maskDegrees    = "mask/degrees"
	maskUnlabelled = "mask/unlabelled"
)

// Hide replaces the hidden degrees of a sample, which has this number, by MissingDegree. It returns how many are
// missing. Repair is left to the caller.
func (k Mask) Hide(label []float32, seed uint64, row int) int {
	if k.Unlabelled > 0 && uniform(num.NewKey(seed, maskUnlabelled), row, 0) < k.Unlabelled {
		for c := range label {
			label[c] = MissingDegree
		}
		return len(label)
	}
	key := num.NewKey(seed, maskDegrees)
	for c := range label {
		u := 0.0
		if k.Golden {
			u = GoldenUniform(uint64(row)*uint64(len(label)) + uint64(c))
		} else {
			u = uniform(key, row, c)
		}
		if u < k.Rate {
			label[c] = MissingDegree
		}
	}
	return CountMissing(label)
}

// uniform is a random number from 0 to below 1 of a sample and a label.
func uniform(key num.Key, row, label int) float64 {
	x := num.Philox(key, [4]uint32{uint32(row), uint32(uint64(row) >> 32), uint32(label)})
	return float64((uint64(x[0])<<32|uint64(x[1]))>>11) * 0x1p-53
}

// GoldenUniform returns number n, from 0, of a sequence that is easy to make elsewhere: the upper 53 bits of the
// outputs of SplitMix64 (Steele, Lea and Flood 2014) seeded with 0, as fractions of 2^53.
func GoldenUniform(n uint64) float64 {
	z := (n + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) * 0x1p-53
}
