//go:build !race

package sim

// defaultSeeds is how many seeds run: with them each run of the matrix is hit.
const defaultSeeds = matrixSeeds

// shortSeeds is how many seeds run with go test -short.
const shortSeeds = 60
