// Package linalg is float64 linear algebra with the same bits on every processor: products,
// Cholesky, triangular systems and Householder QR.
//
// Each element of a result is one chain of fused multiply-adds in an order that the function's
// comment tells. Blocks, vectors and processors change no bits. Only QR has a block width that
// its bits depend on.
package linalg
