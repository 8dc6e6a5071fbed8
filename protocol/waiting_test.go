package protocol

import "testing"

// A coordinator whose address is not known yet is not joined.
func TestNoWorker(t *testing.T) {
	join := JoinList([]MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b"}, {ID: "c", HTTP: "c:1"}})
	if got, want := NoWorker(join), "no worker is connected; start a worker: coppice worker --join a:1,c:1 --dir DIR"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
