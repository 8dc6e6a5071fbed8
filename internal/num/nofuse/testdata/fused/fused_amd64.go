package fused

// Apart fuses in code that only amd64 has.
func Apart(x, y, z float64) float64 { return x*y + z }
