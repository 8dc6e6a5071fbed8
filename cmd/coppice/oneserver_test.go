package main

import (
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// Commands that were given the leader's address alone end well when that leader is killed
// and stays away: they have learnt of the others.
func TestOneServerIsEnough(t *testing.T) {
	data := artificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	c := start(t, 3, 1)
	const steps = 4000 / slowdown
	want := digestOf(t, coppice(t, clusterJob(data, steps, "--local")...))
	leader := leaderOf(t, c)
	server := c.HTTP(leader)
	train, watch := make(chan ended, 1), make(chan ended, 1)
	go func() { train <- coppice(t, clusterJob(data, steps, "--name", "one", "--server", server)...) }()
	underWay := func() bool {
		j, err := c.Client().Job(t.Context(), "one")
		return err == nil && j.Progress != nil && j.Progress.Step > 0 && j.State == protocol.Running
	}
	testkit.Until(t, "the job to commit", underWay)
	go func() { watch <- coppice(t, "job", "watch", "one", "--server", server, "-o", "json") }()
	testkit.Until(t, "half of the job", func() bool {
		j, err := c.Client().Job(t.Context(), "one")
		return err == nil && j.Progress != nil && j.Progress.Step > steps/2
	})
	kill(t, leader)
	if got := digestOf(t, testkit.Receive(t, "the end of train", train)); got != want {
		t.Errorf("digest %q, undisturbed %q", got, want)
	}
	if e := testkit.Receive(t, "the end of watch", watch); e.code != exitOK {
		t.Errorf("job watch: exit code %d: %s", e.code, e.stderr)
	}
}
