package experiments_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestBudgetOnCluster: a cluster runs what --local runs within budgets, ends a run that takes its whole
// budget, and names what is not run, also where everything is killed meanwhile; without budgets the
// same command submits the rest.
func TestBudgetOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 60, 2)
	spec := cmdtest.Write(t, dir, "e.yaml", `name: e
datasets: [first.csv, second.csv]
folds: 4
measures: [kl]
budget: 2s
methods:
  - {algorithm: ldlf, name: endless, settings: {steps: 100000000, patience: 100000000}}
  - {algorithm: aa-knn, name: quick, budget: 10m}
`)
	want := []string{"first, endless (4 runs with a time budget of 2s of ldlf)",
		"second, endless (4 runs with a time budget of 2s of ldlf)"}
	named := func(text, word string) bool {
		return !slices.ContainsFunc(want, func(cells string) bool { return !strings.Contains(text, word+": "+cells+"\n") })
	}
	here := cmdtest.Run(t, "experiment", "run", spec, "--local", "-o", "json")
	if here.Code != cli.ExitOK || !named(here.Stderr, "not run") {
		t.Fatalf("exit code %d\n%s", here.Code, here.Stderr)
	}
	c := cmdtest.Start(t, 3, 2)
	server := c.Servers()
	end := make(chan cmdtest.Ended, 1)
	go func() { end <- cmdtest.Run(t, "experiment", "run", spec, "--server", server, "-o", "json") }()
	testkit.Until(t, "some runs to be recorded", func() bool {
		list, err := c.Client().Jobs().List(t.Context(), protocol.JobQuery{Experiment: "e"})
		return err == nil && recordedCells(list.Jobs) >= 2
	})
	cmdtest.KillAll(t, c)
	there := <-end
	if there.Code != cli.ExitOK || !named(there.Stderr, "not run") {
		t.Fatalf("exit code %d\n%s", there.Code, there.Stderr)
	}
	if diff := cmp.Diff(asJSON(t, withoutTimes(decodedTable(t, here.Stdout))),
		asJSON(t, withoutTimes(decodedTable(t, there.Stdout)))); diff != "" {
		t.Error(diff)
	}
	if here, there := cmdtest.Works(t, "experiment", "report", spec, "--no-times"), cmdtest.Works(t, "experiment",
		"report", "e", "--no-times", "--server", server); here != there {
		t.Errorf("the reports differ:\n%s\n%s", here, there)
	}
	if text := cmdtest.Works(t, "experiment", "show", "e", "--server", server); !named(text, "missing") {
		t.Errorf("show:\n%s", text)
	}
	var list []protocol.Experiment
	cmdtest.JSON(t, &list, "experiment", "list", "--server", server)
	if len(list) != 1 || list[0].State != "done" || list[0].Runs != 16 || list[0].Done != 8 || list[0].NotRun != 8 {
		t.Errorf("%+v", list)
	}
	if text := cmdtest.Works(t, "experiment", "extend", spec, "--no-budget", "--server", server); !strings.Contains(text,
		"8 runs added") {
		t.Errorf("without budgets: %s", text)
	}
	cmdtest.Works(t, "experiment", "cancel", "e", "--server", server)
}

func decodedTable(t *testing.T, text string) *tables.Table {
	t.Helper()
	table := new(tables.Table)
	if err := json.Unmarshal([]byte(text), table); err != nil {
		t.Fatal(err)
	}
	return table
}
