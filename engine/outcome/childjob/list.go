package childjob

import (
	"encoding/binary"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/wire"
)

// AppendList appends encoded outcomes, each after its length in 8 bytes, little-endian.
func AppendList(dst []byte, parts [][]byte) []byte {
	for _, p := range parts {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// List reads what AppendList wrote; the parts share the memory of b. Errors wrap ErrFormat.
func List(b []byte) (parts [][]byte, err error) {
	r := wire.NewReader(b)
	for r.Len() > 0 {
		parts = append(parts, r.Bytes("result"))
	}
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.Err())
	}
	return parts, nil
}

// AppendCells appends the list of encoded outcomes, and behind them, as one more element, how long
// each was computed: nanoseconds in 8 bytes, little-endian.
func AppendCells(dst []byte, parts [][]byte, took []uint64) []byte {
	times := make([]byte, 0, 8*len(took))
	for _, ns := range took {
		times = binary.LittleEndian.AppendUint64(times, ns)
	}
	return AppendList(AppendList(dst, parts), [][]byte{times})
}

// Cells reads what AppendCells wrote of so many outcomes, which share the memory of b, or what
// AppendList wrote of them: then took is nil. Errors wrap ErrFormat.
func Cells(b []byte, count int) (parts [][]byte, took []uint64, err error) {
	parts, err = List(b)
	switch {
	case err != nil:
		return nil, nil, err
	case count < 0:
		return nil, nil, fmt.Errorf("%w: the number of outcomes is negative: %d", ErrFormat, count)
	case len(parts) == count:
		return parts, nil, nil
	case len(parts) != count+1 || len(parts[count]) != 8*count:
		return nil, nil, fmt.Errorf("%w: the list has %d elements for %d outcomes", ErrFormat, len(parts), count)
	}
	for times := parts[count]; len(times) > 0; times = times[8:] {
		took = append(took, binary.LittleEndian.Uint64(times))
	}
	return parts[:count], took, nil
}
