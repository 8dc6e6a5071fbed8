package experiments_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

var (
	// go test ./harness/experiments -run TestKilledShipped -v -timeout 2h -killed-shipped
	killedShipped = flag.Bool("killed-shipped", false,
		"run shipped experiments while every process is killed, which takes ten minutes")
	killSeed = flag.Uint64("kill-seed", 0, "seed of the moments at which processes are killed; 0: draw one")
)

// killed is an experiment that runs while client commands and servers are killed.
type killed struct {
	t      *testing.T
	c      *proc.Cluster
	name   string
	spec   []string // SPEC and the flags of its data
	dir    string   // of the run with --local
	seed   uint64
	rounds int           // how often each process is killed alone; all are killed together once more
	kills  int           // how often a client command is killed at most
	most   time.Duration // the longest that a client command lives before it is killed
}

// reportFormats are the formats of `experiment report`.
var reportFormats = []string{"table", "md", "csv", "json", "latex", "html"}

// TestKilledClientsAndServers: an experiment has the report of a run with --local, byte for byte, although its commands
// are killed at random moments and started again, and each process of the cluster is killed twice.
func TestKilledClientsAndServers(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 150, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 120, 2)
	cmdtest.ArtificialFile(t, dir, "own.csv", 40, 3)
	spec := cmdtest.Write(t, dir, "killed.yaml", fmt.Sprintf(`name: killed
seed: 5
datasets:
  - first.csv
  - {file: second.csv, validation: own.csv, folds: {sklearn: 2, seed: 4, repeats: 2}}
folds: {k: 3, repeats: 2}
measures: [kl, clark]
record: [curve, predictions]
methods:
  - {algorithm: ensemble, settings: {members: 'structrf:trees=2,aa-knn', inner_folds: 2}}
  - {algorithm: sa-bfgs, grid: {l2: [0.1, 0.01]}, choose: {inner: 2}}
  - ranking
  - {algorithm: ldlf, name: diverges, settings: {steps: 100, learning_rate: 1e6}}
  - {algorithm: ldlf, settings: {steps: %d, patience: 100000}, grid: {depth: [3, 4], trees: [1, 2]}}
`, 3000))
	k := &killed{t: t, c: cmdtest.Start(t, 3, 2), name: "killed", spec: []string{spec}, dir: filepath.Join(dir, "local"),
		rounds: 1, kills: 8, most: 5 * time.Second}
	k.run()
}

// run runs the experiment here and on the cluster, and compares the reports.
func (k *killed) run() {
	t := k.t
	if k.seed = *killSeed; k.seed == 0 {
		k.seed = rand.Uint64N(1 << 32)
	}
	t.Logf("%s: to kill at the same moments again: -kill-seed %d", k.name, k.seed)
	began := time.Now()
	if e := cmdtest.RunContext(t.Context(), append([]string{"experiment", "run", "--local", "--dir", k.dir},
		k.spec...)...); !completed(e) {
		t.Fatalf("with --local: exit code %d\n%s", e.Code, e.Stderr)
	}
	t.Logf("%s: %.1f s with --local", k.name, time.Since(began).Seconds())

	began = time.Now()
	server := []string{"--server", k.c.Servers(), "--no-times"}
	var commands sync.WaitGroup
	var run, watch insisted
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	commands.Go(func() {
		if run = k.insist(1, slices.Concat([]string{"experiment", "run"}, k.spec, server)); run.err != nil {
			cancel(errors.New("experiment run has failed")) // nothing else waits for runs that do not come
		}
	})
	commands.Go(func() {
		if _, err := k.reach(ctx, 0); err == nil {
			watch = k.insist(2, append([]string{"experiment", "watch", k.name}, server...))
		}
	})
	blows, err := k.killServers(ctx)
	commands.Wait()
	if err != nil {
		t.Error(err)
	}
	for name, of := range map[string]insisted{"run": run, "watch": watch} {
		if of.err != nil {
			t.Errorf("experiment %s: %v", name, of.err)
		} else if of.killed == 0 {
			t.Errorf("experiment %s was never killed", name)
		}
	}
	k.compare(run.stdout, watch.stdout)
	list, err := k.c.Client().Jobs().List(t.Context(), protocol.JobQuery{Experiment: k.name})
	if err != nil {
		t.Fatal(err)
	}
	runs, jobs := 0, make(map[string]string) // by dataset
	for _, j := range list.Jobs {
		if runs += j.CellCount; jobs[j.Dataset] != "" {
			t.Errorf("jobs %s and %s are both about %s: runs were submitted twice", j.Name, jobs[j.Dataset], j.Dataset)
		}
		jobs[j.Dataset] = j.Name
	}
	t.Logf("%s: %d runs, %.1f s on the cluster; %d times processes were killed, each %d times; experiment run was "+
		"killed %d times, experiment watch %d times",
		k.name, runs, time.Since(began).Seconds(), blows, k.rounds+1, run.killed, watch.killed)
}

// compare holds all reports of the cluster, and the outputs of commands, against the reports of --local.
func (k *killed) compare(outputs ...string) {
	t := k.t
	for _, format := range reportFormats {
		options := []string{"--no-times", "--format", format}
		want := cmdtest.Works(t, slices.Concat([]string{"experiment", "report", k.spec[0], "--dir", k.dir}, options)...)
		got := map[string]string{"report": cmdtest.Works(t,
			slices.Concat([]string{"experiment", "report", k.name, "--server", k.c.Servers()}, options)...)}
		made, err := k.c.Client().Experiments().Report(t.Context(), k.name,
			url.Values{"format": {format}, "no_times": {"true"}})
		if err != nil {
			t.Fatal(err)
		}
		got["the leader's report"] = string(made)
		if format == "table" {
			for i, text := range outputs {
				got[fmt.Sprint("output ", i+1)] = text
			}
		}
		for what, text := range got {
			if text != want {
				t.Errorf("%s, %s: %s", what, format, firstDifference(want, text))
			}
		}
	}
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			line := func(of []string) string { return strings.Join(of[min(i, len(of)):min(i+1, len(of))], "") }
			return fmt.Sprintf("line %d of %d is\n%.300s\nwith --local, of %d:\n%.300s", i+1, len(b), line(b), len(a), line(a))
		}
	}
	return "equal"
}

// insisted is how a command ended that was started again and again.
type insisted struct {
	stdout string
	killed int
	err    error
}

// insist runs a command, kills it at random moments, and starts it again each time, until it ends.
func (k *killed) insist(stream uint64, args []string) (of insisted) {
	rng := rand.New(rand.NewPCG(k.seed, stream))
	tmp := k.t.TempDir()
	for {
		cmd, stdout, stderr := cmdtest.Process(k.t, tmp, args...)
		if of.err = cmd.Start(); of.err != nil {
			return of
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// All lengths of lives are as likely, so that some end early in a submission.
		const least = 50 * time.Millisecond
		life := time.Duration(float64(least) * math.Pow(float64(k.most)/float64(least), rng.Float64()))
		if of.killed == k.kills {
			life = math.MaxInt64
		}
		var err error
		select {
		case err = <-ended:
		case <-time.After(life):
			cmd.Process.Kill()
			if err = <-ended; wasKilled(err) {
				of.killed++
				continue
			}
		}
		of.stdout = stdout.String()
		if err != nil && !completed(cmdtest.Ended{Code: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}) {
			of.err = fmt.Errorf("%w\n%s", err, stderr)
		}
		return of
	}
}

// wasKilled reports whether SIGKILL ended a process.
func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// blow is a moment at which processes are killed.
type blow struct {
	at    float64 // the share of the runs that has ended
	nodes []*proc.Node
	down  time.Duration // until they are started again
}

// lastBlow is the share of the runs after which nothing is killed.
const lastBlow = 0.7

// drawBlows draws in which order, and when, each node is killed alone so many times and all nodes are killed together
// once.
func drawBlows(rng *rand.Rand, nodes []*proc.Node, rounds int) (blows []blow) {
	for range rounds {
		for _, n := range nodes {
			blows = append(blows, blow{nodes: []*proc.Node{n}})
		}
	}
	blows = append(blows, blow{nodes: nodes})
	rng.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
	var at []float64
	for range blows {
		at = append(at, lastBlow*rng.Float64())
	}
	slices.Sort(at)
	for i := range blows {
		blows[i].at, blows[i].down = at[i], time.Duration(rng.Int64N(int64(time.Second)))
	}
	return blows
}

// killServers kills the processes of the cluster while the experiment runs, and starts them again. It returns the
// number of moments at which it did so.
func (k *killed) killServers(ctx context.Context) (int, error) {
	began, nodes := time.Now(), slices.Concat(k.c.Coordinators, k.c.Workers)
	blows := drawBlows(rand.New(rand.NewPCG(k.seed, 0)), nodes, k.rounds)
	for i, b := range blows {
		x, err := k.reach(ctx, b.at)
		if err != nil {
			return i, err
		}
		if x.Ended() {
			return i, fmt.Errorf("before the processes were killed at moment %d of %d, the experiment is %s", i+1, len(blows),
				x.State)
		}
		var names []string
		for _, n := range b.nodes {
			if err := n.Kill(); err != nil {
				return i, err
			}
			names = append(names, n.Name)
		}
		time.Sleep(b.down) // for so long there is nobody
		for _, n := range b.nodes {
			if err := n.Restart(); err != nil {
				return i, err
			}
		}
		k.t.Logf("%s: after %.1f s and %d of %d runs %s killed for %v", k.name, time.Since(began).Seconds(), x.Done, x.Runs,
			strings.Join(names, ", "), b.down.Round(time.Millisecond))
	}
	return len(blows), nil
}

// reach waits until a share of the runs has ended. An experiment has 0 runs before it is submitted.
func (k *killed) reach(ctx context.Context, share float64) (*protocol.Experiment, error) {
	for {
		x, err := k.c.Client().Experiments().Show(ctx, k.name)
		if err == nil && (x.Ended() || float64(x.Done) >= share*float64(x.Runs)) {
			return x, nil
		}
		if wait.For(ctx, 50*time.Millisecond) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// shippedRuns are the shipped experiments that the long test runs, each on some of its datasets: a dataset without a
// file is skipped. The ten folds of each dataset and all methods stay.
var shippedRuns = []struct {
	name     string
	datasets []string
}{
	{"structrf-figure4", []string{"SJAFFE"}},
	{"structrf-tables", []string{"SJAFFE", "Yeast_spo5", "Yeast_heat", "Yeast_cdc", "Yeast_alpha", "Movie"}},
	{"field-table", []string{"SJAFFE", "Yeast_spo5", "Movie"}},
}

// TestKilledShipped does with shipped experiments what TestKilledClientsAndServers does with a small experiment.
func TestKilledShipped(t *testing.T) {
	if !*killedShipped {
		t.Skip("it takes ten minutes; -killed-shipped has it run")
	}
	data := testkit.Shared(t, "data")
	for _, of := range shippedRuns {
		t.Run(of.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range of.datasets {
				if err := os.Symlink(filepath.Join(data, name+".mat"), filepath.Join(dir, name+".mat")); err != nil {
					t.Fatal(err)
				}
			}
			k := &killed{t: t, c: cmdtest.Start(t, 3, 2), name: of.name, spec: []string{of.name, "--data", dir},
				dir: filepath.Join(dir, "local"), rounds: 2, kills: 30, most: 10 * time.Second}
			k.run()
		})
	}
}
