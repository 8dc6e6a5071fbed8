package network_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestChaosOnNetwork: faults of the network's own and of others on a network whose every
// packet takes 5 ms, and where some are lost. All connections have TLS.
func TestChaosOnNetwork(t *testing.T) {
	testkit.WithoutRace(t)
	if reason := netlab.Missing(); reason != "" {
		t.Skip(reason)
	}
	tmp := t.TempDir()
	faults := []string{"worker-cut", "peers-cut"} // each of another cluster
	cmdtest.Chaos(t, tmp, faults, "--max-stall", "60s", "--tls", "--network", "rtt=10ms,loss=0.2%")
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
