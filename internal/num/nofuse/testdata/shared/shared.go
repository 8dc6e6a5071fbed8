// Package shared has the same code for all processors.
package shared

// Bare fuses wherever the processor can.
func Bare(x, y, z float64) float64 { return x*y + z }
