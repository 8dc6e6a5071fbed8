package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/num"
)

// MissingDegree is a degree that is not known, in Rows.D: a NaN with one bit pattern, so that equal rows have equal
// bytes. Only rows of incomplete labels (Rows.Incomplete) have it, so no reader of degrees can take it for a 0.
var MissingDegree = math.Float32frombits(0x7fc00000)

// CountMissing returns how many degrees of a label distribution are missing.
func CountMissing(label []float32) (n int) {
	for _, d := range label {
		if d != d {
			n++
		}
	}
	return n
}

// Unassigned returns 1 less the sum of the degrees that are not missing, and at least 0: what the missing ones sum to.
func Unassigned(label []float32) float64 {
	sum := 0.0
	for _, d := range label {
		if d == d {
			sum += float64(d)
		}
	}
	return max(0, 1-sum)
}

// Repair sets the only missing degree of a label distribution to 1 less the others, at least 0. It returns how many
// degrees are still missing: 0, or at least 2.
func Repair(label []float32) (missing int) {
	if missing = CountMissing(label); missing != 1 {
		return missing
	}
	rest := PositiveZero(Unassigned(label))
	for c, d := range label {
		if d != d {
			label[c] = rest
		}
	}
	return 0
}

// ObservedSlack is how far above 1 the degrees of a sample that are not missing may sum: the tolerance of complete
// labels, and the rounding of the degrees to float32.
const ObservedSlack = 2e-4

// checkDegrees returns an error if a degree of r is missing although its labels are complete, or if the degrees of
// incomplete labels are not possible.
func (r *Rows) checkDegrees() error {
	if !r.Incomplete {
		if i := slices.IndexFunc(r.D, func(d float32) bool { return d != d }); i >= 0 {
			return fmt.Errorf("dataset: the block is damaged: label %d of sample %d is missing, but the labels are complete",
				i%r.Labels, i/r.Labels)
		}
		return nil
	}
	for i := range r.N {
		sum, missing := 0.0, 0
		for c, d := range r.Label(i) {
			switch {
			case d != d && math.Float32bits(d) == math.Float32bits(MissingDegree):
				missing++
			case !(d >= 0 && d <= 1+ObservedSlack) || math.Float32bits(d) == 1<<31:
				return fmt.Errorf("dataset: the block is damaged: the degree %v of label %d of sample %d is not possible", d, c, i)
			default:
				sum += float64(d)
			}
		}
		if missing == 1 || sum > 1+ObservedSlack || missing == 0 && sum < 1-ObservedSlack {
			return fmt.Errorf("dataset: the block is damaged: %d missing degrees of sample %d do not fit the sum %v of the others",
				missing, i, sum)
		}
	}
	return nil
}

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

// ParseMask reads what Mask.String writes: a rate such as 0.5 or golden:0.5, unlabelled:0.1, or two with a comma between
// them. An empty text is no mask.
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

// Hide replaces the hidden degrees of a sample, which has this number, by MissingDegree. It returns how many are missing.
// Repair is left to the caller.
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

// GoldenUniform returns number n, from 0, of a sequence that is easy to make elsewhere: the upper 53 bits of the outputs
// of SplitMix64 (Steele, Lea and Flood 2014) seeded with 0, as fractions of 2^53.
func GoldenUniform(n uint64) float64 {
	z := (n + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) * 0x1p-53
}

// masked returns r with the hidden degrees of the training and validation rows missing.
func (r *Rows) masked(k Mask, seed uint64, roles []Roles) *Rows {
	m := *r
	m.Incomplete, m.D = true, slices.Clone(r.D)
	for i, row := range r.Row {
		if roles[row]&(Train|Validation) != 0 {
			k.Hide(m.Label(i), seed, int(row))
			Repair(m.Label(i))
		}
	}
	return &m
}
