package network_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/chaos"
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
	args := []string{"chaos", "--small", "--workers", "2", "--algorithm", "ldlf", "--rounds", "1", "--max-stall", "60s", "-o", "json", "--tls",
		"--network", "rtt=10ms,loss=0.2%", "--faults", strings.Join(faults, ",")}
	cmd, stdout, stderr := cmdtest.Process(t, tmp, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	recovered(t, stdout.Bytes(), len(faults))
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// recovered checks that a run injected so many faults, and recovered from each.
func recovered(t *testing.T, report []byte, faults int) {
	t.Helper()
	var r chaos.Report
	if err := json.Unmarshal(report, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Strikes {
		if !s.Recovered {
			t.Errorf("%+v", s)
		}
	}
	if len(r.Strikes) != faults || r.Digests == 0 {
		t.Errorf("%d faults, %d digests", len(r.Strikes), r.Digests)
	}
}
