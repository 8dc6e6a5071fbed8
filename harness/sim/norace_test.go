//go:build !race

package sim

// defaultSeeds is how many seeds run: with them each cell of the matrix is hit.
const defaultSeeds = matrixSeeds
