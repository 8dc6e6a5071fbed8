package coordinator

import "time"

// The house of a test is kept more often: tests wait for it.
func init() { houseEvery = 500 * time.Millisecond }
