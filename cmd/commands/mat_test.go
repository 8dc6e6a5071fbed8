package commands

import (
	"encoding/binary"
	"math"
	"strings"
)

// matrix is a variable of a MATLAB file, by columns.
type matrix struct {
	name       string
	rows, cols int
	values     []float64
}

// matFile encodes variables as an uncompressed MATLAB v5 file.
func matFile(variables ...matrix) string {
	le := binary.LittleEndian
	b := []byte(strings.Repeat(" ", 124))
	b = le.AppendUint16(b, 0x0100)
	b = append(b, "IM"...)
	for _, v := range variables {
		body := element(nil, 6, 8, func(b []byte) []byte { // miUINT32: flags
			return le.AppendUint32(le.AppendUint32(b, 6), 0) // mxDOUBLE_CLASS
		})
		body = element(body, 5, 8, func(b []byte) []byte { // miINT32: dimensions
			return le.AppendUint32(le.AppendUint32(b, uint32(v.rows)), uint32(v.cols))
		})
		body = element(body, 1, len(v.name), func(b []byte) []byte { return append(b, v.name...) })
		body = element(body, 9, 8*len(v.values), func(b []byte) []byte { // miDOUBLE
			for _, x := range v.values {
				b = le.AppendUint64(b, math.Float64bits(x))
			}
			return b
		})
		b = element(b, 14, len(body), func(b []byte) []byte { return append(b, body...) })
	}
	return string(b)
}

// element appends a data element, padded to eight bytes.
func element(b []byte, kind, size int, fill func([]byte) []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = fill(b)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}
