//go:build !race

package structrf_test

const slowed = false
