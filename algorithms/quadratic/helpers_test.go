package quadratic_test

import (
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// resultOf is a result of one unit.
func resultOf(b []byte) *round.Result { return &round.Result{Gathered: [][]byte{b}} }

// bytesOf has n times the same number.
func bytesOf(v float64, n int) []byte { return num.Bytes64(slices.Repeat([]float64{v}, n)) }
