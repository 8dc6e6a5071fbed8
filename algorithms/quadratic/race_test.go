//go:build race

package quadratic_test

const slowed = true
