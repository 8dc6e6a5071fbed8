//go:build !race

package sim

// defaultSeeds is how many seeds run: with them each run of the matrix is hit.
const defaultSeeds = matrixSeeds
