//go:build !race

package ensemble_test

const slowed = false
