//go:build amd64 || arm64 || 386 || arm || loong64 || mipsle || mips64le || ppc64le || riscv64 || wasm

// The views below are the wire and disk format only where the machine itself is
// little-endian: elsewhere the package does not compile.

package num

import "unsafe"

// Bytes32 returns v as little-endian bytes: a view of the same memory.
func Bytes32(v []float32) []byte { return toBytes(v) }

// Bytes64 is Bytes32 for float64.
func Bytes64(v []float64) []byte { return toBytes(v) }

// BytesI32 is Bytes32 for int32.
func BytesI32(v []int32) []byte { return toBytes(v) }

// BytesU32 is Bytes32 for uint32.
func BytesU32(v []uint32) []byte { return toBytes(v) }

// Float32s returns little-endian bytes as float32 values: a view of the same
// memory, or a copy where b is not aligned. It panics where len(b) is not a
// multiple of 4.
func Float32s(b []byte) []float32 { return fromBytes[float32](b) }

// Int32s is Float32s for int32.
func Int32s(b []byte) []int32 { return fromBytes[int32](b) }

// Float64s is Float32s for float64, with multiples of 8.
func Float64s(b []byte) []float64 { return fromBytes[float64](b) }

// Uint32s is Float32s for uint32.
func Uint32s(b []byte) []uint32 { return fromBytes[uint32](b) }

// Aligned reports whether all views of the bytes b are of the same memory.
func Aligned(b []byte) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(float64(0)) == 0
}

type word interface {
	float32 | float64 | int32 | uint32
}

func toBytes[T word](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

func fromBytes[T word](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b)%size != 0 {
		panic("num: bytes that are no whole number of values")
	}
	if len(b) == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) != 0 {
		v := make([]T, len(b)/size)
		copy(toBytes(v), b)
		return v
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/size)
}
