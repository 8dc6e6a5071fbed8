//go:build !race

package ranking_test

const slowed = false
