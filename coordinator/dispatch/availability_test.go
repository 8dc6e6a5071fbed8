package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/protocol"
)

// Each worker counts once, by what keeps it from computing units of a job.
func TestAvailability(t *testing.T) {
	c := newCrew(time.Second, map[string]string{"wrong": "other bytes"})
	now := time.Now()
	for _, id := range []string{"b", "a", "small", "wrong", "cut", "old"} {
		beat := protocol.Beat{Worker: id, Protocol: protocol.Version, Numerics: algorithms.Numerics}
		if id == "old" {
			beat.Protocol++
		}
		c.hear(&beat, now)
	}
	c.lose("cut")
	got := c.availability(map[string]bool{"small": true, "gone": true, "wrong": true})
	want := Availability{
		Usable: 2, Unable: []string{"small"}, Unreachable: []string{"cut"}, Distrusted: []string{"wrong"},
		Refused: []string{"old: " + c.workers["old"].refused},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A leader that has just begun does not say yet that there is no worker.
func TestYoungLeaderKnowsNoWorkers(t *testing.T) {
	l := newLab(t, quick)
	l.d.began = time.Now()
	if a := l.d.Availability(jobID); !a.Unknown || a.Usable != 0 {
		t.Errorf("at first: %+v", a)
	}
	l.d.began = time.Now().Add(-youth(quick))
	if a := l.d.Availability(jobID); a.Unknown {
		t.Errorf("later: %+v", a)
	}
}
