package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// gridTable is a table of so many methods and datasets, with four folds each.
func gridTable(methods, datasets int) *result.Table {
	t := &result.Table{}
	for d := range datasets {
		t.Datasets = append(t.Datasets, result.Dataset{Name: fmt.Sprint("dataset_", d), Folds: 4})
	}
	for r := range methods {
		t.Methods = append(t.Methods, result.Method{Name: fmt.Sprintf("structrf preset=paper trees=%d", r)})
		for d := range datasets {
			for fold := range 4 {
				t.Runs = append(t.Runs, result.Run{Dataset: d, Method: r, Fold: fold, State: result.Missing})
			}
		}
	}
	return t
}

func TestGrid(t *testing.T) {
	table := gridTable(2, 2)
	table.Runs[0].State, table.Runs[1].State, table.Runs[4].State = result.Done, result.Running, result.Failed
	keys := make([]string, len(table.Runs))
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	g := GridOf(table, keys)
	want := strings.Join([]string{
		"done/all   +running   !failed  dataset_0  dataset_1",
		"structrf preset=paper trees=0     1/4 +1     0/4 !1",
		"structrf preset=paper trees=1        0/4        0/4",
	}, "\n")
	if got := strings.Join(g.Lines(79, 24), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	g.Set("1", result.Failed)
	g.Set("4", result.Running)
	g.Set("4", result.Done)
	g.Set("12", result.Running)
	want = strings.Join([]string{
		"done/all   +running   !failed  dataset_0  dataset_1",
		"structrf preset=paper trees=0     1/4 !1        1/4",
		"structrf preset=paper trees=1        0/4     0/4 +1",
	}, "\n")
	if got := strings.Join(g.Lines(79, 24), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	all := protocol.RunCounts{All: 16, Done: 2, Failed: 1, Running: 1}
	if got := g.Answer(protocol.GridQuery{From: 1, Limit: 1}); got.Runs != all || got.Total != 2 || got.Next != 0 ||
		len(got.Methods) != 1 || got.Methods[0].Runs[1].Running != 1 {
		t.Errorf("%+v", got)
	}
}

// TestGridFits: no line is wider than the terminal, and the lines fit into its height. Methods and datasets without
// room are added up, so that each run counts. Methods with running or failed runs are shown first.
func TestGridFits(t *testing.T) {
	testkit.WithoutRace(t)
	table := gridTable(40, 12)
	for i := range table.Runs {
		if c := &table.Runs[i]; c.Method == 37 {
			c.State = result.Running
		} else if c.Method == 30 {
			c.State = result.Failed
		}
	}
	g := GridOf(table, nil)
	for width := range 200 {
		for _, height := range []int{0, 6, 7, 10, 24, 60} {
			lines := g.Lines(width, height)
			if (lines == nil) != (width < leastWidth || height < leastHeight) {
				t.Fatalf("%d x %d: %d lines", width, height, len(lines))
			}
			if lines == nil {
				continue
			}
			if len(lines) >= height {
				t.Fatalf("%d lines of %d", len(lines), height)
			}
			all := 0
			for i, line := range lines {
				if n := len([]rune(line)); n > width {
					t.Fatalf("%d columns of %d: %q", n, width, line)
				}
				if i == 0 {
					continue
				}
				for _, field := range strings.Fields(line) {
					var done, of int
					if n, _ := fmt.Sscanf(field, "%d/%d", &done, &of); n == 2 {
						all += of
					}
				}
			}
			if all != len(table.Runs) {
				t.Fatalf("%d x %d: %d runs of %d:\n%s", width, height, all, len(table.Runs), strings.Join(lines, "\n"))
			}
		}
	}
	short := strings.Join(g.Lines(100, 8), "\n")
	if !strings.Contains(short, "trees=37") || !strings.Contains(short, "trees=30") ||
		!strings.Contains(short, "and 35 methods") {
		t.Errorf("rows that run or failed are not shown:\n%s", short)
	}
}
