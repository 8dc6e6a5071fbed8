package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
)

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
