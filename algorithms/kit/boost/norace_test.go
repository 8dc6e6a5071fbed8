//go:build !race

package boost_test

const slowed = false
