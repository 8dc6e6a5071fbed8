//go:build race

package coordinator_test

// slowdown is about how many times longer a step or a tree takes with the race detector. A job
// that must last while something happens to it has as many fewer of them.
const slowdown = 4
