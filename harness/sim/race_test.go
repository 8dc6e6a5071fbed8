//go:build race

package sim

// defaultSeeds is how many seeds run with the race detector: a tenth. What a seed does
// depends on no data race, so that all of them run without the detector, in a fifth of
// the time.
const defaultSeeds = matrixSeeds / 10

// shortSeeds is how many seeds run with go test -short.
const shortSeeds = 20
