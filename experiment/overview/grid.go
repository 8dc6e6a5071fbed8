package overview

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Grid counts the runs of each method on each dataset. Runs may change their state while lines are drawn.
type Grid struct {
	methods, datasets []string

	mu   sync.Mutex
	at   [][]experiment.Counts    // by method, then by dataset
	runs map[string][]*result.Run // by key
}

// GridOf counts the runs of a table, which the grid keeps. keys are the keys of the runs; nil: no run changes its
// state.
func GridOf(t *result.Table, keys []string) *Grid {
	g := &Grid{runs: make(map[string][]*result.Run)}
	for i := range t.Datasets {
		g.datasets = append(g.datasets, printable.Line(t.Datasets[i].Name))
	}
	for i := range t.Methods {
		g.methods = append(g.methods, printable.Line(t.Methods[i].Name))
		g.at = append(g.at, make([]experiment.Counts, len(t.Datasets)))
	}
	for i := range t.Runs {
		c := &t.Runs[i]
		*g.at[c.Method][c.Dataset].Number(c.State)++
		if keys != nil && keys[i] != "" {
			g.runs[keys[i]] = append(g.runs[keys[i]], c)
		}
	}
	return g
}

// Set sets the state of the runs with a key.
func (g *Grid) Set(key, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.runs[key] {
		n := &g.at[c.Method][c.Dataset]
		*n.Number(c.State)--
		*n.Number(state)++
		c.State = state
	}
}

// The smallest terminal that shows a grid, and the room for names in it.
const (
	leastWidth     = 40
	leastHeight    = 7
	leastNameWidth = 12
	leastColumn    = 8
)

// legends explain the numbers, the longest first.
var legends = []string{"done/all   +running   !failed", "done/all +run !fail", "done/all"}

// Lines draws the grid in fewer than width columns and at most height lines. It returns nil if there is no room. The
// last column and the last line sum the datasets and methods without room.
func (g *Grid) Lines(width, height int) []string {
	if width < leastWidth || height < leastHeight || len(g.methods) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	methods := g.shownMethods(height - 2)
	longest := leastNameWidth
	for _, r := range methods {
		longest = max(longest, printable.Width(r.name))
	}
	names := min(longest, max(leastNameWidth, width*2/5))
	legend := slices.IndexFunc(legends, func(text string) bool { return len(text) <= names })
	columns := g.columns(methods, width-names-1)
	list := []string{aligned(legends[legend], names, columns, func(c *column) string { return cutName(c.name, c.width) })}
	for _, r := range methods {
		list = append(list, aligned(cutName(r.name, names), names, columns, func(c *column) string {
			return countsText(c.of(g, r.methods))
		}))
	}
	return list
}

// line is a line of the grid: one method, or the sum of the methods without room.
type line struct {
	name    string
	methods []int
}

// shownMethods returns at most so many lines, in the order of the table. If there is no room for all methods, methods
// with running or failed runs come first, then methods that have not ended. The last line has the rest.
func (g *Grid) shownMethods(most int) (list []line) {
	order := make([]int, len(g.methods))
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
		list = append(list, line{g.methods[i], []int{i}})
	}
	if rest != nil {
		list = append(list, line{fmt.Sprintf("and %s methods", units.Count(len(rest))), rest})
	}
	return list
}

// urgency orders methods if there is no room for all: 0 is shown first.
func (g *Grid) urgency(method int) int {
	var sum experiment.Counts
	for _, n := range g.at[method] {
		sum = sum.Plus(n)
	}
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

// column is a column of the grid: a dataset, or the sum of the datasets without room.
type column struct {
	name     string
	datasets []int
	width    int
}

func (c *column) of(g *Grid, methods []int) (sum experiment.Counts) {
	for _, method := range methods {
		for _, d := range c.datasets {
			sum = sum.Plus(g.at[method][d])
		}
	}
	return sum
}

// columns returns the datasets that fit, two places apart. The last column has the rest.
func (g *Grid) columns(methods []line, width int) (list []column) {
	sized := func(name string, datasets []int) column {
		c := column{name: name, datasets: datasets}
		c.width = max(min(printable.Width(name), 2*leastColumn), leastColumn)
		for _, r := range methods {
			c.width = max(c.width, printable.Width(countsText(c.of(g, r.methods))))
		}
		return c
	}
	all, used := make([]int, len(g.datasets)), 0
	for d := range all {
		all[d] = d
	}
	for d, name := range g.datasets {
		c := sized(name, all[d:d+1])
		rest := sized(fmt.Sprintf("%d more", len(g.datasets)-d), all[d:])
		after := sized(fmt.Sprintf("%d more", len(g.datasets)-d-1), all[d+1:])
		last := d == len(g.datasets)-1
		if used+2+c.width > width || !last && used+4+c.width+after.width > width {
			return append(list, rest)
		}
		list = append(list, c)
		used += 2 + c.width
	}
	return list
}

// countsText writes how many runs are done, are running and failed.
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

// aligned returns a name and the columns, aligned to the right.
func aligned(name string, width int, columns []column, of func(*column) string) string {
	text := name + strings.Repeat(" ", max(0, width-printable.Width(name)))
	for i := range columns {
		own := of(&columns[i])
		text += "  " + strings.Repeat(" ", max(0, columns[i].width-printable.Width(own))) + own
	}
	return strings.TrimRight(text, " ")
}

// cutName shortens a name in its middle, because names differ at their ends.
func cutName(name string, width int) string {
	runes := []rune(name)
	text := name
	for keep := len(runes) - 1; keep > 0 && printable.Width(text) > width; keep-- {
		text = string(runes[:(keep+1)/2]) + "…" + string(runes[len(runes)-keep/2:])
	}
	return text
}
