package clustercmd

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestNATSIsNoCoordinator: a command fails at once, with an error of one line, if its server is a NATS server.
func TestNATSIsNoCoordinator(t *testing.T) {
	address := testkit.FreeAddress(t)
	cmd, _, _ := cmdtest.Process(t, t.TempDir(), "nats", "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	testkit.Until(t, "NATS to listen", func() bool { return cmdtest.Listens(address) })
	start := time.Now()
	e := cmdtest.Run(t, "job", "list", "--server", address)
	if e.Code != cli.ExitFailed || strings.Count(e.Stderr, "\n") != 1 || !strings.Contains(e.Stderr, address+" is not a coordinator: a NATS server answers there") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
