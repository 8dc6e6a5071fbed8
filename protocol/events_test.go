package protocol

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var sampleEvents = []NumberedEvent{
	{Number: 3, JobEvent: JobEvent{Time: 1700000000.25, Kind: EventLost, Text: "worker w2 left; 12 tasks were given to " +
		"other workers", Worker: "w2", Round: 900, Step: 4500, Seconds: 12.5}},
	{Number: 5, JobEvent: JobEvent{Kind: EventLeader, Coordinator: "a"}},
}

// TestCheckEvent: each field of an event has bounds, and a clipped event of a kind is within them.
func TestCheckEvent(t *testing.T) {
	for what, change := range map[string]func(*JobEvent){
		"the time":                  func(e *JobEvent) { e.Time = -1 },
		"a time that is no number":  func(e *JobEvent) { e.Time = math.NaN() },
		"infinite seconds":          func(e *JobEvent) { e.Seconds = math.Inf(1) },
		"no kind":                   func(e *JobEvent) { e.Kind = "" },
		"a kind of several words":   func(e *JobEvent) { e.Kind = "a b" },
		"a long kind":               func(e *JobEvent) { e.Kind = EventKind(strings.Repeat("a", maxEventKind+1)) },
		"a long text":               func(e *JobEvent) { e.Text = strings.Repeat("a", maxEventText+1) },
		"a text that is no UTF-8":   func(e *JobEvent) { e.Text = "\xff" },
		"a worker with a long name": func(e *JobEvent) { e.Worker = strings.Repeat("a", maxEventName+1) },
		"a long coordinator":        func(e *JobEvent) { e.Coordinator = strings.Repeat("a", maxEventName+1) },
	} {
		e := sampleEvents[0].JobEvent
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&e); e.Check() == nil {
			t.Errorf("%s: %+v is valid", what, e)
		}
	}
	long := JobEvent{Kind: "of_a_later_version", Text: strings.Repeat("ä\xff", 200), Worker: strings.Repeat("w", 99)}
	long.Clip()
	if err := long.Check(); err != nil || !strings.HasSuffix(long.Text, "...") || !utf8.ValidString(long.Text) {
		t.Errorf("%+v: %v", long, err)
	}
	for _, k := range EventKinds() {
		if e := (JobEvent{Kind: k}); e.Check() != nil {
			t.Errorf("%s: %v", k, e.Check())
		}
	}
}

// TestEventsOfACommit: a Commit entry without events has the bytes that it had before there were events, and one with
// an empty list, or with too many, is refused.
func TestEventsOfACommit(t *testing.T) {
	plain := (&CommitEntry{Epoch: 1, Job: 2, Round: 3, Total: 1, Data: []byte{1}}).Append(nil)
	for events, valid := range map[int]bool{0: true, 1: true, MaxNewEvents: true, MaxNewEvents + 1: false} {
		e := CommitEntry{Epoch: 1, Job: 2, Round: 3, Total: 1, Data: []byte{1},
			Events: slices.Repeat(sampleEvents[:1], events)}
		b := e.Append(nil)
		if (len(b) == len(plain)) != (events == 0) {
			t.Errorf("%d events: %d bytes, without events %d", events, len(b), len(plain))
		}
		var read CommitEntry
		if err := read.Decode(b); (err == nil) != valid || valid && !slices.Equal(read.Events, e.Events) {
			t.Errorf("%d events are read as %+v: %v", events, read.Events, err)
		}
	}
	if err := new(CommitEntry).Decode(append(plain, 0, 0, 0, 0)); err == nil {
		t.Error("an empty list is read")
	}
	u64 := func(v uint64) uint64 { return v }
	want := append(slices.Clone(plain), box(uint32(2), u64(3), 1700000000.25, "worker_lost", sampleEvents[0].Text, "w2",
		"", u64(900), u64(4500), 12.5, u64(5), 0.0, "leader_changed", "", "", "a", u64(0), u64(0), 0.0)[1:]...)
	got := (&CommitEntry{Epoch: 1, Job: 2, Round: 3, Total: 1, Data: []byte{1}, Events: sampleEvents}).Append(nil)
	if !bytes.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got, want)
	}
	for n := len(plain) + 1; n < len(got); n++ {
		if err := new(CommitEntry).Decode(got[:n:n]); !errors.Is(err, ErrMessage) {
			t.Errorf("%d of %d bytes are read: %v", n, len(got), err)
		}
	}
	worst := NumberedEvent{JobEvent: JobEvent{Kind: EventKind(strings.Repeat("k", maxEventKind)),
		Text: strings.Repeat("t", maxEventText), Worker: strings.Repeat("w", maxEventName),
		Coordinator: strings.Repeat("c", maxEventName)}}
	full := CommitEntry{Total: CommitChunk, Blob: "", Progress: make([]byte, MaxProgress), Curve: make([]byte, MaxCurve),
		Data: make([]byte, CommitChunk), Events: slices.Repeat([]NumberedEvent{worst}, MaxNewEvents)}
	if n := len(full.Append(nil)); n > 520<<10 {
		t.Errorf("the greatest commit has %d bytes", n)
	}
}
