package coordinator

import "time"

// Retention and records of refusals come more often in tests: they wait for them.
func init() {
	retentionEvery = 500 * time.Millisecond
	refusalsEvery = 300 * time.Millisecond
}
