package api

import "testing"

// TestReportable: a report that takes too much memory of the leader is refused.
func TestReportable(t *testing.T) {
	for _, c := range []struct {
		runs     int
		recorded bool
		ok       bool
	}{{maxReported, false, true}, {maxReported + 1, false, false}, {maxReportedRecorded, true, true}, {maxReportedRecorded + 1, true, false}} {
		if err := reportable(c.runs, c.recorded); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
