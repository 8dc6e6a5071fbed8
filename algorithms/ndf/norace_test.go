//go:build !race

package ndf_test

// slowed says that the race detector is on: long tests are left out.
const slowed = false
