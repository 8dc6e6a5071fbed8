package overview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestWrite: the grid is aligned under wide names, and equal failures are one line.
func TestWrite(t *testing.T) {
	table := &result.Table{
		Name: "e", Datasets: []result.Dataset{{Name: "a"}, {Name: "日本"}}, Methods: []result.Method{{Name: "aa-knn"},
			{Name: "r\x1bf"}},
		Spec: &result.Spec{File: "e.yaml", Digest: "0123456789abcdef", Data: "data"},
	}
	add := func(dataset, method int, c result.Run, n int) {
		for range n {
			c.Dataset, c.Method, c.Fold = dataset, method, len(table.Runs)
			table.Runs = append(table.Runs, c)
		}
	}
	add(0, 0, result.Run{State: result.Done}, 1234)
	add(0, 1, result.Run{State: result.Failed, Error: "it failed", Attempts: 2, Command: "coppice train"}, 2)
	add(1, 1, result.Run{State: result.Failed, Error: "no scale", NoCommand: "no file"}, 1)
	add(1, 0, result.Run{State: result.Running}, 1)
	var b strings.Builder
	o := Overview{Table: table, State: "running", Skipped: []string{"x", "y"}, Notes: []string{"old"},
		Report: "coppice experiment report e"}
	o.Write(&b)
	want := `experiment  e
runs        1,234 done, 1 running, 3 failed
state       running
skipped     x, y
spec        e.yaml, SHA-256 0123456789ab
data        data
note: old
failed: a, r` + "\x1b" + `f (2 runs, 4 attempts): it failed
  to train a run alone: coppice train
failed: 日本, r` + "\x1b" + `f (1 run): no scale
  no command to train a run alone: no file

done/all              a      日本
aa-knn        1234/1234    0/1 +1
r\x1bf           0/2 !2    0/1 !1

to see the measures: coppice experiment report e
`
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestWriteFailures: at most 20 failures are listed, and the rest is counted.
func TestWriteFailures(t *testing.T) {
	table := &result.Table{Datasets: []result.Dataset{{Name: "a"}}, Methods: []result.Method{{Name: "b"}}}
	for i := range maxListed + 3 {
		table.Runs = append(table.Runs, result.Run{State: result.Failed, Fold: i, Error: fmt.Sprint(i)})
	}
	var b strings.Builder
	writeFailures(&b, table)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != maxListed+1 || lines[19] != "failed: a, b (1 run): 19" ||
		lines[20] != "failed: and 3 more; -o json lists all" {
		t.Errorf("%q", lines)
	}
}

// TestPlan: at most 20 lines are about orphaned runs, and notes come last.
func TestPlan(t *testing.T) {
	p := &protocol.ExperimentPlan{Name: "e", Runs: 1, Kept: 2000, Orphaned: 30, Changes: []string{"x"},
		Refused: []string{"y"}, Notes: []string{"z"}}
	for i := range maxListed + 2 {
		p.Orphans = append(p.Orphans, fmt.Sprint(i))
	}
	got := Plan(p)
	if first := "experiment e: 1 new run, 2,000 kept, 30 orphaned"; got[0] != first || got[1] != "changed: x" ||
		got[2] != "orphaned: 0" {
		t.Errorf("%q", got)
	}
	if want := []string{"orphaned: 19", "orphaned: 2 more; -o json lists all", "refused: y",
		"z"}; !slices.Equal(got[len(got)-4:], want) {
		t.Errorf("%q, want %q", got[len(got)-4:], want)
	}
}
