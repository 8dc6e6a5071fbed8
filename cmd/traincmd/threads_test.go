package traincmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestThreads: training, prediction and evaluation give the same bytes on any number of
// threads, and rows stay in their order.
func TestThreads(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 2560, 1)
	model := filepath.Join(dir, "m.model")
	var first results.Result
	cmdtest.JSON(t, &first, clitest.TrainArgs(data, "--threads", "1", "--model-out", model)...)
	for _, n := range []string{"2", "5"} {
		var r results.Result
		cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--threads", n)...)
		if r.ModelDigest != first.ModelDigest {
			t.Errorf("%s threads: model %.12s, one: %.12s", n, r.ModelDigest, first.ModelDigest)
		}
	}
	outputs := func(threads string) string {
		out := filepath.Join(dir, "p"+threads+".csv")
		cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out, "--threads", threads)
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--threads", threads, "-o", "json")
	}
	want := outputs("1")
	for _, n := range []string{"0", "2", "7"} {
		if outputs(n) != want {
			t.Errorf("%s threads predict other bytes than one", n)
		}
	}
}

func TestThreadsUsage(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 100, 1)
	for want, args := range map[string][]string{
		"need --local":        {"train", "--dataset", "x", "--threads", "2"},
		"--kept-memory":       {"train", "--dataset", "x", "--kept-memory", "1GiB"},
		"--threads -1":        clitest.TrainArgs(data, "--threads=-1"),
		"--threads 1000000: ": {"predict", "--model", "m", "--data", data, "--out", "o.csv", "--threads", "1000000"},
	} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}
