//go:build !race

package algorithmtest

// raceDetector says whether the race detector is on.
const raceDetector = false
