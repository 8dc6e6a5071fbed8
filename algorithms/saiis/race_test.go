//go:build race

package saiis

// slowed tells that the race detector makes everything some ten times slower.
const slowed = true
