package clusters_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// portable has a process compute in plain Go.
const portable = "GODEBUG=cpu.avx2=off,cpu.avx512f=off,cpu.fma=off"

// deepJobs are networks with each kind of layer, as settings.
var deepJobs = map[string][]string{
	"ldlf-mlp": {"features=mlp", "hidden=24,16", "layer_norm=true", "trees=2", "depth=4"},
	"ldlf-conv": {"features=conv", "shape=1x5x8", "channels=4,6", "hidden=16", "flip=true", "shift=1", "trees=2",
		"depth=4"},
	"dldl": {"hidden=48", "validation_steps=50"},
	"dldl-conv": {"features=conv", "shape=1x5x8", "channels=6", "pooling=average", "layer_norm=true", "hidden=16",
		"validation_steps=50"},
}

func deepJob(data, name string, steps int, more ...string) []string {
	algorithm, _, _ := strings.Cut(name, "-")
	args := []string{"train", "--data", data, "--algorithm", algorithm, "--seed", "5", "--test-fraction", "0.1", "-o",
		"json", "--steps", strconv.Itoa(steps)}
	for _, set := range append([]string{"batch_size=128", "patience=1000", "refit=false"}, deepJobs[name]...) {
		args = append(args, "--set", set)
	}
	return append(args, more...)
}

// TestNetworksSurvive: networks have the digest of this process on a cluster whose processes compute in plain Go,
// where a worker, and then the leader, is killed on the way.
func TestNetworksSurvive(t *testing.T) {
	testkit.WithoutRace(t)
	requirePortable(t)
	data := filepath.Join(t.TempDir(), "images.npz")
	cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "600", "--features", "40", "--labels", "5",
		"--out", data)
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 3, Workers: 2, Env: []string{portable}})
	for _, name := range slices.Sorted(maps.Keys(deepJobs)) {
		const steps = 200
		want := cmdtest.ModelDigest(t, cmdtest.Run(t, deepJob(data, name, steps, "--local")...))
		got := cmdtest.ModelDigest(t, cmdtest.MidWay(t, c, name, deepJob(data, name, steps), func() {
			cmdtest.Kill(t, c.Workers[0])
			if err := cmdtest.KillLeader(t, c).Restart(); err != nil {
				t.Error(err)
			}
		}))
		if got != want || len(got) != 64 {
			t.Errorf("%s: digest %q, in this process %q", name, got, want)
		}
		if err := c.Workers[0].Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// requirePortable checks that the variable has the effect that it should.
func requirePortable(t *testing.T) {
	t.Helper()
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), "bench", "network", "--runs", "1", "--rows", "1x32x32",
		"-o", "json")
	cmd.Env = append(cmd.Env, portable)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var r speed.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Machine.Kernels != "portable Go" {
		t.Errorf("the kernels are %s", r.Machine.Kernels)
	}
}
