package experiments_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/remote"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

func connected(t *testing.T, server string) *client.Client {
	t.Helper()
	cl, err := client.New(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// TestWatchedGridOnCluster: the grid of an experiment is that of its table, with rows that do not go with the data and
// runs that are not run; two datasets have the same content.
func TestWatchedGridOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	server := cmdtest.Start(t, 1, 1).Servers()
	for _, name := range []string{"first", "second"} {
		cmdtest.ArtificialFile(t, dir, name+".csv", 60, 1)
	}
	spec := cmdtest.Write(t, dir, "e.yaml", `name: e
datasets: [first.csv, second.csv]
folds: 4
measures: [kl]
methods: [aa-knn, ranking, {algorithm: ldlf, budget: 1s, settings: {steps: 100000000, patience: 100000000}}]
`)
	table := tableOf(t, "experiment", "run", spec, "--server", server)
	if sum := experiment.Count(table); sum.Done < 8 || sum.Failed != 8 || sum.Missing == 0 {
		t.Fatalf("%+v", sum)
	}
	cl := connected(t, server)
	g := remote.NewGrid(cl)
	_, err := cl.Experiments().Watch(t.Context(), "e", false, func(x *protocol.ExperimentLine) {
		g.See(t.Context(), &x.Experiment)
	})
	if err != nil || g.Lines(200, 60) == nil {
		t.Fatalf("%s: no grid was read: %v", filepath.Base(spec), err)
	}
	if diff := cmp.Diff(overview.GridOf(table, nil).Lines(200, 60), g.Lines(200, 60)); diff != "" {
		t.Error(diff)
	}
}
