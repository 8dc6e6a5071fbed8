//go:build !race

package ldlf

// slowed says that the race detector is on: trajectories stop early.
const slowed = false
