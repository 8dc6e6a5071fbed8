//go:build !race

package chaos

// slowdown is 1 without the race detector.
const slowdown = 1
