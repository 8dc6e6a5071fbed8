package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/bench"
)

// A small measurement on a real cluster: the figures of a single run belong together,
// both sides have the same models, and nothing is left behind.
func TestBench(t *testing.T) {
	tmp := t.TempDir()
	cmd, stdout, stderr := process(t, tmp, "bench", "--coordinators", "1", "--runs", "1", "--turns", "2", "--trees", "2", "--steps", "60", "-o", "json")
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
	if want := s.Cluster - s.Local - s.Transfers.Median; math.Abs(s.Overhead.Median-want) > 1e-9 || s.Transfers.Median <= 0 {
		t.Errorf("a step takes %v, and %v in one process; with transfers of %v that leaves %v, not %v", s.Cluster, s.Local, s.Transfers.Median, want, s.Overhead.Median)
	}
	if least := 4.0 * 3 * 64; s.Sent < least || s.Received < least || s.Sent > 1e5 {
		t.Errorf("%v bytes a step to the worker and %v back; Θ alone has more than %v", s.Sent, s.Received, least)
	}
	if left := contents(t, tmp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestBenchUsage(t *testing.T) {
	for args, says := range map[string]string{
		"--turns 0":        "turns",
		"--runs 0":         "runs",
		"--coordinators 2": "1, 3 or 5",
		"--only rf":        "structrf",
	} {
		e := coppice(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if e.code != exitUsage || !strings.Contains(e.stderr, says) || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", args, e.code, e.stderr)
		}
	}
}
