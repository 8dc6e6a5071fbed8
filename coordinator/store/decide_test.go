package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var errDown = errors.New("it is down")

func TestDecide(t *testing.T) {
	self := Answer{Phase: PhaseNew, ID: "a", Directory: "1", Peers: "p", Heartbeat: time.Second}
	fresh := func(id string) reply {
		return reply{Answer: Answer{Phase: PhaseNew, ID: id, Directory: id + "1", Peers: "p", Heartbeat: time.Second}}
	}
	with := func(r reply, change func(*Answer)) reply {
		change(&r.Answer)
		return r
	}
	founders := []Server{{ID: "a", Directory: "1"}, {ID: "b", Directory: "b1"}, {ID: "c", Directory: "c1"}}
	member := func(cluster string, servers ...Server) reply {
		return reply{Answer: Answer{Phase: PhaseMember, Cluster: cluster, Members: servers}}
	}
	down := reply{err: errDown}
	for name, test := range map[string]struct {
		self Answer
		b, c reply
		want string // begins, adopts, joins, or a part of what it waits for
	}{
		"all down":               {self, down, down, "it is down"},
		"one down":               {self, fresh("b"), down, "it is down"},
		"all new":                {self, fresh("b"), fresh("c"), "begins"},
		"another decides":        {Answer{Phase: PhaseNew, ID: "x", Directory: "1", Peers: "p", Heartbeat: time.Second}, fresh("b"), fresh("c"), "b starts the cluster"},
		"another list":           {self, fresh("b"), with(fresh("c"), func(a *Answer) { a.Peers = "q" }), "c has --peers q"},
		"another heartbeat":      {self, with(fresh("b"), func(a *Answer) { a.Heartbeat = 2 }), fresh("c"), "b has --heartbeat 2ns"},
		"about to begin":         {self, with(fresh("b"), func(a *Answer) { a.Phase = PhaseOpening }), fresh("c"), "b is starting"},
		"begun with this":        {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x", Founders: founders}}, down, "adopts"},
		"begun with another":     {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x", Founders: []Server{{ID: "a", Directory: "0"}}}}, fresh("c"), "joins"},
		"a member":               {self, member("x", Server{ID: "a", Directory: "0"}), down, "joins"},
		"no member":              {self, member("x", Server{ID: "b", Directory: "0"}), down, "a is not one of them"},
		"its log is not open":    {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x"}}, down, "b is still reading its log; it is down"},
		"two clusters":           {self, member("x", Server{ID: "a"}), member("y", Server{ID: "a"}), "c is a member of cluster y, not of cluster x: give every coordinator folders of one cluster"},
		"another cluster":        {with(reply{self, nil}, func(a *Answer) { a.Cluster = "z" }).Answer, member("x", Server{ID: "a"}), down, "b is a member of cluster x, not of cluster z: give every coordinator folders of one cluster"},
		"its own cluster":        {with(reply{self, nil}, func(a *Answer) { a.Cluster = "x" }).Answer, member("x", Server{ID: "a"}), down, "joins"},
		"it has lost its log":    {with(reply{self, nil}, func(a *Answer) { a.Cluster = "x" }).Answer, fresh("b"), fresh("c"), "this coordinator was a member of cluster x, but no coordinator that answers has its log"},
		"b has lost its log":     {self, with(fresh("b"), func(a *Answer) { a.Cluster = "x" }), fresh("c"), "b was a member of cluster x and has lost its log"},
		"b alone was restored":   {self, with(fresh("b"), func(a *Answer) { a.Cluster, a.Seeded = "x", true }), fresh("c"), "b was restored from a backup, and a was not"},
		"this alone is restored": {with(reply{self, nil}, func(a *Answer) { a.Cluster, a.Seeded = "x", true }).Answer, fresh("b"), fresh("c"), "a was restored from a backup, and b was not"},
		"all restored": {with(reply{self, nil}, func(a *Answer) { a.Cluster, a.Seeded = "x", true }).Answer,
			with(fresh("b"), func(a *Answer) { a.Cluster, a.Seeded = "x", true }), with(fresh("c"), func(a *Answer) { a.Cluster, a.Seeded = "x", true }), "begins"},
	} {
		d := decide(&test.self, map[string]reply{"b": test.b, "c": test.c})
		got := strings.Join(d.waits, "; ")
		switch {
		case d.cluster == "":
		case len(d.founders) == 0:
			got = "joins"
		case d.from != "":
			got = "adopts"
		default:
			got = "begins"
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if test.self.Cluster != "" && d.cluster != "" && d.cluster != test.self.Cluster {
			t.Errorf("%s: cluster %s", name, d.cluster)
		}
		if got == "begins" && !slices.EqualFunc(d.founders, founders, func(a, b Server) bool { return a.ID == b.ID && a.Directory == b.Directory }) {
			t.Errorf("%s: founders %v", name, d.founders)
		}
	}
}

// FuzzIdentity: a FORMAT file is read as it was written, or refused.
func FuzzIdentity(f *testing.F) {
	whole := Identity{ID: "a", Directory: "12", Cluster: "c", Founders: []Server{{"a", "12", "h:1"}}, Seeded: true}
	f.Add([]byte(whole.encode()))
	f.Add([]byte("coppice raft folder, format 5, node b\n00000000 {}\n"))
	f.Add([]byte("coppice raft folder, format 4, node a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := parseIdentity(b, "a")
		if err != nil {
			return
		}
		again, err := parseIdentity([]byte(i.encode()), i.ID)
		if err != nil || again.Directory != i.Directory || again.Cluster != i.Cluster || !slices.Equal(again.Founders, i.Founders) {
			t.Fatalf("%+v is read again as %+v: %v", i, again, err)
		}
	})
}

// Any one bit of either copy of FORMAT may flip: the identity stays what it is.
func TestIdentitySurvivesABit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Identity{ID: "a", Directory: NewID(), Cluster: NewID(), Founders: []Server{{"a", "1", "h:1"}, {"b", "2", "h:2"}}}
		b := []byte(i.encode())
		at := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		b[at/8] ^= 1 << (at % 8)
		if got, err := parseIdentity(b, "a"); err == nil && (got.Directory != i.Directory || got.Cluster != i.Cluster) {
			t.Fatalf("bit %d: read as %+v", at, got)
		}
	})
}

func TestParseServer(t *testing.T) {
	s := Server{ID: "node-1", Directory: "ab12", RaftAddr: "[::1]:7101"}
	if got := parseServer(s.raftID(), s.address()); got != s {
		t.Errorf("%+v is read as %+v", s, got)
	}
}
