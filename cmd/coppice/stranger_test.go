package main

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// The port of NATS, given for that of a coordinator, is told in one line, at once.
func TestNATSIsNoCoordinator(t *testing.T) {
	address := freeAddress(t)
	cmd, _, _ := process(t, t.TempDir(), "nats", "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	testkit.Until(t, "NATS to listen", func() bool { return dial(address) })
	start := time.Now()
	e := coppice(t, "job", "list", "--server", address)
	if e.code != exitFailed || strings.Count(e.stderr, "\n") != 1 || !strings.Contains(e.stderr, address+" is not a coordinator: a NATS server answers there") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
