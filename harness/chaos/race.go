//go:build race

package chaos

// slowdown is about how many times longer a step or a tree takes with the race detector.
const slowdown = 4
