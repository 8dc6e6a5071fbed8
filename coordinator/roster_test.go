package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/protocol"
)

func entry(id, host string) protocol.MemberEntry {
	return protocol.MemberEntry{ID: id, HTTP: host + ":7100", Raft: host + ":7101", NATS: "nats://" + host + ":7102", Routes: host + ":7103", Version: "1"}
}

// rosterOf is the roster of a, started with peers on these hosts, in a folder that
// kept others.
func rosterOf(t *testing.T, given map[string]string, kept keptMembers) *roster {
	t.Helper()
	c := Config{ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", "here", 7100}}}
	for _, id := range []string{"b", "c", "d"} {
		if host, ok := given[id]; ok {
			c.Peers = append(c.Peers, Peer{id, host, 7100})
		}
	}
	c.kept = kept
	c, err := c.prepared()
	if err != nil && len(kept.Members) == 0 {
		t.Fatal(err)
	}
	return newRoster(&c, kept)
}

// The log decides where a member is, unless --peers was changed since.
func TestRosterFinds(t *testing.T) {
	kept := keptMembers{
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
		r := rosterOf(t, test.given, kept)
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
	fresh := rosterOf(t, map[string]string{"b": "x", "c": "y"}, keptMembers{})
	if got := fresh.known(); len(got) != 3 || got[0].HTTP != "here:7100" || got[2].Routes != "y:7103" {
		t.Errorf("at the first start: %+v", got)
	}
}

// Others are told a place that they can reach.
func TestReached(t *testing.T) {
	c := Config{ID: "a", Peers: []Peer{{"a", "10.0.0.1", 7100}}, HTTPAddr: "0.0.0.0:80", RaftAddr: ":81", NATSAddr: "[::]:82", RouteAddr: "10.0.0.9:83"}
	want := protocol.MemberEntry{ID: "a", HTTP: "10.0.0.1:80", Raft: "10.0.0.1:81", NATS: "nats://10.0.0.1:82", Routes: "10.0.0.9:83"}
	got := c.entry()
	got.Version = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeptMembers(t *testing.T) {
	dir := t.TempDir()
	k, err := readMembers(dir)
	if err != nil || len(k.Members) > 0 {
		t.Fatalf("of a new folder: %+v, %v", k, err)
	}
	k = keptMembers{Format: membersFormat, Members: []protocol.MemberEntry{entry("b", "x")}, Given: map[string]string{"b": "x:1"}, External: "nats://y"}
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := readMembers(dir)
	if diff := cmp.Diff(k, again); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	for _, text := range []string{"", "{", `{"format":2}`, strings.Repeat(" ", maxMembers+1)} {
		if err := os.WriteFile(membersFile(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readMembers(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "MEMBERS")) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// A coordinator behind a proxy is where --peers says, wherever it listens, and has to be
// told.
func TestProxied(t *testing.T) {
	c := Config{ID: "a", Dir: t.TempDir(), Proxied: true, HTTPAddr: "127.0.0.1:1", RaftAddr: "127.0.0.1:2", NATSAddr: "127.0.0.1:3", RouteAddr: "127.0.0.1:4"}
	if _, err := c.prepared(); !errors.Is(err, ErrUsage) {
		t.Errorf("without --peers: %v", err)
	}
	c.Peers = []Peer{{"a", "outside", 7100}}
	c, err := c.prepared()
	if err != nil {
		t.Fatal(err)
	}
	m := c.entry()
	if m.HTTP != "outside:7100" || m.Raft != "outside:7101" || m.NATS != "nats://outside:7102" || m.Routes != "outside:7103" || c.RaftAddr != "127.0.0.1:2" {
		t.Errorf("%+v, Raft listens at %s", m, c.RaftAddr)
	}
	c.Proxied = false
	if m := c.entry(); m.HTTP != "127.0.0.1:1" {
		t.Errorf("without a proxy: %+v", m)
	}
}
