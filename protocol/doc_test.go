package protocol

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentListsEverything: PROTOCOL.md has a row for each message and entry,
// with its kind and form.
func TestDocumentListsEverything(t *testing.T) {
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	messages, entries, _ := strings.Cut(string(b), "## Log entries")
	for _, c := range codecs() {
		text, name, form := messages, c.name, "JSON"
		if after, ok := strings.CutPrefix(name, "entry/"); ok {
			text, name = entries, after
		}
		name, _, _ = strings.Cut(name, "/")
		if c.binary {
			form = "binary"
		}
		if row := "| " + strings.Join([]string{strconv.Itoa(int(c.kind)), name, form}, " | ") +
			" |"; !strings.Contains(text, row) {
			t.Errorf("PROTOCOL.md lacks a row %q", row)
		}
	}
}

// TestSubjects of a cluster begin with its ID, and differ from each other.
func TestSubjects(t *testing.T) {
	s := Subjects{Cluster: "c1"}
	want := []string{
		"coppice.c1.beat.w1", "coppice.c1.lead", "coppice.c1.work.w1", "coppice.c1.results.a.12.w1",
		"coppice.c1.results.a.*.w1",
		"coppice.c1.fetch.w1", "coppice.c1.blobs.coordinator.a", "coppice.c1.blobs.worker.w1", "coppice.c1.replicate.a",
		"coppice.c1.answers.w1", "coppice.c1.inbox.a",
	}
	for i, got := range []string{
		s.Heartbeats("w1"), s.Lead(), s.Work("w1"), ResultsOf(s.Results("a", 12), "w1"), s.AllResults("a", "w1"),
		s.Fetch("w1"), s.CoordinatorBlobs("a"), s.WorkerBlobs("w1"), s.Replicate("a"),
		s.Answers("w1"), s.Inbox("a"),
	} {
		if got != want[i] {
			t.Errorf("subject %q, want %q", got, want[i])
		}
	}
}
