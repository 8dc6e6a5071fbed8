package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

func entry(id, host string) protocol.MemberEntry {
	return protocol.MemberEntry{ID: id, HTTP: host + ":7100", Raft: host + ":7101", NATS: "nats://" + host + ":7102", Routes: host + ":7103", Version: "1"}
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

// The log decides where a member is, unless --peers was changed since.
func TestRosterFinds(t *testing.T) {
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

// Others are told a place that they can reach.
func TestReached(t *testing.T) {
	c := Config{ID: "a", Peers: []Peer{{"a", "10.0.0.1", 7100}}, Listen: Listen{"0.0.0.0:80", ":81", "[::]:82", "10.0.0.9:83"}}
	want := protocol.MemberEntry{ID: "a", HTTP: "10.0.0.1:80", Raft: "10.0.0.1:81", NATS: "nats://10.0.0.1:82", Routes: "10.0.0.9:83"}
	got := c.entry()
	got.Version = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeptMembers(t *testing.T) {
	dir := t.TempDir()
	k, damaged, err := readMembers(dir)
	if err != nil || damaged != nil || len(k.Members) > 0 || k.Used {
		t.Fatalf("of a new folder: %+v, %v, %v", k, damaged, err)
	}
	k = memberFile{Format: membersFormat, Members: []protocol.MemberEntry{entry("b", "x")}, Given: map[string]string{"b": "x:1"}, External: "nats://y"}
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	again, damaged, err := readMembers(dir)
	if diff := cmp.Diff(k, again); err != nil || damaged != nil || diff != "" {
		t.Errorf("%v, %v: %s", damaged, err, diff)
	}
	for _, text := range []string{`{"format":1}`, `{"format":3}`} {
		if err := os.WriteFile(filepath.Join(dir, membersName), []byte(checksum(text)+"\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readMembers(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "MEMBERS")) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Whatever bit of MEMBERS flips, or whatever else is there in its place, the copy has the
// list. If both are damaged it is known that there was one.
func TestDamagedMembers(t *testing.T) {
	dir := t.TempDir()
	k := memberFile{Format: membersFormat, Members: []protocol.MemberEntry{entry("b", "x")}, Given: map[string]string{"b": "x:1"}, External: "nats://y"}
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	file, second := filepath.Join(dir, membersName), filepath.Join(dir, membersCopy)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := [][]byte{nil, []byte("{"), good[:len(good)-1], make([]byte, maxMembers+1)}
	for bit := range 8 * len(good) {
		b := slices.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		spoilt = append(spoilt, b)
	}
	for i, b := range spoilt {
		if err := errors.Join(os.WriteFile(file, b, 0o600), os.WriteFile(second, good, 0o600)); err != nil {
			t.Fatal(err)
		}
		got, damaged, err := readMembers(dir)
		if diff := cmp.Diff(k, got); err != nil || !errors.Is(damaged, store.ErrCorrupt) || !strings.Contains(damaged.Error(), file) || diff != "" {
			t.Fatalf("%d: %v, %v: %s", i, damaged, err, diff)
		}
		if err := os.WriteFile(second, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, damaged, err = readMembers(dir)
		if diff := cmp.Diff(memberFile{Format: membersFormat, Used: true}, got); err != nil || !errors.Is(damaged, store.ErrCorrupt) || diff != "" {
			t.Fatalf("both, %d: %v, %v: %s", i, damaged, err, diff)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, good, 0o600); err != nil {
		t.Fatal(err)
	}
	got, damaged, err := readMembers(dir)
	if diff := cmp.Diff(k, got); err != nil || damaged != nil || diff != "" {
		t.Errorf("without the first: %v, %v: %s", damaged, err, diff)
	}
}

// A coordinator behind a proxy is where --peers says, wherever it listens, and has to be
// told.
func TestProxied(t *testing.T) {
	c := Config{ID: "a", Dir: t.TempDir(), Proxied: true, Listen: Listen{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}}
	if _, err := c.prepared(false); !errors.Is(err, ErrUsage) {
		t.Errorf("without --peers: %v", err)
	}
	c.Peers = []Peer{{"a", "outside", 7100}}
	s, err := c.prepared(false)
	if err != nil {
		t.Fatal(err)
	}
	m := s.entry()
	if m.HTTP != "outside:7100" || m.Raft != "outside:7101" || m.NATS != "nats://outside:7102" || m.Routes != "outside:7103" || s.Listen.Raft != "127.0.0.1:2" {
		t.Errorf("%+v, Raft listens at %s", m, s.Listen.Raft)
	}
	s.Proxied = false
	if m := s.entry(); m.HTTP != "127.0.0.1:1" {
		t.Errorf("without a proxy: %+v", m)
	}
}
