package protocol

import "testing"

// A coordinator whose address is not known yet is not joined.
func TestNoWorker(t *testing.T) {
	join := JoinList([]MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b"}, {ID: "c", HTTP: "c:1"}})
	for security, want := range map[string]string{
		SecurityFlags(false, false): "coppice worker --join a:1,c:1 --dir DIR",
		SecurityFlags(false, true):  "coppice worker --join a:1,c:1 --dir DIR --insecure",
		SecurityFlags(true, false):  "coppice worker --join a:1,c:1 --dir DIR --tls-dir CERTS",
	} {
		if got := NoWorker(StartWorker(join, security)); got != "no worker is connected; start a worker: "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
