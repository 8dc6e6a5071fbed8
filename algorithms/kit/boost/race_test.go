//go:build race

package boost_test

// slowed tells that the race detector makes everything some ten times slower.
const slowed = true
