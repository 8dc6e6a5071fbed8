package coordinator

import (
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/storetest"
	"github.com/coppice-ldl/coppice/protocol"
)

func entry(id, host string) protocol.MemberEntry {
	return protocol.MemberEntry{ID: id, HTTP: host + ":7100", Raft: host + ":7101", NATS: "nats://" + host + ":7102",
		Routes: host + ":7103", Version: "1"}
}

// bookOf returns the addresses that a knows, started with peers on these hosts, in a folder that
// has kept.
func bookOf(t *testing.T, given map[string]string, kept memberFile) *addressBook {
	t.Helper()
	c := Config{ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", "here", 7100}}}
	for _, id := range []string{"b", "c", "d"} {
		if host, ok := given[id]; ok {
			c.Peers = append(c.Peers, Peer{id, host, 7100})
		}
	}
	if len(kept.Members) > 0 {
		if err := kept.write(c.Dir); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.prepared(false)
	if err != nil {
		t.Fatal(err)
	}
	return newAddressBook(&s.Config, kept)
}

// TestAddressBookFinds: the log decides at which address a member is, unless --peers has
// changed since.
func TestAddressBookFinds(t *testing.T) {
	kept := memberFile{
		Format: membersFormat, Members: []protocol.MemberEntry{entry("a", "here"), entry("b", "old"), entry("d", "joined")},
		Given: map[string]string{"b": "first:7100", "c": "gone:7100"},
	}
	for name, test := range map[string]struct {
		given map[string]string
		want  string // HTTP of b
		known string
	}{
		"as at the first start":    {map[string]string{"b": "first", "c": "gone"}, "old:7100", "abd"},
		"moved by the operator":    {map[string]string{"b": "new", "c": "gone"}, "new:7100", "abd"},
		"not named":                {nil, "old:7100", "abd"},
		"a peer that is no member": {map[string]string{"b": "first", "c": "back"}, "old:7100", "abcd"},
	} {
		r := bookOf(t, test.given, kept)
		got, ok := r.find("b")
		if !ok || got.HTTP != test.want {
			t.Errorf("%s: b is at %q", name, got.HTTP)
		}
		var known string
		for _, m := range r.known() {
			known += m.ID
		}
		if known != test.known {
			t.Errorf("%s: known are %q", name, known)
		}
		if d, ok := r.find("d"); !ok || d.Raft != "joined:7101" || r.raft("d") != d.Raft {
			t.Errorf("%s: d is at %q", name, d.Raft)
		}
		if _, ok := r.find("z"); ok {
			t.Errorf("%s: z is found", name)
		}
	}
	fresh := bookOf(t, map[string]string{"b": "x", "c": "y"}, memberFile{})
	if got := fresh.known(); len(got) != 3 || got[0].HTTP != "here:7100" || got[2].Routes != "y:7103" {
		t.Errorf("at the first start: %+v", got)
	}
}

// TestMembersFileIsWhole: while the log has the addresses of a part of the members, MEMBERS keeps what it had of
// the others. A coordinator that ends then, and loses its log, would not find them.
func TestMembersFileIsWhole(t *testing.T) {
	s, _ := storetest.Leading(t)
	if err := s.AddNonvoter(testkit.Context(t), store.Server{ID: "b", Directory: "0123456789ab",
		RaftAddr: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	own := s.Members()[0].ID
	if _, _, err := s.Propose(testkit.Context(t), protocol.EncodeEntry(protocol.EntryMember,
		entry(own, "new"))); err != nil {
		t.Fatal(err)
	}
	kept := memberFile{Format: membersFormat, Members: []protocol.MemberEntry{entry(own, "old"), entry("b", "there"),
		entry("gone", "away")}}
	got := bookOf(t, nil, kept).current(s)
	if len(got.Members) != 2 || got.Members[0].HTTP != "new:7100" || got.Members[1].HTTP != "there:7100" {
		t.Errorf("%+v", got.Members)
	}
}
