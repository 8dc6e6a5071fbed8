package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// gridTable is a table of so many rows and datasets, with four folds each.
func gridTable(rows, datasets int) *tables.Table {
	t := &tables.Table{}
	for d := range datasets {
		t.Datasets = append(t.Datasets, tables.Dataset{Name: fmt.Sprint("dataset_", d), Folds: 4})
	}
	for r := range rows {
		t.Rows = append(t.Rows, tables.Row{Name: fmt.Sprintf("structrf preset=paper trees=%d", r)})
		for d := range datasets {
			for fold := range 4 {
				t.Cells = append(t.Cells, tables.Cell{Dataset: d, Row: r, Fold: fold, State: tables.Missing})
			}
		}
	}
	return t
}

func TestCellGrid(t *testing.T) {
	table := gridTable(2, 2)
	table.Cells[0].State, table.Cells[1].State, table.Cells[4].State = tables.Done, tables.Running, tables.Failed
	g := gridOf(table)
	want := strings.Join([]string{
		"done/all   +running   !failed  dataset_0  dataset_1",
		"structrf preset=paper trees=0     1/4 +1     0/4 !1",
		"structrf preset=paper trees=1        0/4        0/4",
	}, "\n")
	if got := strings.Join(g.lines(79, 24), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	g.move(0, 0, tables.Running, tables.Failed)
	g.move(0, 1, tables.Failed, tables.Running)
	g.move(0, 1, tables.Running, tables.Done)
	g.move(1, 1, tables.Missing, tables.Running)
	if got, want := g.at, [][]experiment.Counts{{{Done: 1, Failed: 1, Missing: 2}, {Done: 1, Missing: 3}}, {{Missing: 4}, {Running: 1, Missing: 3}}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCellGridFits: whatever the terminal, no line is wider and no more lines are there; what has no room is
// added up, so that no cell is lost, and rows that run or failed are shown first.
func TestCellGridFits(t *testing.T) {
	testkit.WithoutRace(t)
	table := gridTable(40, 12)
	for i := range table.Cells {
		if c := &table.Cells[i]; c.Row == 37 {
			c.State = tables.Running
		} else if c.Row == 30 {
			c.State = tables.Failed
		}
	}
	g := gridOf(table)
	for width := range 200 {
		for _, height := range []int{0, 6, 7, 10, 24, 60} {
			lines := g.lines(width, height)
			if (lines == nil) != (width < leastGridWidth || height < leastGridHeight) {
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
			if all != len(table.Cells) {
				t.Fatalf("%d x %d: %d runs of %d:\n%s", width, height, all, len(table.Cells), strings.Join(lines, "\n"))
			}
		}
	}
	short := strings.Join(g.lines(100, 8), "\n")
	if !strings.Contains(short, "trees=37") || !strings.Contains(short, "trees=30") || !strings.Contains(short, "and 35 methods") {
		t.Errorf("rows that run or failed are not shown:\n%s", short)
	}
}

// TestLiveMeter: lines are drawn over each other, text that comes between stays, and at the end
// nothing is left.
func TestLiveMeter(t *testing.T) {
	m, out, pass := slowMeter(true)
	m.live, m.size = true, func() (columns, lines int) { return 20, 10 }
	pass(quiet)
	grid := func(columns, lines int) []string {
		return []string{fmt.Sprintf("%d x %d", columns, lines), strings.Repeat("x", 30)}
	}
	m.showAll("first", grid)
	out.WriteString("\r\x1b[Ka note\n")
	pass(time.Second)
	m.showAll("second", grid)
	m.clear()
	if got := screenOf(out); got != "a note\n" {
		t.Errorf("the screen shows %q", got)
	}
	out.Reset()
	m.draw([]string{"one", "two", strings.Repeat("x", 30)}, 20)
	if got := screenOf(out); got != "one\ntwo\n"+strings.Repeat("x", 18)+"…" {
		t.Errorf("the screen shows %q", got)
	}
}

// screenOf is what a terminal shows after some output: of the sequences it knows those that the meter
// writes.
func screenOf(out *bytes.Buffer) string {
	lines, line, column := [][]rune{nil}, 0, 0
	text := []rune(out.String())
	for i := 0; i < len(text); i++ {
		rest := string(text[i:])
		var up int
		switch {
		case strings.HasPrefix(rest, "\x1b[J"):
			lines, i = append(lines[:line], lines[line][:min(column, len(lines[line]))]), i+2
		case strings.HasPrefix(rest, "\x1b[K"):
			lines[line], i = lines[line][:min(column, len(lines[line]))], i+2
		case strings.HasPrefix(rest, "\x1b["):
			fmt.Sscanf(rest, "\x1b[%dA", &up)
			line, i = line-up, i+2+len(fmt.Sprint(up))
		case text[i] == '\r':
			column = 0
		case text[i] == '\n':
			if line, column = line+1, 0; line == len(lines) {
				lines = append(lines, nil)
			}
		default:
			lines[line] = append(lines[line][:min(column, len(lines[line]))], text[i])
			column++
		}
	}
	var shown []string
	for _, l := range lines {
		shown = append(shown, string(l))
	}
	return strings.Join(shown, "\n")
}
