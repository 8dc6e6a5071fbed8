//go:build !purego

package linalg

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// addTileAVX2 is addTileGo for depth columns, with strides in values.
//
//go:noescape
func addTileAVX2(c *float64, stride int, a, b *float64, depth int)

func addTile(c []float64, stride int, a, b []float64) {
	if !num.Accelerated {
		addTileGo(c, stride, a, b)
		return
	}
	_ = c[(tileRows-1)*stride+tileColumns-1]
	depth := len(a) / tileRows
	_ = b[:depth*tileColumns]
	addTileAVX2(unsafe.SliceData(c), stride, unsafe.SliceData(a), unsafe.SliceData(b), depth)
}
