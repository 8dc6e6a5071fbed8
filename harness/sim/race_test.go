//go:build race

package sim

// defaultSeeds is how many seeds run with the race detector, which makes a seed five times as long.
const defaultSeeds = 70

// shortSeeds is how many seeds run with go test -short.
const shortSeeds = 20
