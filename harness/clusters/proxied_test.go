package clusters_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// at is an address of loopback.
func at(port int) string { return net.JoinHostPort(freeport.Host, strconv.Itoa(port)) }

// forwarded passes connections to a port of loopback on to another port, until the test ends.
func forwarded(t *testing.T, from, to int) {
	t.Helper()
	l, err := net.Listen("tcp", at(from))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			outer, err := l.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", at(to))
			if err != nil {
				outer.Close()
				continue
			}
			go func() { io.Copy(inner, outer); inner.Close() }()
			go func() { io.Copy(outer, inner); outer.Close() }()
		}
	}()
}

// TestBehindProxies: three coordinators are reached at other ports than those at which they listen, also by each other,
// and a job has the same digest as in this process.
func TestBehindProxies(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 1000, 1)
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, 200, "--local")...))
	ports, err := freeport.Blocks(6)
	if err != nil {
		t.Fatal(err)
	}
	ids, flags := []string{"a", "b", "c"}, []string{"--http", "--raft", "--nats-listen", "--nats-routes"}
	var servers, peers []string
	for i, id := range ids {
		servers = append(servers, at(ports[i]))
		peers = append(peers, id+"="+servers[i])
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launch := func(name string, args ...string) {
		args = append(args, "--dir", filepath.Join(dir, name), "--die-with-stdin")
		n, err := proc.Launch(exe, []string{cmdtest.AsCommand + "=1"}, name, filepath.Join(dir, "logs", name+".log"), args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Quit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for i, id := range ids {
		args := []string{"coordinator", "--id", id, "--peers", strings.Join(peers, ","), "--behind-proxy"}
		for k, flag := range flags {
			forwarded(t, ports[i]+k, ports[3+i]+k)
			args = append(args, flag, at(ports[3+i]+k))
		}
		launch(id, args...)
	}
	launch("w", "worker", "--id", "w", "--join", strings.Join(servers, ","))
	got := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, 200, "--server", strings.Join(servers, ","))...))
	if got != want {
		t.Errorf("digest %q, in this process %q", got, want)
	}
}
