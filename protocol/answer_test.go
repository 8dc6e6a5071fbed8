package protocol

import "testing"

// TestMayAnswer: coordinators answer a worker on its own subject, coordinators on theirs, and
// nobody anywhere else.
func TestMayAnswer(t *testing.T) {
	s := Subjects{Cluster: "c"}
	others := []string{s.Lead(), s.Heartbeats("w"), s.Work("w"), s.WorkerBlobs("w"), s.CoordinatorBlobs("a"), s.Fetch("w"),
		s.Replicate("a"), Subjects{Cluster: "d"}.Answers("w") + ".x", "_INBOX.x", ""}
	worker, coordinator := s.Answers("w")+".x.y", s.Inbox("a")+".x"
	for subject, want := range map[string]string{
		s.Fetch("w"): worker, s.Fetch("w") + PassedOn: worker, s.CoordinatorBlobs("a"): coordinator,
		s.Replicate("a"): coordinator,
	} {
		for _, reply := range append(others, worker, coordinator, s.Answers("other")+".x", s.Answers("w")) {
			if got := s.MayAnswer(subject, reply); got != (reply == want) {
				t.Errorf("a request on %s, answered on %q: %v", subject, reply, got)
			}
		}
	}
}
