package clusters_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// Commands that were given the leader's address alone end well when that leader is killed
// and stays away: they have learnt of the others.
func TestOneServerIsEnough(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	c := cmdtest.Start(t, 3, 1)
	const steps = 2000
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, steps, "--local")...))
	leader := cmdtest.Leader(t, c)
	server := c.HTTP(leader)
	train, watch := make(chan cmdtest.Ended, 1), make(chan cmdtest.Ended, 1)
	go func() { train <- cmdtest.Run(t, cmdtest.Train(data, steps, "--name", "one", "--server", server)...) }()
	underWay := func() bool {
		j, err := c.Client().Jobs().Get(t.Context(), "one")
		return err == nil && j.Progress != nil && j.Progress.Step > 0 && j.State == protocol.Running
	}
	testkit.Until(t, "the job to commit", underWay)
	go func() { watch <- cmdtest.Run(t, "job", "watch", "one", "--server", server, "-o", "json") }()
	testkit.Until(t, "half of the job", func() bool {
		j, err := c.Client().Jobs().Get(t.Context(), "one")
		return err == nil && j.Progress != nil && j.Progress.Step > steps/2
	})
	cmdtest.Kill(t, leader)
	if got := cmdtest.ModelDigest(t, testkit.Receive(t, "the end of train", train)); got != want {
		t.Errorf("digest %q, undisturbed %q", got, want)
	}
	if e := testkit.Receive(t, "the end of watch", watch); e.Code != cli.ExitOK {
		t.Errorf("job watch: exit code %d: %s", e.Code, e.Stderr)
	}
}
