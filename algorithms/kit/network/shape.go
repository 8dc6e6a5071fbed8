package network

import (
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
)

// Shape is that of a row's values: images of so many rows and columns, one behind the other.
// A row without an image has the shape n×1×1.
type Shape struct{ Channels, Height, Width int }

// Flat returns the shape of n values that are no image.
func Flat(n int) Shape { return Shape{n, 1, 1} }

// Area returns the positions of an image.
func (s Shape) Area() int { return s.Height * s.Width }

// Size returns the number of values.
func (s Shape) Size() int { return s.Channels * s.Area() }

// String returns the shape as settings have it: 1x8x8.
func (s Shape) String() string { return dataset.Shape(s).String() }

// maxSide bounds each number of a list of units.
const maxSide = 1 << 16

// parseNumbers reads whole numbers from 1 to maxSide.
func parseNumbers(texts []string) ([]int, error) {
	numbers := make([]int, len(texts))
	for i, text := range texts {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxSide || strconv.Itoa(n) != text {
			return nil, fmt.Errorf("%q is not a whole number from 1 to %d", text, maxSide)
		}
		numbers[i] = n
	}
	return numbers, nil
}
