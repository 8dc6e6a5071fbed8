package dataset

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// nativeBytes returns the bytes of v in the order of this machine, in place.
func nativeBytes[T uint32 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// nativeFloats is nativeBytes for floats.
func nativeFloats[T float32 | float64](v []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(one)))
}

// putU32 writes values to b, little-endian.
func putU32(b []byte, values []uint32) {
	if littleEndian {
		copy(b, nativeBytes(values))
		return
	}
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
}

// putF32 is putU32 for float32.
func putF32(b []byte, values []float32) {
	if littleEndian {
		copy(b, nativeBytes(values))
		return
	}
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
}

// putF64 is putU32 for float64.
func putF64(b []byte, values []float64) {
	for i, v := range values {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
	}
}
