package benchcmd

import (
	"encoding/json"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// quickShown is the part of quickstart's JSON that the tests read.
type quickShown struct {
	ModelDigest string `json:"model_digest"`
	Measures    map[string]struct{ Mean float64 }
	Cluster     protocol.Cluster
}

// A quickstart learns, tells its digest, and leaves nothing behind.
func TestQuickstart(t *testing.T) {
	tmp := t.TempDir()
	cmd, stdout, stderr := cmdtest.Process(t, tmp, "quickstart", "--steps", "400", "--workers", "2", "-o", "json")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var shown quickShown
	if err := json.Unmarshal(stdout.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.ModelDigest) != 64 || shown.Measures["kl"].Mean > 0.001 || len(shown.Cluster.Coordinators) != 3 ||
		len(shown.Cluster.Workers) != 2 {
		t.Errorf("got %+v", shown)
	}
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// The processes of a quickstart end with it, even when it is killed. With --tls, its folder has a certificate for
// commands.
func TestQuickstartKilled(t *testing.T) {
	dir := t.TempDir()
	cmd, _, _ := cmdtest.Process(t, dir, "quickstart", "--tls", "--coordinators", "1", "--workers", "1", "--steps", "10",
		"--stay", "-o", "json", "--dir", filepath.Join(dir, "q"))
	cmd.Stdout = nil
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var shown quickShown
	if err := json.NewDecoder(stdout).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	addresses := []string{shown.Cluster.Coordinators[0].HTTP, shown.Cluster.Workers[0].Metrics}
	for _, a := range addresses {
		if !cmdtest.Listens(a) {
			t.Errorf("nobody listens at %s", a)
		}
	}
	cmdtest.Works(t, "cluster", "--server", addresses[0], "--tls-dir", filepath.Join(dir, "q", "certs", "admin"))
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	testkit.Until(t, "the children to end", func() bool {
		return !cmdtest.Listens(addresses[0]) && !cmdtest.Listens(addresses[1])
	})
}
