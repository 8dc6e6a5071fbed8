package dispatch

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Each worker counts once, by what keeps it from computing units of a job.
func TestAvailability(t *testing.T) {
	c := newCrew(time.Second, map[string]string{"wrong": "other bytes"})
	now := time.Now()
	for _, id := range []string{"b", "a", "small", "wrong", "cut", "old"} {
		beat := protocol.Beat{Worker: id, Protocol: protocol.Version, Numerics: round.Numerics}
		if id == "old" {
			beat.Protocol++
		}
		c.hear(&beat, now)
	}
	c.lose("cut")
	got := c.availability(map[string]string{"small": "a", "gone": "b", "wrong": "c"})
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

// Why a job stops is told once it has more than once, and not for long after.
func TestWhyAJobStops(t *testing.T) {
	d := New(Config{Heartbeat: quick})
	now := time.Now().Add(-soon / 2)
	d.Stopped(jobID, errors.New("first"), now.Add(-soon))
	d.Stopped(jobID, errors.New("second"), now.Add(time.Millisecond)) // long after the first
	if why := d.Availability(jobID).Stops; why != "" {
		t.Errorf("after one stop: %q", why)
	}
	d.Stopped(jobID, errors.New("third"), now.Add(2*time.Millisecond))
	if why := d.Availability(jobID).Stops; why != "third" {
		t.Errorf("after two: %q", why)
	}
	if why := d.Availability(jobID + 1).Stops; why != "" {
		t.Errorf("another job: %q", why)
	}
	if why := d.stops[jobID].why(now.Add(2 * soon)); why != "" {
		t.Errorf("later: %q", why)
	}
}

// Of stops the last ones are kept, and of a long reason the beginning.
func TestStopsAreBounded(t *testing.T) {
	l := newLab(t, quick)
	now := time.Now()
	for job := range uint64(100) {
		l.d.Stopped(job, errors.New("old"), now.Add(-2*soon))
	}
	for range 2 {
		l.d.Stopped(100, errors.New(strings.Repeat("é", 30_000)), now)
	}
	l.d.expire(now)
	l.d.mu.Lock()
	kept := len(l.d.stops)
	l.d.mu.Unlock()
	if why := l.d.Availability(100).Stops; kept != 1 || why == "" || len(why) > 2*protocol.BriefText || !utf8.ValidString(why) {
		t.Errorf("%d jobs are kept, the last with %d bytes", kept, len(why))
	}
}

// A unit that each worker fails again and again tells why, one that another computes does
// not.
func TestAFailingUnitTellsWhy(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	unit := task1.run.Units[0]
	task1.fail(unit, false)
	again := w2.run(unit)
	if why := l.d.Availability(jobID).Stops; why != "" {
		t.Errorf("after one failure: %q", why)
	}
	again.fail(unit, false)
	last := w1.run(unit)
	last.fail(unit, false)
	l.until("the reason to be told", func() bool { return l.d.Availability(jobID).Stops != "" })
	w2.run(unit).parts()
	task2.parts()
	d.sums()
}

// A worker that says why it takes no units is given none until it says so no longer.
func TestWorkerWithAProblem(t *testing.T) {
	c := newCrew(time.Second, nil)
	now := time.Now()
	beat := protocol.Beat{Worker: "a", Protocol: protocol.Version, Numerics: round.Numerics}
	c.hear(&beat, now)
	version := c.version
	beat.Problem = "the worker's folder cannot be written: " + strings.Repeat("ö", 500)
	if changed, joined := c.hear(&beat, now); !changed || !joined || c.version == version || c.get("a") != nil {
		t.Errorf("changed %v, told %v, used %v", changed, joined, c.get("a") != nil)
	}
	if a := c.availability(nil); len(a.Refused) != 1 || !strings.Contains(a.Refused[0], "folder cannot be written") || len(a.Refused[0]) > 2*protocol.BriefText || !utf8.ValidString(a.Refused[0]) || a.Usable != 0 {
		t.Errorf("%+v", a)
	}
	version = c.version
	if changed, _ := c.hear(&beat, now); changed || c.version != version {
		t.Error("the same again is news")
	}
	beat.Problem = ""
	if changed, _ := c.hear(&beat, now); !changed || c.get("a") == nil {
		t.Error("it is not used again")
	}
}
