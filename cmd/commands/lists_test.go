package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestListFlags: lists of datasets and models have what the flags choose, in the order of the flags.
func TestListFlags(t *testing.T) {
	dir := t.TempDir()
	server := cmdtest.Start(t, 1, 1).Servers()
	at := func(command string) []string {
		return append(strings.Fields(command), "--server", server)
	}
	for i, name := range []string{"faces-b", "faces-a", "genes"} {
		data := cmdtest.ArtificialFile(t, dir, name+".csv", 200+100*i, uint64(i))
		cmdtest.Works(t, append(at("dataset import --name "+name), "--data", data)...)
		cmdtest.Works(t, append(at("train --dataset "+name+" --name job-"+name), cmdtest.Small...)...)
	}
	for command, want := range map[string]string{
		"dataset list":                                 "faces-a faces-b genes",
		"dataset list --name faces-*":                  "faces-a faces-b",
		"dataset list --name faces":                    "",
		"dataset list --sort=-samples":                 "genes faces-a faces-b",
		"dataset list --sort samples --limit 1":        "faces-b",
		"dataset list --after faces-b":                 "genes",
		"dataset list --limit 1 --after faces-a":       "faces-b",
		"dataset list --since 1h":                      "faces-a faces-b genes",
		"dataset list --until 1h":                      "",
		"dataset list --owner nobody":                  "",
		"model list":                                   "job-faces-b job-faces-a job-genes",
		"model list --limit 1":                         "job-genes",
		"model list --sort name --limit 2":             "job-faces-a job-faces-b",
		"model list --dataset genes":                   "job-genes",
		"model list --algorithm structrf":              "",
		"model list --name *-a --algorithm ldlf":       "job-faces-a",
		"model list --sort=-dataset --after job-genes": "job-faces-b job-faces-a",
	} {
		var list []struct{ Name string }
		cmdtest.JSON(t, &list, at(command)...)
		var names []string
		for _, e := range list {
			names = append(names, e.Name)
		}
		if !slices.Equal(names, strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", command, names, want)
		}
	}
	for command, says := range map[string]string{
		"dataset list --sort age":            "sort",
		"dataset list --limit -1":            "limit",
		"dataset list --since 1h --until 2h": "--since",
		"model list --sort newest":           "sort",
		"experiment list --state gone":       "state",
	} {
		if e := cmdtest.Run(t, at(command)...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, says) {
			t.Errorf("%s: exit code %d: %s", command, e.Code, e.Stderr)
		}
	}
	if e := cmdtest.Run(t, at("dataset list --after nothing")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "nothing") {
		t.Errorf("after what is not there: exit code %d: %s", e.Code, e.Stderr)
	}
}
