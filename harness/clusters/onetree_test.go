package clusters_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestOneTree: all workers grow one tree of ldlboost together, or of rf by histograms. The model is the same in this
// process and on one, two and five workers, and when a worker or the leader is killed in the middle. A job can be
// cancelled in the middle.
func TestOneTree(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	t.Run("ldlboost", func(t *testing.T) {
		testOneTree(t, func(rounds int) []string {
			return []string{"train", "--data", data, "--seed", "7", "--test-fraction", "0.1", "--algorithm", "ldlboost", "--set",
				fmt.Sprintf("rounds=%d", rounds), "--set", "patience=1000", "--set", "refit=false", "-o", "json"}
		}, 120)
	})
	t.Run("rf", func(t *testing.T) {
		testOneTree(t, func(trees int) []string {
			return []string{"train", "--data", data, "--seed", "7", "--test-fraction", "0.1", "--algorithm", "rf", "--set",
				"split=histogram", "--set", fmt.Sprintf("trees=%d", trees), "--set", "min_samples=4", "-o", "json"}
		}, 200)
	})
}

// testOneTree trains on a cluster with the arguments of a short job, and of a long one of so many trees.
func testOneTree(t *testing.T, of func(trees int) []string, long int) {
	t.Helper()
	c := cmdtest.Start(t, 3, 1)
	args := func(trees int, more ...string) []string { return append(of(trees), more...) }
	const short = 5
	check := func(what, want string, e cmdtest.Ended) {
		t.Helper()
		if got := cmdtest.ModelDigest(t, e); got != want || len(got) != 64 {
			t.Errorf("%s: digest %q, in this process %q", what, got, want)
		}
	}
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, args(short, "--local")...))
	for _, n := range []int{1, 2, 5} {
		grow(t, c, n)
		check(fmt.Sprintf("%d workers", n), want, cmdtest.Run(t, args(short, "--server", c.Servers())...))
	}
	cancelTree(t, c, args(10_000))
	check("after a cancelled job", want, cmdtest.Run(t, args(short, "--server", c.Servers())...))
	want = cmdtest.ModelDigest(t, cmdtest.Run(t, args(long, "--local")...))
	check("a killed worker", want, cmdtest.MidWay(t, c, "killed-worker", args(long), func() {
		cmdtest.Kill(t, c.Workers[1])
	}))
	check("a killed leader", want, cmdtest.MidWay(t, c, "killed-leader", args(long), func() {
		cmdtest.KillLeader(t, c)
	}))
}

// cancelTree cancels a job after its first trees: it ends without a model, and no round follows.
func cancelTree(t *testing.T, c *proc.Cluster, args []string) {
	t.Helper()
	const name = "cancelled"
	t.Setenv("COPPICE_SERVER", c.Servers())
	end := make(chan cmdtest.Ended, 1)
	go func() { end <- cmdtest.Run(t, append(args, "--name", name)...) }()
	var j protocol.JobInfo
	testkit.Until(t, "trees of "+name, func() bool {
		now, err := c.Client().Jobs().Get(t.Context(), name)
		return err == nil && now.Progress != nil && now.Progress.Step > 0
	})
	cmdtest.JSON(t, &j, "job", "cancel", name)
	if e := <-end; e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "was cancelled") {
		t.Errorf("train of a cancelled job: exit code %d: %s", e.Code, e.Stderr)
	}
	got, err := c.Client().Jobs().Get(t.Context(), name)
	if err != nil || j.State != protocol.Cancelled || got.State != protocol.Cancelled || got.Rounds != j.Rounds ||
		len(got.Models) > 0 {
		t.Errorf("the job is %s at round %d, then %s at round %d with the models %v (%v)", j.State, j.Rounds, got.State,
			got.Rounds, got.Models, err)
	}
}
