package benchcmd

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/bench"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// A small measurement on a real cluster: the figures of a single run belong together,
// both sides have the same models, and nothing is left behind.
func TestBench(t *testing.T) {
	testkit.WithoutRace(t)
	tmp := t.TempDir()
	cmd, stdout, stderr := cmdtest.Process(t, tmp, "bench", "--tls", "--coordinators", "1", "--runs", "1", "--turns", "2",
		"--trees", "2", "--steps", "60", "-o", "json")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var r benchReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*bench.Pair{"structrf": r.Forest, "ldlf": &r.Step.Pair} {
		if p.Digest == "" || p.Steps == 0 || p.Computed <= 0 || p.Computed > p.Cluster.Max {
			t.Errorf("%s: %+v", name, p)
		}
		if want := p.Cluster.Median / p.Local.Median; math.Abs(p.Ratio.Median-want) > 1e-9 {
			t.Errorf("%s: the ratio is %v, of the two figures %v", name, p.Ratio.Median, want)
		}
	}
	s := r.Step
	if want := s.Cluster - s.Local; math.Abs(s.More.Median-want) > 1e-9 {
		t.Errorf("a step takes %v, and %v in one process: that is %v more, not %v", s.Cluster, s.Local, want, s.More.Median)
	}
	if p := s.Phases; p.Between <= 0 || p.Broadcast <= 0 || p.Reduce <= 0 || p.Between+p.Broadcast+
		p.Reduce > s.Pair.Cluster.Max {
		t.Errorf("phases %+v of a job of %v s", p, s.Pair.Cluster)
	}
	if l, w := s.Leader, s.Workers; l.Processor < 0 || w.Processor < 0 || l.Allocations < 60 || w.Allocations < 60 ||
		l.Bytes <= l.Allocations || w.Bytes <= w.Allocations {
		t.Errorf("costs of the leader %+v, of the worker %+v", l, w)
	}
	if f := r.Forest; f.Sent < 100 || f.Received < 100 {
		t.Errorf("%v bytes to the worker and %v back", f.Sent, f.Received)
	}
	if least, there, back := 4.0*3*64, s.Sent/float64(s.Steps), s.Received/float64(s.Steps); there < least ||
		back < least || there > 1e5 {
		t.Errorf("%v bytes a step to the worker and %v back; Θ alone has more than %v", there, back, least)
	}
	if r.Kind != "cluster" || len(r.Rows) != 4 || r.Rows[3].Seconds.Median != s.Pair.Cluster.Median ||
		r.Machine.Cores == 0 || r.Runs != 1 || !r.TLS {
		t.Errorf("%+v", r.Report)
	}
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestBenchUsage(t *testing.T) {
	testkit.WithoutRace(t)
	for args, says := range map[string]string{
		"--turns 0":            "turns",
		"--runs 0":             "runs",
		"--coordinators 2":     "1, 3 or 5",
		"--only rf":            "structrf",
		"cluster --runs 0":     "runs",
		"forest --runs 0":      "runs",
		"ldlf --rows sjaffe":   "no line of bench ldlf",
		"network --rows yeast": "no line of bench network",
		"boost --rows sjaffe":  "no line of bench boost",
		"cluster --peers":      "unknown flag",
		"nonsense":             "nonsense",
	} {
		e := cmdtest.Run(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, says) || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

// TestBenchNetwork: a layer without a dataset has its row, and no K-L; --rows leaves out others.
func TestBenchNetwork(t *testing.T) {
	testkit.WithoutRace(t)
	e := cmdtest.Run(t, "bench", "network", "--runs", "1", "--rows", "1x32x32", "-o", "json")
	if e.Code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
	}
	var r speed.Report
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Kind != "network" || r.Runs != 1 || r.Versions["Go"] == "" || len(r.Rows) != 1 ||
		r.Rows[0].Of != "forward and backward" || r.Rows[0].Seconds.Median <= 0 || r.Rows[0].Loss != 0 || len(r.Data) != 0 {
		t.Errorf("%+v", r)
	}
	e = cmdtest.Run(t, "bench", "network", "--runs", "1", "--rows", "1X32x32")
	for _, says := range []string{"convolution 3x3 of 16 on 1x32x32", "1 run, interleaved"} {
		if !strings.Contains(e.Stdout, says) {
			t.Errorf("it does not say %q:\n%s%s", says, e.Stdout, e.Stderr)
		}
	}
	if strings.Contains(e.Stdout, "243-256-64") { // which --rows leaves out
		t.Errorf("it measures what was not asked for:\n%s", e.Stdout)
	}
}

// TestBenchBoost: the trees of the last run are in the report, and a peer that is not installed is skipped.
func TestBenchBoost(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("it boosts trees on Movie's size")
	}
	e := cmdtest.Run(t, "bench", "boost", "--runs", "1", "--rows", "movie", "--peers", "--python", "no-such-python")
	for _, says := range []string{"Movie: generated", "10 trees", "search for splits", "K-L after each tree",
		"lightgbm_boost.py was skipped: no-such-python is not installed"} {
		if e.Code != cli.ExitOK || !strings.Contains(e.Stdout, says) {
			t.Errorf("exit code %d, and it does not say %q:\n%s%s", e.Code, says, e.Stdout, e.Stderr)
		}
	}
}

// TestBenchSkipsPeers: without a Python the table is there all the same, with a reason, and
// nothing is left behind.
func TestBenchSkipsPeers(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("it grows forests")
	}
	tmp := t.TempDir()
	cmd, stdout, stderr := cmdtest.Process(t, tmp, "bench", "forest", "--rows", "sjaffe", "--runs", "1", "--peers",
		"--python", "no-such-python")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	for _, says := range []string{"SJAFFE: generated", "growing 50 trees",
		"sklearn_forest.py was skipped: no-such-python is not installed"} {
		if !strings.Contains(stdout.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, stdout)
		}
	}
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
