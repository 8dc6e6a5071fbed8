package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// asChild makes the test binary a child that ends when its stdin closes, or, told
// to be stubborn, only when it is killed.
const asChild = "PROC_TEST_AS_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "":
		os.Exit(m.Run())
	case "fails":
		os.Stderr.WriteString("first line\nit fails\n")
		os.Exit(3)
	}
	os.Stdout.WriteString("up\n")
	var b [1]byte
	os.Stdin.Read(b[:])
}

func child(t *testing.T, how string) *Node {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Name: how, Log: filepath.Join(t.TempDir(), "log"), exe: exe, env: []string{asChild + "=" + how},
		host: Loopback{}}
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Kill() })
	return n
}

func TestNode(t *testing.T) {
	n := child(t, "waits")
	if !n.Running() || n.start() == nil {
		t.Error("it does not run, or was started twice")
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
	pid := n.Pid()
	if err := n.Kill(); err != nil || n.Running() || n.Err() == nil || n.state() != "signal: killed" {
		t.Errorf("killed: %v, %s", err, n.state())
	}
	if err := errors.Join(n.Kill(), n.Stop(), n.Continue()); err != nil {
		t.Errorf("what has ended: %v", err)
	}
	if err := n.Restart(); err != nil || n.Pid() == pid {
		t.Errorf("restarted: %v", err)
	}
	if err := n.Quit(t.Context()); err != nil || n.Running() {
		t.Errorf("told to end: %v", err)
	}
}

// Even a frozen process ends when it is told to.
func TestQuitFrozen(t *testing.T) {
	n := child(t, "waits")
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	if err := n.Quit(ctx); err != nil || n.Running() {
		t.Error(err)
	}
}

// A cluster whose processes end says why.
func TestStartFails(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	_, err = Start(ctx, Config{Exe: exe, Env: []string{asChild + "=fails"}, Dir: t.TempDir(), Coordinators: 1, Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "it fails") {
		t.Errorf("got %v", err)
	}
	if ctx.Err() != nil {
		t.Error("it waited instead of looking at its processes")
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 2*maxTail)+"\na\nb\nc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tail(path, 2); got != "b\nc\n" {
		t.Errorf("got %q", got)
	}
	if got := tail(path, 10); !strings.HasSuffix(got, "x\na\nb\nc\n") || len(got) > maxTail {
		t.Errorf("got %d bytes", len(got))
	}
}

// A process that belongs to no cluster.
func TestLaunch(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "logs", "alone.log")
	n, err := Launch(exe, []string{asChild + "=waits"}, "alone", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Kill() })
	if err := n.Quit(t.Context()); err != nil || n.Running() {
		t.Errorf("told to end: %v", err)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("its log: %v", err)
	}
}

// Processes get arguments of their own, and the name of a worker that has left is
// not used again.
func TestExtra(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{cfg: Config{
		Exe: exe, Env: []string{asChild + "=waits"}, Dir: t.TempDir(),
		Extra: func(name string) []string { return []string{"--only-for", name} },
	}}
	first, err := c.AddWorker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Kill() })
	if args := strings.Join(first.Args, " "); !strings.Contains(args, "--only-for w1") ||
		first.Dir != filepath.Join(c.cfg.Dir, "w1") {
		t.Errorf("%s in %s", args, first.Dir)
	}
	if err := c.RemoveWorker(t.Context(), first); err != nil || first.Running() || len(c.Workers) != 0 {
		t.Errorf("%d workers, %v", len(c.Workers), err)
	}
	second, err := c.AddWorker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Kill() })
	if second.Name != "w2" {
		t.Errorf("the next worker is %s", second.Name)
	}
}

// aHost is a host that notes what it starts.
type aHost struct {
	name    string
	started *[]string
}

func (aHost) Address() string { return "127.0.0.9" }

func (h aHost) Start(c *exec.Cmd) error {
	*h.started = append(*h.started, h.name)
	return c.Start()
}

// Processes that have hosts of their own are told the addresses of these, and are started
// there, each time.
func TestHosts(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var started []string
	c := &Cluster{cfg: Config{
		Exe: exe, Env: []string{asChild + "=waits"}, Dir: t.TempDir(), Coordinators: 2,
		Hosts: func(name string) (Host, error) { return aHost{name, &started}, nil },
	}}
	servers, err := c.addresses()
	if want := []string{"127.0.0.9:7070", "127.0.0.9:7070"}; err != nil || !slices.Equal(servers, want) {
		t.Errorf("coordinators at %v, %v", servers, err)
	}
	w, err := c.AddWorker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Kill() })
	n, http, err := c.AddCoordinator()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Kill() })
	if err := errors.Join(w.Kill(), w.Restart()); err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(w.Args, " "); !strings.Contains(args, "--listen 127.0.0.9:0") || http != "127.0.0.9:7070" {
		t.Errorf("%s, a coordinator at %s", args, http)
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(started, " "); got != "w1 a w1" {
		t.Errorf("started %s", got)
	}
}
