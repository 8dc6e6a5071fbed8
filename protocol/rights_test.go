package protocol

import (
	"slices"
	"strings"
	"testing"
)

// Nothing that a worker sends is heard by another, whatever it calls itself, and each
// hears what is for it alone and for all.
func TestWorkersHearCoordinatorsOnly(t *testing.T) {
	s := Subjects{Cluster: "c"}
	for _, name := range []string{"w", "w1", "", "*", ">", "a.b", "a b", "*.>"} {
		for _, heard := range s.WorkerHears(name) {
			for _, sent := range s.WorkerSends() {
				if overlap(strings.Split(heard, "."), strings.Split(sent, ".")) {
					t.Errorf("%q sends %s, and hears %s", name, sent, heard)
				}
			}
			own := heard == s.Lead() || strings.Contains(heard+".", "."+name+".")
			if !own || strings.Contains(heard, "*") || strings.HasSuffix(heard, ">") && heard != s.Answers(name)+".>" {
				t.Errorf("%q hears %s", name, heard)
			}
		}
	}
	for _, subject := range []string{s.Lead(), s.Work("w"), s.BlobsOf("w")} {
		if !slices.Contains(s.WorkerHears("w"), subject) {
			t.Errorf("a worker does not hear %s", subject)
		}
	}
}

// overlap reports whether a subject can match both patterns of NATS.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == ">" || b[i] == ">":
			return true
		case a[i] != b[i] && a[i] != "*" && b[i] != "*":
			return false
		}
	}
	return len(a) == len(b)
}

// Who has no name that a worker can have hears the leader alone: not what coordinators pass
// on to all, either.
func TestStrangeNamesHearTheLeader(t *testing.T) {
	s := Subjects{Cluster: "c"}
	for _, name := range []string{"", "$all", "a/b", "é", "a\x00"} {
		if heard := s.WorkerHears(name); !slices.Equal(heard, []string{s.Lead()}) {
			t.Errorf("%q hears %q", name, heard)
		}
	}
}

// Coordinators answer where requests are answered, and nowhere else.
func TestMayAnswer(t *testing.T) {
	s := Subjects{Cluster: "c"}
	for _, reply := range []string{s.Answers("w") + ".x.y", "_INBOX.x"} {
		if !s.MayAnswer(reply) {
			t.Errorf("no answer on %s", reply)
		}
	}
	for _, reply := range []string{s.Lead(), s.Heartbeats(), s.Work("w"), s.BlobsOf("w"), s.Blobs(), s.Replicate("a"), "_INBOXES.x", Subjects{Cluster: "d"}.Answers("w") + ".x"} {
		if s.MayAnswer(reply) {
			t.Errorf("an answer on %s", reply)
		}
	}
}
