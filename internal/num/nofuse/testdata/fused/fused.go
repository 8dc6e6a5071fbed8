// Package fused is what TestFind looks at.
package fused

import "math"

// Bare fuses wherever the processor can.
func Bare(x, y, z float64) float64 { return x*y + z }

// Bare32 does so in float32, on arm64.
func Bare32(x, y, z float32) float32 { return z - x*y }

// Guarded never fuses.
func Guarded(x, y, z float64) float64 { return float64(x*y) + z }

// Explicit fuses on purpose.
func Explicit(x, y, z float64) float64 { return math.FMA(x, y, z) }
