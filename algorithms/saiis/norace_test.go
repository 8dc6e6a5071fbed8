//go:build !race

package saiis

const slowed = false
