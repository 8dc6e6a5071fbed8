package clustercmd

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Timeouts that do not fit together are refused.
func TestWrongTimeouts(t *testing.T) {
	for _, args := range [][]string{
		{"--heartbeat", "1ms"}, {"--heartbeat", "2s"}, {"--election-timeout", "50ms"}, {"--election-timeout", "1m"},
	} {
		e := cmdtest.Run(t, append([]string{"coordinator", "--dir", t.TempDir()}, args...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, args[0]) {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

// threeCoordinators starts three coordinators whose folders are in dir.
func threeCoordinators(t *testing.T, dir string) *proc.Cluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := proc.Start(testkit.Context(t), proc.Config{Exe: exe, Env: []string{cmdtest.AsCommand + "=1"}, Dir: dir,
		Coordinators: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// endsPlainly waits until a process has ended with exit code 1, and checks the error that it
// printed. A goroutine of Raft may log a closed connection after it.
func endsPlainly(t *testing.T, n *proc.Node, says ...string) {
	t.Helper()
	testkit.Until(t, "the end of "+n.Name, func() bool { return !n.Running() })
	b, err := os.ReadFile(n.Log)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "coppice: ") {
			last = line
		}
	}
	if err := n.Err(); err == nil || err.Error() != "exit status 1" || strings.Contains(string(b), "goroutine ") {
		t.Errorf("%s ended with %v; it said\n%s", n.Name, n.Err(), b)
	}
	for _, text := range says {
		if !strings.Contains(last, text) {
			t.Errorf("%s says %q, which lacks %q", n.Name, last, text)
		}
	}
}

// Coordinators whose folders are deleted end, the last too, and say what to do.
func TestFoldersDeleted(t *testing.T) {
	dir := t.TempDir()
	c := threeCoordinators(t, dir)
	for _, n := range c.Coordinators {
		if err := testkit.RemoveInUse(n.Dir); err != nil {
			t.Fatal(err)
		}
		endsPlainly(t, n, n.Dir, "does not exist any more", "start this coordinator again with the same flags")
	}
}

// A coordinator whose disk fails ends with the file, the cause and the remedy once it should
// write down a term or a vote, and the others go on.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	disk := filepath.Join(dir, "a")
	failing(t, disk)
	c := threeCoordinators(t, dir)
	ctx := testkit.Context(t)
	a := c.Coordinators[0]
	testkit.Until(t, "a to have started its log", func() bool {
		r, err := http.Get("http://" + c.HTTP(a) + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	if err := system.ShutDown(disk); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a new term that a cannot write down", func() bool {
		if !a.Running() {
			return true
		}
		if err := c.Client().Members().Transfer(ctx, ""); err != nil {
			t.Log(err)
		}
		return false
	})
	endsPlainly(t, a, filepath.Join(disk, "raft", "VOTE"), "input/output error", "start it again with the same flags")
	if n, err := c.Leader(ctx); err != nil || n == a {
		t.Errorf("%v leads, %v", n, err)
	}
}

// failing mounts a file system at a folder that system.ShutDown can have fail.
func failing(t *testing.T, dir string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-t", "ext4", "-o", "loop",
		image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system can be made to fail here (it takes root on Linux, and mkfs.ext4): %v: %s", err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	if err := os.RemoveAll(filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
}

// Below the least address space nothing is started, with a plain reason.
func TestLittleAddressSpace(t *testing.T) {
	testkit.WithoutRace(t) // it needs terabytes
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port, err := freeport.Block()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, args := range []string{
		fmt.Sprintf("coordinator --dir %s --peers a=127.0.0.1:%d", filepath.Join(dir, "c"), port),
		fmt.Sprintf("worker --dir %s --join 127.0.0.1:%d", filepath.Join(dir, "w"), port),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		cmd := exec.CommandContext(ctx, "sh", "-c", "ulimit -v 2000000 && exec \"$0\" "+args, exe)
		cmd.Env = append(os.Environ(), cmdtest.AsCommand+"=1")
		out, _ := cmd.CombinedOutput()
		cancel()
		if cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), "address space") ||
			strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
	if left := cmdtest.Contents(t, dir); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
