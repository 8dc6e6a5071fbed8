package chaos_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/chaos"
	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// The short form of the suite: some faults of each kind, both algorithms, on a
// cluster of real processes, which leaves nothing behind.
func TestChaos(t *testing.T) {
	faults := []string{"worker-kill", "worker-stop", "leader-kill", "all-kill"}
	tmp := t.TempDir()
	args := []string{"chaos", "--small", "--workers", "2", "--rounds", "1", "-o", "json"}
	if testkit.Race { // the race detector needs each kind of process to be lost once
		faults = []string{"worker-kill", "leader-kill"}
		args = append(args, "--algorithm", "ldlf")
	}
	cmd, stdout, stderr := cmdtest.Process(t, tmp, append(args, "--faults", strings.Join(faults, ","))...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var r chaos.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var hit []string
	for _, s := range r.Strikes {
		if !s.Recovered || s.Seconds <= 0 || s.Target == "" {
			t.Errorf("%+v", s)
		}
		hit = append(hit, s.Fault)
	}
	slices.Sort(hit)
	slices.Sort(faults)
	if !slices.Equal(hit, faults) || r.Digests < 2 || r.Jobs < r.Digests {
		t.Errorf("injected %v, %d jobs, %d digests", hit, r.Jobs, r.Digests)
	}
	nothingIn(t, tmp)
}

// TestPartitions: the leader is cut off from its peers and not from workers and clients,
// in both directions and in each one, and training goes on elsewhere, with the same bits.
// On a busy machine it may take longer than it should; without anything that brings
// workers to the new leader it would take for ever.
func TestPartitions(t *testing.T) {
	testkit.WithoutRace(t)
	if reason := netlab.Missing(); reason != "" {
		t.Skip(reason)
	}
	r := cmdtest.Chaos(t, t.TempDir(), []string{"peers-cut", "peers-cut-out", "peers-cut-in"}, "--max-stall", "60s",
		"--network", slow)
	for _, s := range r.Strikes {
		if s.Longest < s.Seconds {
			t.Errorf("%+v", s)
		}
	}
}

// slow is a network on which a job lasts without computing for all that time: each of its steps waits for messages.
const slow = "rtt=20ms"

// overSlow returns the flags of a run on the slow network, or none if there can be no network.
func overSlow() []string {
	if netlab.Missing() != "" {
		return nil
	}
	return []string{"--network", slow}
}

// nothingIn checks that a run left nothing in its folder for temporary files.
func nothingIn(t *testing.T, tmp string) {
	t.Helper()
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// TestChaosOfDisks: one disk gives input/output errors, and one is full; nothing stays mounted.
func TestChaosOfDisks(t *testing.T) {
	testkit.WithoutRace(t)
	tmp := t.TempDir()
	cmdtest.Chaos(t, tmp, []string{"io-errors", "disk-full"}, overSlow()...)
	nothingIn(t, tmp)
}

// TestChaosWithTLS: faults that start processes of their own, and an external NATS, with certificates.
func TestChaosWithTLS(t *testing.T) {
	testkit.WithoutRace(t)
	tmp := t.TempDir()
	cmdtest.Chaos(t, tmp, []string{"worker-join", "nats-restart"}, append(overSlow(), "--tls", "--keep")...)
	for _, name := range []string{"embedded/certs/coordinator-a", "embedded/certs/worker-w2",
		"external/certs/coordinator-nats"} {
		if found, err := filepath.Glob(filepath.Join(tmp, "*", name, certs.CertFile)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
