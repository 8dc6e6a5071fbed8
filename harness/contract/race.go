//go:build race

package contract

// raceDetector says whether the race detector is on.
const raceDetector = true
