package cmdtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// Start starts a cluster of processes of this test binary. It ends with the test.
func Start(t *testing.T, coordinators, workers int) *proc.Cluster {
	t.Helper()
	return StartWith(t, proc.Config{Coordinators: coordinators, Workers: workers})
}

// StartWith is Start with other settings of a configuration. If the test fails, the end of each log is printed.
func StartWith(t *testing.T, cfg proc.Config) *proc.Cluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Exe, cfg.Env = exe, append([]string{AsCommand + "=1"}, cfg.Env...)
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	c, err := proc.Start(testkit.Context(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			var b strings.Builder
			c.Tail(&b, 30)
			t.Log(b.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Small are flags of train for a job that takes little time.
var Small = []string{"--steps", "200", "--set", "trees=3", "--set", "depth=5", "--set", "leaf_batches=50", "--set",
	"batch_size=64"}

// StartNATS starts a NATS server in a process of its own, and returns the arguments of coordinators that use it. The
// process is killed when the test ends.
func StartNATS(t *testing.T) (p *os.Process, args []string) {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, _ := Process(t, t.TempDir(), "nats", "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testkit.Until(t, "NATS to listen", func() bool { return Listens(address) })
	return cmd.Process, []string{"--nats", "nats://" + address}
}

// Train is a command line that trains for a number of steps.
func Train(data string, steps int, more ...string) []string {
	return append([]string{
		"train", "--data", data, "--seed", "7", "--test-fraction", "0.1", "--steps", strconv.Itoa(steps), "-o", "json",
		"--set", "trees=3", "--set", "depth=5", "--set", "batch_size=256", "--set", "leaf_batches=50", "--set",
		"patience=1000",
	}, more...)
}

// MidWay runs a command line of Train as the job name of a cluster, and calls disturb when a quarter of its steps are
// committed.
func MidWay(t *testing.T, c *proc.Cluster, name string, args []string, disturb func()) Ended {
	t.Helper()
	end := make(chan Ended, 1)
	go func() { end <- Run(t, append(args, "--name", name, "--server", c.Servers())...) }()
	testkit.Until(t, "a quarter of "+name, func() bool {
		j, err := c.Client().Jobs().Get(t.Context(), name)
		if err != nil || j.Progress == nil {
			return false
		}
		if j.State.Final() {
			t.Fatalf("%s ended before it was disturbed", name)
		}
		return j.Progress.Step >= j.Progress.Steps/4
	})
	disturb()
	return <-end
}

// ModelDigest returns the model digest that a command with -o json printed. The command must have succeeded.
func ModelDigest(t *testing.T, e Ended) string {
	t.Helper()
	if e.Code != 0 {
		t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
	}
	_, rest, _ := strings.Cut(e.Stdout, `"model_digest": "`)
	digest, _, _ := strings.Cut(rest, `"`)
	return digest
}

// Kill kills a node. If that fails, the test fails but continues.
func Kill(t *testing.T, n *proc.Node) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Error(err)
	}
}

// Leader waits until a running coordinator leads.
func Leader(t *testing.T, c *proc.Cluster) (leader *proc.Node) {
	t.Helper()
	testkit.Until(t, "a leader", func() bool {
		var err error
		leader, err = c.Leader(t.Context())
		return err == nil && leader != nil && leader.Running()
	})
	return leader
}

// KillLeader kills the leader and returns it.
func KillLeader(t *testing.T, c *proc.Cluster) *proc.Node {
	t.Helper()
	leader := Leader(t, c)
	Kill(t, leader)
	return leader
}

// KillAll kills every process of a cluster, and starts all of them again.
func KillAll(t *testing.T, c *proc.Cluster) {
	t.Helper()
	all := slices.Concat(c.Coordinators, c.Workers)
	for _, n := range all {
		Kill(t, n)
	}
	for _, n := range all {
		if err := n.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// CPUTime returns the CPU time that a process has used.
func CPUTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this system does not say how much CPU time a process has used")
	}
	_, rest, _ := strings.Cut(string(b), ") ") // a name may have blanks
	fields, ticks := strings.Fields(rest), 0
	for _, field := range fields[11:13] { // of the user and of the system
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	const ticksPerSecond = 100 // of Linux, on all processors that Go knows
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
