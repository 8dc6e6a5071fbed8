package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// cellGrid is how far each row of an experiment is on each dataset. Cells may be moved while lines
// are drawn.
type cellGrid struct {
	rows, datasets []string

	mu sync.Mutex
	at [][]experiment.Counts // by row, then by dataset
}

// gridOf counts the cells of a table.
func gridOf(t *tables.Table) *cellGrid {
	g := &cellGrid{}
	for i := range t.Datasets {
		g.datasets = append(g.datasets, t.Datasets[i].Name)
	}
	for i := range t.Rows {
		g.rows = append(g.rows, t.Rows[i].Name)
		g.at = append(g.at, make([]experiment.Counts, len(t.Datasets)))
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		g.at[c.Row][c.Dataset].Add(c.State)
	}
	return g
}

// move counts a cell under another state.
func (g *cellGrid) move(row, dataset int, from, to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.at[row][dataset]
	switch from {
	case tables.Missing:
		n.Missing--
	case tables.Running:
		n.Running--
	case tables.Failed:
		n.Failed--
	case tables.Done:
		n.Done--
	}
	n.Add(to)
}

// The least terminal that shows a grid, and the room of names in it.
const (
	leastGridWidth  = 40
	leastGridHeight = 7
	leastNameWidth  = 12
	leastColumn     = 8
)

// gridLegends say what the numbers are, the longest first.
var gridLegends = []string{"done/all   +running   !failed", "done/all +run !fail", "done/all"}

// legend is the longest one that has room.
func legend(width int) string {
	at := slices.IndexFunc(gridLegends, func(text string) bool { return len(text) <= width })
	return gridLegends[at]
}

// lines draws the grid in less than so many columns and at most so many lines; nil: there is no
// room for one. Datasets and rows without room are added up in the last column and the last line.
func (g *cellGrid) lines(width, height int) []string {
	if width < leastGridWidth || height < leastGridHeight || len(g.rows) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rows := g.shownRows(height - 2)
	names := g.nameWidth(rows, width)
	columns := g.columns(rows, width-names-1)
	list := []string{gridLine(legend(names), names, columns, func(c *gridColumn) string { return cutName(c.name, c.width) })}
	for _, r := range rows {
		list = append(list, gridLine(cutName(r.name, names), names, columns, func(c *gridColumn) string { return countsText(c.of(g, r.rows)) }))
	}
	return list
}

// gridRow is a line of the grid: one row, or what is left of them.
type gridRow struct {
	name string
	rows []int
}

// shownRows are at most so many lines: all rows, or those where something runs or failed, then those that
// have not ended, then the others, each in the order of the table; the last line has the rest.
func (g *cellGrid) shownRows(most int) (list []gridRow) {
	order := make([]int, len(g.rows))
	for i := range order {
		order[i] = i
	}
	rest := []int(nil)
	if len(order) > most {
		slices.SortStableFunc(order, func(a, b int) int { return g.urgency(a) - g.urgency(b) })
		order, rest = order[:most-1], order[most-1:]
		slices.Sort(order)
	}
	for _, i := range order {
		list = append(list, gridRow{g.rows[i], []int{i}})
	}
	if rest != nil {
		list = append(list, gridRow{fmt.Sprintf("and %s", plural(len(rest), "method")), rest})
	}
	return list
}

// urgency orders rows where there is no room for all: 0 is shown first.
func (g *cellGrid) urgency(row int) int {
	sum := addUp(g.at[row])
	switch {
	case sum.Running > 0:
		return 0
	case sum.Failed > 0:
		return 1
	case sum.Missing > 0:
		return 2
	}
	return 3
}

// addUp adds counts.
func addUp(list []experiment.Counts) (sum experiment.Counts) {
	for _, n := range list {
		sum.Done, sum.Failed, sum.Running, sum.Missing = sum.Done+n.Done, sum.Failed+n.Failed, sum.Running+n.Running, sum.Missing+n.Missing
	}
	return sum
}

// nameWidth is the width of the names: that of the longest, and at most two fifths of the terminal.
func (g *cellGrid) nameWidth(rows []gridRow, width int) int {
	longest := leastNameWidth
	for _, r := range rows {
		longest = max(longest, printable.Width(r.name))
	}
	return min(longest, max(leastNameWidth, width*2/5))
}

// gridColumn is a column of the grid: a dataset, or those without room.
type gridColumn struct {
	name     string
	datasets []int
	width    int
}

func (c *gridColumn) of(g *cellGrid, rows []int) (sum experiment.Counts) {
	for _, row := range rows {
		for _, d := range c.datasets {
			sum = addUp([]experiment.Counts{sum, g.at[row][d]})
		}
	}
	return sum
}

// columns are the datasets that there is room for, each two places from the other; the last column
// has the rest.
func (g *cellGrid) columns(rows []gridRow, width int) (list []gridColumn) {
	sized := func(name string, datasets []int) gridColumn {
		c := gridColumn{name: name, datasets: datasets}
		c.width = max(min(printable.Width(name), 2*leastColumn), leastColumn)
		for _, r := range rows {
			c.width = max(c.width, printable.Width(countsText(c.of(g, r.rows))))
		}
		return c
	}
	used := 0
	for d, name := range g.datasets {
		c := sized(name, []int{d})
		rest := sized(fmt.Sprintf("%d more", len(g.datasets)-d), numbersFrom(d, len(g.datasets)))
		after := sized(fmt.Sprintf("%d more", len(g.datasets)-d-1), numbersFrom(d+1, len(g.datasets)))
		last := d == len(g.datasets)-1
		if used+2+c.width > width || !last && used+4+c.width+after.width > width {
			return append(list, rest)
		}
		list = append(list, c)
		used += 2 + c.width
	}
	return list
}

func numbersFrom(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// countsText is how many cells are done of all, run and failed.
func countsText(n experiment.Counts) string {
	text := fmt.Sprintf("%d/%d", n.Done, n.Done+n.Failed+n.Running+n.Missing)
	if n.Running > 0 {
		text += fmt.Sprintf(" +%d", n.Running)
	}
	if n.Failed > 0 {
		text += fmt.Sprintf(" !%d", n.Failed)
	}
	return text
}

// gridLine is a name and then the columns, whose texts stand to the right.
func gridLine(name string, width int, columns []gridColumn, of func(*gridColumn) string) string {
	text := name + strings.Repeat(" ", max(0, width-printable.Width(name)))
	for i := range columns {
		own := of(&columns[i])
		text += "  " + strings.Repeat(" ", max(0, columns[i].width-printable.Width(own))) + own
	}
	return strings.TrimRight(text, " ")
}

// cutName shortens a name in its middle: names differ at their ends.
func cutName(name string, width int) string {
	runes := []rune(name)
	text := name
	for keep := len(runes) - 1; keep > 0 && printable.Width(text) > width; keep-- {
		text = string(runes[:(keep+1)/2]) + "…" + string(runes[len(runes)-keep/2:])
	}
	return text
}
