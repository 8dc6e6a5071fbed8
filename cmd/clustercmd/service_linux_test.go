package clustercmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// A service that was started in a terminal ends with it, and outlives a SIGHUP that comes
// while the terminal is there.
func TestServiceEndsWithItsTerminal(t *testing.T) {
	dir := t.TempDir()
	master, slave := clitest.Terminal(t, 80)
	log := filepath.Join(dir, "log")
	stderr, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd, _, _ := cmdtest.Process(t, dir, "worker", "--join", "127.0.0.1:1", "--dir", filepath.Join(dir, "w"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, stderr, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer time.AfterFunc(testkit.Limit, func() { cmd.Process.Kill() }).Stop()
	has := func(text string) func() bool {
		return func() bool { return strings.Contains(cmdtest.Read(t, log), text) }
	}
	testkit.Until(t, "the worker to look for its cluster", has("no coordinator answers"))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "SIGHUP to be ignored", has("SIGHUP is ignored"))
	master.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := clitest.LastLine(t, log); got != `level=INFO msg="the worker ends" reason="received SIGHUP"` {
		t.Errorf("its last line is %s", got)
	}
}
