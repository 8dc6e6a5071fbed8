package linalg

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// A tile is the part of a product that registers hold; a block is what the caches hold.
const (
	tileRows    = 4
	tileColumns = 12

	blockRows    = 64
	blockColumns = 192
	blockDepth   = 256
)

// buffers are blocks of both factors, in the order in which tiles read them.
type buffers struct {
	a [blockRows * blockDepth]float64
	b [blockColumns * blockDepth]float64
	c [tileRows * tileColumns]float64
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

// AddProduct adds a·b to c. Each element is a chain of fused multiply-adds that begins with the
// element of c and takes k ascending. c must have neighbours in its rows or in its columns.
func AddProduct(c, a, b Matrix) { addProduct(c, a, b, 1) }

// SubtractProduct is AddProduct with a negated.
func SubtractProduct(c, a, b Matrix) { addProduct(c, a, b, -1) }

// subtractDescending is SubtractProduct with k from the last to the first.
func subtractDescending(c, a, b Matrix) { addProduct(c, a.T().reversed().T(), b.reversed(), -1) }

// addProduct adds sign·a·b to c.
func addProduct(c, a, b Matrix, sign float64) {
	if a.Rows != c.Rows || b.Columns != c.Columns || a.Columns != b.Rows {
		panic(fmt.Sprintf("linalg: a matrix of %d×%d times one of %d×%d into one of %d×%d", a.Rows, a.Columns, b.Rows,
			b.Columns, c.Rows, c.Columns))
	}
	if c.ColumnStep != 1 && c.Columns > 1 {
		if c.RowStep != 1 {
			panic("linalg: neither the rows nor the columns of a product have neighbours")
		}
		a, b, c = b.T(), a.T(), c.T()
	}
	x := pool.Get().(*buffers)
	defer pool.Put(x)
	for k := 0; k < a.Columns; k += blockDepth {
		depth := min(blockDepth, a.Columns-k)
		for j := 0; j < c.Columns; j += blockColumns {
			width := min(blockColumns, c.Columns-j)
			pack(x.b[:], b.Part(k, k+depth, j, j+width).T(), tileColumns, 1)
			for i := 0; i < c.Rows; i += blockRows {
				height := min(blockRows, c.Rows-i)
				pack(x.a[:], a.Part(i, i+height, k, k+depth), tileRows, sign)
				x.addTiles(c.Part(i, i+height, j, j+width), depth)
			}
		}
	}
}

// pack copies sign·m, some rows at a time, in columns of so many values: rows beyond the last
// are zeros.
func pack(dst []float64, m Matrix, rows int, sign float64) {
	for from := 0; from < m.Rows; from += rows {
		panel := dst[from*m.Columns:][:rows*m.Columns]
		for i := range rows {
			if from+i >= m.Rows {
				for k := range m.Columns {
					panel[k*rows+i] = 0
				}
				continue
			}
			at := m.First + (from+i)*m.RowStep
			for k := range m.Columns {
				panel[k*rows+i] = sign * m.V[at]
				at += m.ColumnStep
			}
		}
	}
}

// addTiles adds the product of the packed blocks to c.
func (x *buffers) addTiles(c Matrix, depth int) {
	for j := 0; j < c.Columns; j += tileColumns {
		b := x.b[j*depth:][:tileColumns*depth]
		for i := 0; i < c.Rows; i += tileRows {
			a := x.a[i*depth:][:tileRows*depth]
			if i+tileRows <= c.Rows && j+tileColumns <= c.Columns {
				addTile(c.V[c.First+i*c.RowStep+j:], c.RowStep, a, b)
				continue
			}
			x.addEdge(c.Part(i, min(i+tileRows, c.Rows), j, min(j+tileColumns, c.Columns)), a, b)
		}
	}
}

// addEdge is addTile for a tile that c has only a part of.
func (x *buffers) addEdge(c Matrix, a, b []float64) {
	clear(x.c[:])
	for i := range c.Rows {
		copy(x.c[i*tileColumns:], c.row(i))
	}
	addTile(x.c[:], tileColumns, a, b)
	for i := range c.Rows {
		copy(c.row(i), x.c[i*tileColumns:])
	}
}

// Gram adds aᵀa to the square matrix c, whose rows have neighbours: the part on and below the
// diagonal is computed and copied to the part above. Each element is as AddProduct makes it.
func Gram(c, a Matrix) {
	for j := 0; j < c.Columns; j += blockColumns {
		to := min(j+blockColumns, c.Columns)
		AddProduct(c.Part(j, c.Rows, j, to), a.Part(0, a.Rows, j, c.Rows).T(), a.Part(0, a.Rows, j, to))
	}
	for i := range c.Rows {
		for j := range i {
			c.Set(j, i, c.At(i, j))
		}
	}
}

// addTileGo adds the product of packed a (depth×4) and b (depth×12) to the tile of 4×12 values
// whose rows begin stride values apart in c.
func addTileGo(c []float64, stride int, a, b []float64) {
	for i := range tileRows {
		row := c[i*stride:][:tileColumns]
		for k := 0; k*tileRows < len(a); k++ {
			x := a[k*tileRows+i]
			for j, y := range b[k*tileColumns:][:tileColumns] {
				row[j] = math.FMA(x, y, row[j])
			}
		}
	}
}

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
