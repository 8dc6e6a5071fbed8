package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds are the least and the greatest target of each label. Without any, they are the extremes of the training
// samples of a job, of each fold alone. One pair is for all labels.
type Bounds struct {
	Low  []float64 `json:"low,omitempty"`
	High []float64 `json:"high,omitempty"`
}

// ParseBounds reads pairs LOW:HIGH of numbers with LOW < HIGH: one for all labels, or one for each label in order.
func ParseBounds(pairs []string) (*Bounds, error) {
	b := new(Bounds)
	for _, text := range pairs {
		from, to, ok := strings.Cut(strings.TrimSpace(text), ":")
		low, err := strconv.ParseFloat(from, 64)
		high, failed := strconv.ParseFloat(to, 64)
		if !ok || err != nil || failed != nil || low-low != 0 || high-high != 0 {
			return nil, errtext.Errorf(errtext.WrongOption, "bounds %.40q: want {bounds:LOW:HIGH}, two numbers, such as "+
				"{bounds:0:1}; for bounds of each label, one pair for each label in order", text)
		}
		b.Low, b.High = append(b.Low, low), append(b.High, high)
	}
	return b, nil
}

// Given reports whether there are bounds.
func (b *Bounds) Given() bool { return len(b.Low) > 0 }

// Of returns the bounds of a label, which are given.
func (b *Bounds) Of(label int) (low, high float64) {
	if len(b.Low) == 1 {
		return b.Low[0], b.High[0]
	}
	return b.Low[label], b.High[label]
}

// Check returns an error if so many labels cannot have the bounds. The error names the label, as names have it.
func (b *Bounds) Check(labels int, names []string) error {
	if n := len(b.Low); n != len(b.High) || n > 1 && n != labels {
		return errtext.Errorf(errtext.WrongOption, "there are bounds of %d labels, but the data have %s: {bounds} has one "+
			"pair LOW:HIGH for all labels, or one for each label in order", n, Counted(labels, "label"))
	}
	for i := range b.Low {
		if err := CheckBounds(b.Low[i], b.High[i]); err != nil {
			return b.labelled(i, names, err)
		}
	}
	return nil
}

// labelled adds the label to an error about bounds, if they are of one label.
func (b *Bounds) labelled(i int, names []string, err error) error {
	if len(b.Low) == 1 {
		return errtext.Errorf(errtext.WrongOption, "{bounds=%s:%s}: %w", units.InFull(b.Low[0]), units.InFull(b.High[0]), err)
	}
	return errtext.Errorf(errtext.WrongOption, "{bounds}: label %d %q (counted from 0): %w", i, NameAt(names, i), err)
}

// CheckBounds returns an error unless low and high are finite and low is less.
func CheckBounds(low, high float64) error {
	switch {
	case low == high:
		return fmt.Errorf("both bounds are %s: want two different numbers, the lower one first", units.InFull(low))
	case !(low < high) || low-low != 0 || high-high != 0 || high-low > math.MaxFloat64:
		return fmt.Errorf("the bounds %s and %s are not possible: want two finite numbers, the lower one first",
			units.InFull(low), units.InFull(high))
	}
	return nil
}

// Same reports whether two bounds are equal; either may be nil.
func (b *Bounds) Same(other *Bounds) bool {
	return (b == nil) == (other == nil) && (b == nil || slices.Equal(b.Low, other.Low) && slices.Equal(b.High, other.High))
}

// Each returns the bounds of so many labels, one pair for each.
func (b *Bounds) Each(labels int) *Bounds {
	if len(b.Low) != 1 {
		return b
	}
	return &Bounds{Low: slices.Repeat(b.Low, labels), High: slices.Repeat(b.High, labels)}
}

// String writes the bounds as flags have them; empty: there are none.
func (b *Bounds) String() string {
	var pairs []string
	for i, low := range b.Low {
		pairs = append(pairs, units.InFull(low)+":"+units.InFull(b.High[i]))
	}
	return strings.Join(pairs, ",")
}

// MaxTargets bounds the targets of a sample.
const MaxTargets = 1 << 12

// Scale sets dst to targets scaled to [0, 1]: (q - low)/(high - low). Targets outside are at the ends. The bounds are
// one pair for each label.
func (b *Bounds) Scale(dst, targets []float32) {
	for c, q := range targets {
		low, high := b.Low[c], b.High[c]
		dst[c] = PositiveZero(min(max((float64(q)-low)/(high-low), 0), 1))
	}
}

// Unscale replaces values in [0, 1] by targets in the bounds: the inverse of Scale. Values outside are at the ends.
func (b *Bounds) Unscale(values []float32) {
	for c, x := range values {
		low, high := b.Low[c], b.High[c]
		q := low + float64(float64(x)*(high-low))
		values[c] = PositiveZero(min(max(q, low), high))
	}
}

// TargetsToDistribution sets dst to targets as a distribution: divided by their sum, if all are at least 0 and one is
// above; else their projection on the distributions, which is the nearest one.
func TargetsToDistribution(dst []float64, targets []float32) {
	sum, negative := 0.0, false
	for c, q := range targets {
		dst[c] = float64(q)
		sum += dst[c]
		negative = negative || q < 0
	}
	if !negative && sum > 0 {
		for c := range dst {
			dst[c] /= sum
		}
		return
	}
	project(dst)
}

// project replaces v by the nearest distribution: max(0, v - θ), where θ makes the sum 1.
func project(v []float64) {
	falling := slices.Clone(v)
	slices.Sort(falling)
	slices.Reverse(falling)
	sum, theta := 0.0, 0.0
	for k, x := range falling {
		sum += x
		if t := (sum - 1) / float64(k+1); x > t {
			theta = t
		}
	}
	for c, x := range v {
		v[c] = max(0, x-theta)
	}
}
