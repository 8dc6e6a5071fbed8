package coordinator

import "time"

// Retention runs more often in tests: they wait for it.
func init() { retentionEvery = 500 * time.Millisecond }
