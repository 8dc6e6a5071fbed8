package clusters_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// grow adds workers until there are n.
func grow(t *testing.T, c *proc.Cluster, n int) {
	t.Helper()
	for len(c.Workers) < n {
		if _, err := c.AddWorker(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ready(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// The model is the same in this process and on one, two and three workers, and
// when a worker or the leader is killed half-way.
func TestClusterDigest(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	const short, long = 100, 800
	c := cmdtest.Start(t, 3, 1)
	check := func(what, want string, e cmdtest.Ended) {
		t.Helper()
		if got := cmdtest.ModelDigest(t, e); got != want || len(got) != 64 {
			t.Errorf("%s: digest %q, in this process %q", what, got, want)
		}
	}
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, short, "--local")...))
	for _, n := range []int{1, 2, 3} {
		grow(t, c, n)
		check(fmt.Sprintf("%d workers", n), want, cmdtest.Run(t, cmdtest.Train(data, short, "--server", c.Servers())...))
	}
	want = cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, long, "--local")...))
	check("a killed worker", want, cmdtest.MidWay(t, c, "killed-worker", cmdtest.Train(data, long), func() {
		cmdtest.Kill(t, c.Workers[1])
	}))
	if err := c.Workers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	check("a killed leader", want, cmdtest.MidWay(t, c, "killed-leader", cmdtest.Train(data, long), func() {
		cmdtest.KillLeader(t, c)
	}))
}

// Folds run on the cluster as child jobs with the digests of this process.
func TestClusterFolds(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 400, 1)
	args := append([]string{"train", "--data", data, "--folds", "3", "-o", "json"}, cmdtest.Small...)
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, append(args, "--local")...))
	c := cmdtest.Start(t, 1, 2)
	out := filepath.Join(t.TempDir(), "m.coppice")
	if got := cmdtest.ModelDigest(t, cmdtest.Run(t, append(args, "--server", c.Servers(), "--name", "cv", "--model-out",
		out)...)); got != want {
		t.Errorf("digest %s, in this process %s", got, want)
	}
	var shown struct {
		Dataset string
		Job     struct{ Split dataset.Split }
	}
	cmdtest.JSON(t, &shown, "model", "show", "cv/2", "--server", c.Servers())
	if shown.Job.Split.Fold != 2 || shown.Dataset != "set" {
		t.Errorf("fold %d of %q", shown.Job.Split.Fold, shown.Dataset)
	}
	if names := cmdtest.Contents(t, filepath.Dir(out)); len(names) != 3 {
		t.Errorf("the models are %v", names)
	}
}
