package pages_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// threeHosts are the machines of the page, in the order of the blocks that TestThreeHosts runs. The last is the user's.
var threeHosts = []string{"host1", "host2", "host3", "own"}

// onHost runs the line in $LINE on the host $NAME, as its user would: with the names of all hosts, and with folders of
// its own. If the test is killed, stdin closes, and the line is killed too.
const onHost = `set -e
exec 3<&0
(read -r -u 3 _ || read -r _ _ _ parent _ </proc/$BASHPID/stat; [[ $parent == $$ ]] && kill -KILL $$) >/dev/null 2>&1 &
exec 3<&-
mount --make-rprivate /
mount --bind "$ROOT/hosts" /etc/hosts
mount --bind "$ROOT/$NAME/lib" /var/lib
mount --bind "$ROOT/$NAME/cache" /var/cache
export HOME="$ROOT/$NAME/home"
cd "$HOME"
eval "exec $LINE"
`

// copies stands for scp, which needs a server. It accepts only what the page asks of it.
const copies = `#!/bin/bash
set -e
[[ $1 == -r ]]
for from in "${@:2:$#-2}"; do
	[[ $from == *:* ]]
	cp -r "$ROOT/${from%%:*}/home/${from#*:}" "${@: -1}"
done
`

// hosts is a network of hosts that run lines of the page.
type hosts struct {
	network *netlab.Network
	root    string
	env     []string
}

// newHosts makes the hosts, without processes.
func newHosts(t *testing.T) *hosts {
	t.Helper()
	n, err := netlab.New(netlab.Settings{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &hosts{network: n, root: t.TempDir()}
	names := "127.0.0.1 localhost\n"
	for _, name := range threeHosts {
		host, err := n.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		names += host.Address() + " " + name + "\n"
		for _, folder := range []string{"lib", "cache", "home"} {
			if err := os.MkdirAll(filepath.Join(h.root, name, folder), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmdtest.Write(t, h.root, "hosts", names)
	bin := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "coppice")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cmdtest.Write(t, bin, "scp", copies), 0o700); err != nil {
		t.Fatal(err)
	}
	h.env = append(os.Environ(), cmdtest.AsCommand+"=1", "ROOT="+h.root, "PATH="+bin+string(filepath.ListSeparator)+
		os.Getenv("PATH"))
	return h
}

// start starts a line on a host.
func (h *hosts) start(t *testing.T, name, line string) (c *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	host, err := h.network.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	out = new(bytes.Buffer)
	c = exec.Command("bash", "-c", onHost)
	c.Env = append(slices.Clone(h.env), "NAME="+name, "LINE="+line)
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	_, err = c.StdinPipe()
	if err = errors.Join(err, host.Start(c)); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// run runs a line on a host to its end, and returns what it prints.
func (h *hosts) run(t *testing.T, name, line string) (string, error) {
	t.Helper()
	c, out := h.start(t, name, line)
	err := c.Wait()
	return out.String(), err
}

// serve starts a line that runs until the end of the test.
func (h *hosts) serve(t *testing.T, name, line string) {
	t.Helper()
	c, out := h.start(t, name, line)
	t.Cleanup(func() {
		err := errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait())
		if err != nil || t.Failed() {
			t.Errorf("%s: %s: %v\n%s", name, line, err, out)
		}
	})
}

// TestThreeHosts runs the lines of deploy/README.md on three hosts, each with at most five, and trains from a fourth.
func TestThreeHosts(t *testing.T) {
	testkit.WithoutRace(t)
	for _, program := range []string{"bash", "mount", "cp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	if out, done := cmdtest.Alone(t); done {
		t.Log(out)
		return
	}
	var blocks [][]string
	for _, b := range readPage(t, "deploy/README.md").blocks {
		if strings.HasPrefix(b.marks["not run"], t.Name()+" ") {
			blocks = append(blocks, b.text)
		}
	}
	if len(blocks) != len(threeHosts) {
		t.Fatalf("the page has %d blocks for %v", len(blocks), threeHosts)
	}
	h := newHosts(t)
	ages := cmdtest.Write(t, filepath.Join(h.root, "own", "home"), "ages.csv", madeFiles(t)["ages.csv"])
	var train string
	for i, name := range threeHosts {
		if len(blocks[i]) > 5 {
			t.Errorf("%s needs %d commands: %q", name, len(blocks[i]), blocks[i])
		}
		for _, line := range blocks[i] {
			switch {
			case served.MatchString(line):
				h.serve(t, name, line)
			case strings.HasPrefix(line, "coppice train "):
				train = line
			default:
				if out, err := h.run(t, name, line); err != nil {
					t.Fatalf("%s: %s: %v\n%s", name, line, err, out)
				}
			}
		}
	}
	text, err := h.run(t, "own", train)
	if err != nil || !strings.Contains(text, "model") {
		t.Fatalf("%s: %v\n%s", train, err, text)
	}
	flags := strings.Fields(train)
	rest := slices.Index(flags, "--data")
	local := slices.Concat(flags[1:2], []string{"--local"}, flags[rest:], []string{"-o", "json"})
	local[slices.Index(local, "ages.csv")] = ages
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, local...))
	access := strings.Join(flags[2:rest], " ")
	models, err := h.run(t, "own", "coppice model list -o json "+access)
	if err != nil || len(want) != 64 || !strings.Contains(models, want) {
		t.Errorf("the digest %s of --local is not in: %v\n%s", want, err, models)
	}
	h.secured(t, access)
}

// secured checks that the cluster is whole, that callers without a certificate are refused, and that keys stay private.
func (h *hosts) secured(t *testing.T, access string) {
	t.Helper()
	var c protocol.Cluster
	testkit.Until(t, "all workers", func() bool {
		shown, err := h.run(t, "own", "coppice cluster -o json "+access)
		return err == nil && json.Unmarshal([]byte(shown), &c) == nil && len(c.Workers) == 3
	})
	if len(c.Coordinators) != 3 || c.Insecure {
		t.Errorf("%+v", c)
	}
	if out, err := h.run(t, "own", "coppice cluster --server host2:7100"); err == nil ||
		!strings.Contains(out, "uses TLS") {
		t.Errorf("without a certificate: %v\n%s", err, out)
	}
	for i, name := range threeHosts {
		found, err := filepath.Glob(filepath.Join(h.root, name, "home", "*", certs.AuthorityKey))
		if err != nil || (i == 0) != (len(found) == 1) {
			t.Errorf("%s has the authority's key in %v, %v", name, found, err)
		}
		keys, err := filepath.Glob(filepath.Join(h.root, name, "home", "*", "*.key"))
		for _, key := range keys {
			if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", key, info, err)
			}
		}
		if err != nil || len(keys) == 0 {
			t.Errorf("%s has the keys %v, %v", name, keys, err)
		}
	}
}
