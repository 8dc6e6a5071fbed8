package report

import "testing"

// TestCheckSize: a report that takes too much memory of a server is refused.
func TestCheckSize(t *testing.T) {
	for _, c := range []struct {
		runs     int
		recorded bool
		ok       bool
	}{{maxServed, false, true}, {maxServed + 1, false, false}, {maxServedRecorded, true, true},
		{maxServedRecorded + 1, true, false}} {
		if err := CheckSize(c.runs, c.recorded); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
