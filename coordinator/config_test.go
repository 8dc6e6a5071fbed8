package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// started returns why Run would not begin.
func started(c Config) error {
	_, err := c.prepared(true)
	return err
}

// Ids and addresses that cannot be a coordinator's are wrong usage.
func TestWrongAddresses(t *testing.T) {
	three := func(a, b, c Peer) []Peer { return []Peer{a, b, c} }
	far := func(peers ...Peer) []Peer {
		return append(peers, Peer{"b", "10.0.0.2", 7100}, Peer{"c", "10.0.0.3", 7100})
	}
	for name, test := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"a slash in the id": {func(c *Config) { c.ID = "c/d"; c.Peers = []Peer{{"c/d", "h", 7100}} }, "letters, digits"},
		"another's id": {func(c *Config) {
			c.Peers = three(Peer{"a", "h", 1}, Peer{"x\xff", "i", 1}, Peer{"c", "j", 1})
		}, "letters, digits"},
		"a long id":           {func(c *Config) { c.ID = strings.Repeat("x", 65); c.Peers = nil }, "letters, digits"},
		"all interfaces":      {func(c *Config) { c.Peers = []Peer{{"a", "0.0.0.0", 7100}} }, "--http 0.0.0.0:PORT"},
		"all of IPv6":         {func(c *Config) { c.Peers = far(Peer{"a", "::", 7100}) }, "all interfaces"},
		"no host":             {func(c *Config) { c.Peers = []Peer{{"a", "", 7100}} }, "want HOST:PORT"},
		"a high port":         {func(c *Config) { c.Peers = []Peer{{"a", "h", 65533}} }, "at most 65532"},
		"no port to be told":  {func(c *Config) { c.Listen.Raft = "127.0.0.1:0" }, "--raft"},
		"a join without port": {func(c *Config) { c.Join = []string{"::1"} }, "--join-cluster"},
		"ports that meet": {func(c *Config) {
			c.Peers = three(Peer{"a", "h", 7100}, Peer{"b", "h", 7101}, Peer{"c", "i", 7100})
		}, "a uses h:7100 to 7103, b uses h:7101 to 7104"},
		"the same place": {func(c *Config) {
			c.Peers = three(Peer{"a", "h", 7100}, Peer{"b", "i", 7100}, Peer{"c", "I.", 7100})
		}, "b and c on the same host"},
		"names of loopback": {func(c *Config) {
			c.Peers = three(Peer{"a", "localhost", 7100}, Peer{"b", "127.0.0.1", 7103}, Peer{"c", "i", 7100})
		}, "need some of the same ports"},
		"a moved port": {func(c *Config) {
			c.Peers = far(Peer{"a", "10.0.0.1", 7100})
			c.Listen.Raft = "10.0.0.2:7103"
		}, "--raft: Raft of this coordinator is at 10.0.0.2:7103, but --peers gives that address to NATS routes of b"},
		"one port twice": {func(c *Config) {
			c.Listen.Raft = "127.0.0.1:7102"
		}, "--raft 127.0.0.1:7102 and --nats-listen 127.0.0.1:7102"},
		"on all interfaces": {func(c *Config) {
			c.Listen.HTTP, c.Listen.NATS = ":7100", "127.0.0.1:7100"
		}, "the same address"},
	} {
		c := Config{ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", "127.0.0.1", 7100}}}
		test.change(&c)
		if err := started(c); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Listening on all interfaces, neighbours on one host, and two ports each with an external
// NATS are right.
func TestRightAddresses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"all interfaces": func(c *Config) {
			c.Listen = Listen{HTTP: "0.0.0.0:7100", Raft: "[::]:7101", NATS: ":7102", Routes: "0.0.0.0:7103"}
		},
		"neighbours": func(c *Config) { c.Peers = []Peer{{"a", "h", 7100}, {"b", "h", 7104}, {"c", "h", 7108}} },
		"two of each family": func(c *Config) {
			c.Peers = []Peer{{"a", "127.0.0.1", 7100}, {"b", "::1", 7100}, {"c", "127.0.0.2", 7100}}
		},
		"external NATS": func(c *Config) {
			c.NATS, c.Peers = "nats://n:4222", []Peer{{"a", "h", 7100}, {"b", "h", 7102}, {"c", "h", 7104}}
		},
		"a moved port": func(c *Config) { c.Listen.Raft = "127.0.0.1:9000" },
		"behind a proxy": func(c *Config) {
			c.Proxied, c.Listen = true, Listen{HTTP: "127.0.0.1:1", Raft: "127.0.0.1:2", NATS: "127.0.0.1:3",
				Routes: "127.0.0.1:4"}
		},
	} {
		c := Config{ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", "10.0.0.1", 7100}}}
		change(&c)
		if err := started(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder that says that its coordinator is at all interfaces is refused with the remedy,
// which helps.
func TestFolderOfNoAddress(t *testing.T) {
	dir := t.TempDir()
	kept := memberFile{Format: membersFormat, Members: []protocol.MemberEntry{{ID: "a", HTTP: "0.0.0.0:7100",
		Raft: "0.0.0.0:7101", NATS: "nats://0.0.0.0:7102", Routes: "0.0.0.0:7103"}}}
	if err := kept.write(dir); err != nil {
		t.Fatal(err)
	}
	c := Config{ID: "a", Dir: dir}
	if err := started(c); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--address") {
		t.Errorf("got %v", err)
	}
	c.Peers = []Peer{{"a", "10.0.0.1", 7100}}
	if err := started(c); err != nil {
		t.Error(err)
	}
}

// notHere is an address of no machine (RFC 5737).
const notHere = "192.0.2.1"

// A port at which a coordinator cannot listen is named with what to do, for each of the
// four, and who does it has a coordinator that runs.
func TestCannotListen(t *testing.T) {
	taken := testkit.Listen(t)
	t.Cleanup(func() { taken.Close() })
	blocks, err := freeport.Blocks(1)
	if err != nil {
		t.Fatal(err)
	}
	for i, port := range ports {
		for address, want := range map[string]error{net.JoinHostPort(notHere, "7100"): syscall.EADDRNOTAVAIL,
			taken.Addr().String(): syscall.EADDRINUSE} {
			c := Config{ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", "127.0.0.1", blocks[0]}}}
			*c.Listen.all()[i] = address
			err := Run(testkit.Context(t), c)
			says := []string{address, port.what, port.flag}
			if want == syscall.EADDRNOTAVAIL {
				says = append(says, "this machine does not have that address", "--behind-proxy", "--http", "--raft",
					"--nats-listen", "--nats-routes")
			}
			for _, text := range says {
				if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
					t.Errorf("%s at %s: %v does not say %q", port.what, address, err, text)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	here := func(offset int) string { return fmt.Sprintf("127.0.0.1:%d", blocks[0]+offset) }
	up := false
	var healthy, ended error
	err = Run(ctx, Config{
		ID: "a", Dir: t.TempDir(), Peers: []Peer{{"a", notHere, 7100}}, Proxied: true, Listen: Listen{HTTP: here(0),
			Raft: here(1), NATS: here(2), Routes: here(3)},
		Up: func(ctx context.Context, check func(context.Context) error) {
			up, healthy = true, check(ctx)
			cancel()
			ended = check(ctx) // no loop answers
		},
	})
	if healthy != nil || ended == nil {
		t.Errorf("the check says %v, and at the end %v", healthy, ended)
	}
	if !up || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("with the flags that the error names: up %v, %v", up, err)
	}
}

// Whatever is asked for, the parts are within the whole, and the connections within
// what the process may have open.
func TestPartsFitTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Budget{
			Messages:    rapid.Int64Range(0, 1<<40).Draw(t, "messages"),
			Connections: rapid.IntRange(0, 1<<20).Draw(t, "connections"),
		}.prepared()
		if err != nil {
			if !errors.Is(err, ErrUsage) {
				t.Fatal(err)
			}
			return
		}
		p := b.parts()
		if sum := p.send + p.received + 2*p.backlog + p.bodies; sum > b.Messages || p.largest() > p.received ||
			p.backlog < 4<<20 {
			t.Fatalf("%+v of %d", p, b.Messages)
		}
		may := rapid.Uint64Range(0, 1<<23).Draw(t, "descriptors")
		fit, note, err := b.within(may)
		if err != nil {
			if may >= ownDescriptors+perConnection*LeastConnections || !strings.Contains(err.Error(), "ulimit -n") {
				t.Fatalf("%d descriptors: %v", may, err)
			}
			return
		}
		if uint64(ownDescriptors+perConnection*fit.Connections) > may || fit.Connections < LeastConnections ||
			(note == "") != (fit == b) {
			t.Fatalf("%d descriptors: %+v of %+v, %q", may, fit, b, note)
		}
	})
}

// TestLostFolder: the error of a coordinator that has lost its folder names the remedy, which depends on who has a
// copy.
func TestLostFolder(t *testing.T) {
	gone := fmt.Errorf("d/raft: %w", files.ErrGone)
	a, b := entry("a", "h:1"), entry("b", "h:2")
	a.HTTP, b.HTTP = "h:1", "h:2"
	for name, test := range map[string]struct {
		cfg     Config
		members []protocol.MemberEntry
		want    string
	}{
		"alone":          {Config{Dir: "d"}, []protocol.MemberEntry{a}, "coppice restore FILE --dir d"},
		"one of several": {Config{Dir: "d", Peers: []Peer{{}, {}, {}}}, []protocol.MemberEntry{a, b}, "with the same flags"},
		"it joined": {Config{Dir: "d", Peers: []Peer{{}}, Join: []string{"h:1"}}, []protocol.MemberEntry{a, b},
			"with the same flags"},
		"it began alone":  {Config{Dir: "d", Peers: []Peer{{}}}, []protocol.MemberEntry{a, b}, "--peers a=h:1,b=h:2"},
		"it has no peers": {Config{Dir: "d"}, nil, "coppice restore FILE --dir d"},
	} {
		if err := test.cfg.lostFolder(gone, test.members); !errors.Is(err, files.ErrGone) ||
			!strings.Contains(err.Error(), "d/raft") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", name, err, test.want)
		}
	}
	other := errors.New("other")
	if err := new(Config).lostFolder(other, nil); err != other {
		t.Errorf("%v", err)
	}
	if err := new(Config).lostFolder(nil, nil); err != nil {
		t.Errorf("%v", err)
	}
}

// Others are told a place that they can reach.
func TestReached(t *testing.T) {
	c := Config{ID: "a", Peers: []Peer{{"a", "10.0.0.1", 7100}}, Listen: Listen{HTTP: "0.0.0.0:80", Raft: ":81",
		NATS: "[::]:82", Routes: "10.0.0.9:83"}}
	want := protocol.MemberEntry{ID: "a", HTTP: "10.0.0.1:80", Raft: "10.0.0.1:81", NATS: "nats://10.0.0.1:82",
		Routes: "10.0.0.9:83"}
	got := c.entry()
	got.Version = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestProxied: a coordinator behind a proxy is at its address in --peers, even if it
// listens at another one. It needs that address.
func TestProxied(t *testing.T) {
	c := Config{ID: "a", Dir: t.TempDir(), Proxied: true, Listen: Listen{HTTP: "127.0.0.1:1", Raft: "127.0.0.1:2",
		NATS: "127.0.0.1:3", Routes: "127.0.0.1:4"}}
	if _, err := c.prepared(false); !errors.Is(err, ErrUsage) {
		t.Errorf("without --peers: %v", err)
	}
	c.Peers = []Peer{{"a", "outside", 7100}}
	s, err := c.prepared(false)
	if err != nil {
		t.Fatal(err)
	}
	m := s.entry()
	if m.HTTP != "outside:7100" || m.Raft != "outside:7101" || m.NATS != "nats://outside:7102" ||
		m.Routes != "outside:7103" || s.Listen.Raft != "127.0.0.1:2" {
		t.Errorf("%+v, Raft listens at %s", m, s.Listen.Raft)
	}
	s.Proxied = false
	if m := s.entry(); m.HTTP != "127.0.0.1:1" {
		t.Errorf("without a proxy: %+v", m)
	}
}
