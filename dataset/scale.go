package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Scale says which numbers the labels of an ordered scale are: label i is Low + i.
type Scale struct {
	Low  int   `json:"low"`
	True Truth `json:"true"`
}

// Expected returns the expected number of a distribution p over the scale, Σ y p / Σ p.
func (s *Scale) Expected(p []float32) float64 {
	sum, total := 0.0, 0.0
	for i, v := range p {
		sum += float64(float64(i) * float64(v))
		total += float64(v)
	}
	return float64(s.Low) + sum/total
}

// Median returns the least number at which the cumulative share of p is at least a half of
// all.
func (s *Scale) Median(p []float32) float64 {
	total := 0.0
	for _, v := range p {
		total += float64(v)
	}
	half, sum := total/2, 0.0
	for i, v := range p {
		if sum += float64(v); sum >= half {
			return float64(s.Low + i)
		}
	}
	return math.NaN() // a share is not a number
}

// Mode returns the number of the greatest share of p, of equal ones the lowest.
func (s *Scale) Mode(p []float32) float64 { return float64(s.Low + Greatest(p)) }

// Number returns the true number of row i of r.
func (s *Scale) Number(r *Rows, i int) float64 {
	switch s.True {
	case TrueValue:
		return r.Value[i]
	case TrueMode:
		return s.Mode(r.Label(i))
	}
	return s.Expected(r.Label(i))
}

// Interval returns the least and the greatest number that row i of r may have: the interval
// that its file gave, or else [a, a + 1 - 1e-9] where its number a is whole, or else [a, a].
func (s *Scale) Interval(r *Rows, i int) (low, high float64) {
	if r.Interval != nil {
		return r.Interval[2*i], r.Interval[2*i+1]
	}
	a := s.Number(r, i)
	if a == math.Floor(a) {
		return a, a + wholeInterval
	}
	return a, a
}

// Truth says which number of a row on a scale is the true one, which errors are measured
// from.
type Truth string

// The values of Truth.
const (
	TrueValue    Truth = "value"    // the exact number that the shards have (Rows.Value)
	TrueMode     Truth = "mode"     // the mode of the row's distribution: of ages without exact numbers
	TrueExpected Truth = "expected" // the expected value of the row's distribution
)

// LabelType says what the labels of a dataset are. The zero value: degrees of labels in no
// order.
type LabelType struct {
	// Classes: each row has one label of degree 1, its class.
	Classes bool `json:"classes,omitempty"`
	// Scale: the labels are whole numbers in ascending order; nil: they are not.
	Scale *Scale `json:"scale,omitempty"`
	// Incomplete: degrees may be missing (MissingDegree).
	Incomplete bool `json:"incomplete,omitempty"`
	// Bounds: the labels are targets, real numbers in these bounds; nil: they are not.
	Bounds *Bounds `json:"bounds,omitempty"`
}

// check returns an error if no dataset has such labels. values: the rows have exact numbers.
func (t *LabelType) check(labels int, values bool) error {
	s := t.Scale
	switch {
	case t.Incomplete && (t.Classes || s != nil):
		return errors.New("labels with missing degrees cannot be classes or numeric")
	case t.Incomplete && labels == 1:
		return errors.New("labels with missing degrees need at least two labels")
	case t.Bounds != nil && !values:
		return t.checkBounds(labels)
	case s == nil && values:
		return errors.New("there are exact numbers, but the labels are not numeric")
	case s == nil:
		return nil
	case t.Classes:
		return errors.New("the labels cannot be both classes and numeric")
	case labels < 2 || s.Low < -MaxNumber || s.Low+labels > MaxNumber:
		return fmt.Errorf("%d numeric labels from %d are not possible", labels, s.Low)
	case (s.True == TrueValue) != values || !values && s.True != TrueMode && s.True != TrueExpected:
		return fmt.Errorf("the kind of the true numbers, %.20q, does not fit the labels", s.True)
	}
	return nil
}

// checkBounds returns an error if no dataset has such targets.
func (t *LabelType) checkBounds(labels int) error {
	if t.Scale != nil || t.Classes {
		return errors.New("the labels cannot be both targets in bounds and classes or numeric")
	}
	if labels > MaxTargets {
		return fmt.Errorf("found %d targets in bounds, want at most %d", labels, MaxTargets)
	}
	return t.Bounds.Check(labels, nil)
}

// String describes the type in a few words; labels is their number.
func (t *LabelType) String(labels int) string {
	switch s := t.Scale; {
	case t.Classes:
		return "classes"
	case t.Incomplete:
		return "incomplete distributions"
	case t.Bounds != nil && t.Bounds.Given():
		return "targets in the bounds " + t.Bounds.String()
	case t.Bounds != nil:
		return "targets in the bounds of the training samples"
	case s == nil:
		return "distributions"
	case s.True == TrueValue:
		return fmt.Sprintf("numeric labels from %d to %d, with exact numbers", s.Low, s.Low+labels-1)
	default:
		return fmt.Sprintf("numeric labels from %d to %d", s.Low, s.Low+labels-1)
	}
}

// Same tells whether two types are equal.
func (t *LabelType) Same(other *LabelType) bool {
	a, b := t.Scale, other.Scale
	return t.Classes == other.Classes && t.Incomplete == other.Incomplete &&
		(a == nil) == (b == nil) && (a == nil || *a == *b) &&
		t.Bounds.Same(other.Bounds)
}

// Greatest returns the label of the greatest share, of equal ones the lowest.
func Greatest(p []float32) int {
	best := 0
	for i, v := range p {
		if v > p[best] {
			best = i
		}
	}
	return best
}

// wholeInterval is what is missing of 1 in the interval of a whole number: an age a is
// reached on one birthday and lasts until just before the next.
const wholeInterval = 1 - 1e-9

// Gaussian sets dst[k] to exp(-(low+k-mean)²/(2 sigma²)), divided by the sum over k. It
// subtracts the greatest exponent from all, so that a small sigma does not make every
// degree 0.
func Gaussian(dst []float64, mean, sigma float64, low int) {
	nearest := min(math.Floor(mean+0.5), float64(low+len(dst)-1)) - mean
	scale := 1 / (2 * float64(sigma*sigma))
	sum := 0.0
	for k := range dst {
		x := float64(low+k) - mean
		dst[k] = num.Exp(-scale * (float64(x*x) - float64(nearest*nearest)))
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
}

// MaxNumber bounds the numbers of a scale: neighbours are told apart as float32.
const MaxNumber = 1 << 23

// Shape says that the features of a row are an image: Channels x Height x Width numbers, channel
// by channel, each row of pixels after the one above it. The zero value: the features are no
// image.
type Shape struct{ Channels, Height, Width int }

// Size is how many features the shape has; 0 of no image.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// String writes channels x height x width, such as 1x8x8; "" of no image.
func (s Shape) String() string {
	if s == (Shape{}) {
		return ""
	}
	return fmt.Sprintf("%dx%dx%d", s.Channels, s.Height, s.Width)
}

// MarshalText implements encoding.TextMarshaler.
func (s Shape) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Shape) UnmarshalText(text []byte) (err error) {
	if *s, err = ParseShape(string(text)); err != nil {
		return fmt.Errorf("shape %.40q: %w", text, err)
	}
	return nil
}

// check returns an error if rows with so many features cannot have the shape.
func (s Shape) check(features int) error {
	switch {
	case s == (Shape{}):
		return nil
	case s.Channels < 1 || s.Height < 1 || s.Width < 1:
		return errors.New("the shape has no pixels")
	case s.Size() != features:
		return fmt.Errorf("the shape %s has %d numbers, but a sample has %s", s, s.Size(), Counted(features, "feature"))
	}
	return nil
}

// ParseShape reads a shape as String writes it, such as 1x8x8.
func ParseShape(text string) (Shape, error) {
	var s Shape
	parts := strings.Split(text, "x")
	if len(parts) != 3 {
		return s, errtext.Errorf(errtext.WrongOption, "want {shape:CHANNELSxHEIGHTxWIDTH}, such as {shape:1x8x8}")
	}
	for i, side := range []*int{&s.Channels, &s.Height, &s.Width} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 1 || n > MaxFeatures || strconv.Itoa(n) != parts[i] {
			return Shape{}, fmt.Errorf("want three whole numbers from 1 to %d, such as 1x8x8", MaxFeatures)
		}
		*side = n
	}
	if _, err := Volume([]int{s.Channels, s.Height, s.Width}, MaxFeatures); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// Volume returns the product of numbers that are at least 1, or an error if it is above a limit.
func Volume(sides []int, limit int) (int, error) {
	n := 1
	for _, side := range sides {
		if side < 1 || side > limit/n {
			return 0, fmt.Errorf("a sample may have at most %d numbers", limit)
		}
		n *= side
	}
	return n, nil
}
