// Package num holds all arithmetic that reaches a model's digest or a measure.
//
// Everything here gives the same bits on every processor and in every build
// mode. Three rules make that so:
//
//   - exp, log, sine, cosine, random streams and normals are written here from
//     IEEE 754 additions, multiplications, divisions and square roots, each
//     correctly rounded. Of package math only Sqrt, FMA, Floor, bit functions and
//     constants are used.
//   - Nothing fuses by itself: the compiler may turn x*y + z into one rounding
//     (arm64 and GOAMD64=v3 do), so each product that is added to something is
//     written float64(x*y) + z. A test of the package nofuse looks for fused
//     instructions in what is compiled.
//   - Where a fused multiply-add is wanted it is explicit and exact: float32
//     matrix kernels use FMA32 for each element, with the sum over k in order.
//     Vector lanes run across outputs or across rows, never across k.
//
// The package is pure: no state, no goroutine, no I/O, no allocation in kernels.
package num
