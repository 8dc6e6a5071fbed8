//go:build !race

package sim

// defaultSeeds is how many seeds run: with them all cells of the matrix but a few are hit.
const defaultSeeds = mostSeeds

// shortSeeds is how many seeds run with go test -short.
const shortSeeds = 60
