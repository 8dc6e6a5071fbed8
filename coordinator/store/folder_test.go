package store

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestOpenRefuses: each refusal names what is at fault and leaves nothing behind.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	busy := c.leader().Addr()
	file := filepath.Join(t.TempDir(), "file")
	full := t.TempDir()
	for _, path := range []string{file, filepath.Join(full, "thesis.tex")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   error
		names  string
	}{
		"locked folder":   {func(c *Config) {}, ErrLocked, filepath.Join(c.dir, "a")},
		"busy port":       {func(c *Config) { c.Dir, c.RaftAddr = t.TempDir(), busy }, syscall.EADDRINUSE, busy},
		"file for folder": {func(c *Config) { c.Dir = file }, syscall.ENOTDIR, file},
		"foreign folder":  {func(c *Config) { c.Dir = full }, ErrFolder, "thesis.tex"},
		"no ID":           {func(c *Config) { c.ID = "" }, nil, "ID"},
		"short heartbeat": {func(c *Config) { c.Heartbeat = 1 }, nil, "1ns"},
		"not a peer":      {func(c *Config) { c.ID = "z" }, nil, `"z"`},
		"peer twice":      {func(c *Config) { c.Peers = append(c.Peers, c.Peers[0]) }, nil, `"a"`},
	} {
		config := c.config("a", nil)
		config.RaftAddr = "127.0.0.1:0"
		test.change(&config)
		f, err := Claim(config)
		if err == nil {
			if err := f.Decide(testkit.Context(t)); err != nil {
				t.Fatal(err)
			}
			var s *Store
			if s, err = Open(config, f); err == nil {
				t.Errorf("%s: it opened", name)
				_ = s.Close()
				continue
			}
		}
		if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(full, formatName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a foreign folder was written to: %v", err)
	}
}

// TestFolderKeepsItsNode: a folder belongs to one node of one cluster.
func TestFolderKeepsItsNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.propose(memberEntry(0))
	c.close("a")
	for _, test := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"another node", func(c *Config) { c.ID, c.Peers = "b", nil }, "the folder is used by coordinator a, not b"},
		{"other peers", func(c *Config) { c.Peers = append(c.Peers, Peer{"b", "127.0.0.1:1"}) }, ""},
		{"another format", func(c *Config) {
			rewrite(t, filepath.Join(c.Dir, formatCopy), "format 5", "format 9")
			rewrite(t, filepath.Join(c.Dir, formatName), "format 5", "format 9")
		}, "empty folder"},
	} {
		l := testkit.Listen(t)
		config := c.config("a", l)
		test.change(&config)
		f, err := Claim(config)
		if err == nil {
			_, err = Open(config, f)
		} else {
			l.Close()
		}
		if !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), config.Dir) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the listener is left open: %v", test.name, err)
		}
	}
	rewrite(t, filepath.Join(c.dir, "a", formatName), "format 9", "format 5")
	rewrite(t, filepath.Join(c.dir, "a", formatCopy), "format 9", "format 5")
	c.start("a", nil)
	c.propose(memberEntry(1))
	checkMembers(t, c.leader().State(), 2)
}

// TestDamagedFormat: one copy of FORMAT is enough; the other one is written again.
func TestDamagedFormat(t *testing.T) {
	t.Parallel()
	for _, name := range []string{formatName, formatCopy} {
		c := newCluster(t, 1, nil)
		c.propose(memberEntry(0))
		was := c.nodes["a"].folder.Identity()
		for _, damage := range []func(path string) error{
			os.Remove,
			func(path string) error { return os.Truncate(path, 40) },
		} {
			c.close("a")
			if err := damage(filepath.Join(c.dir, "a", name)); err != nil {
				t.Fatal(err)
			}
			c.start("a", nil)
			if now := c.nodes["a"].folder.Identity(); now.Directory != was.Directory || now.Cluster != was.Cluster {
				t.Errorf("without %s: %+v, was %+v", name, now, was)
			}
			for _, file := range []string{formatName, formatCopy} {
				if b, err := os.ReadFile(filepath.Join(c.dir, "a", file)); err != nil || string(b) != was.encode() {
					t.Errorf("without %s: %s has %q, %v", name, file, b, err)
				}
			}
		}
	}
}

func rewrite(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBootstrapCutShort: after a crash during the write of the first entry, the node can
// still elect a leader.
func TestBootstrapCutShort(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, dir: t.TempDir(), peers: []Peer{{ID: "a", RaftAddr: "127.0.0.1:1"}},
		nodes: make(map[string]*Store)}
	t.Cleanup(c.closeAll)
	f := c.claim(c.config("a", nil))
	if err := f.Decide(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.stable.SetUint64([]byte(keyTerm), 1), f.Close()); err != nil {
		t.Fatal(err)
	}
	c.startAll()
	c.propose(memberEntry(0))
	checkMembers(t, c.leader().State(), 1)
}
