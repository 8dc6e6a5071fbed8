package overview

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Grid counts the runs of each method on each dataset. Runs may change their state while lines are drawn.
type Grid struct {
	mu   sync.Mutex
	grid protocol.ExperimentGrid
	runs map[string][]*result.Run // by key
}

// GridOf counts the runs of a table, which the grid keeps. keys are the keys of the runs; nil: no run changes its
// state.
func GridOf(t *result.Table, keys []string) *Grid {
	g := &Grid{runs: make(map[string][]*result.Run), grid: protocol.ExperimentGrid{Name: t.Name, Datasets: []string{},
		Methods: []protocol.GridMethod{}, Total: len(t.Methods)}}
	for i := range t.Datasets {
		g.grid.Datasets = append(g.grid.Datasets, t.Datasets[i].Name)
	}
	for i := range t.Methods {
		g.grid.Methods = append(g.grid.Methods, protocol.GridMethod{Name: t.Methods[i].Name,
			Runs: make([]protocol.GridElement, len(t.Datasets))})
	}
	described := 0
	for i := range t.Runs {
		c := &t.Runs[i]
		e := g.element(c)
		e.All++
		g.grid.Runs.All++
		g.count(c, 1)
		if c.State == result.Failed && len(e.Failures) < protocol.MaxElementFailures &&
			described < protocol.MaxGridFailures {
			e.Failures = append(e.Failures, protocol.FailedRun{Repeat: c.Repeat, Fold: c.Fold, Error: c.Error})
			described++
		}
		if keys != nil && keys[i] != "" {
			g.runs[keys[i]] = append(g.runs[keys[i]], c)
		}
	}
	return g
}

func (g *Grid) element(c *result.Run) *protocol.GridElement {
	return &g.grid.Methods[c.Method].Runs[c.Dataset]
}

// count adds a number to the runs that have the state of a run.
func (g *Grid) count(c *result.Run, n int) {
	for _, counts := range []*protocol.RunCounts{&g.element(c).RunCounts, &g.grid.Runs} {
		switch c.State {
		case result.Done:
			counts.Done += n
		case result.Failed:
			counts.Failed += n
		case result.Running:
			counts.Running += n
		}
	}
}

// Set sets the state of the runs with a key.
func (g *Grid) Set(key, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.runs[key] {
		g.count(c, -1)
		c.State = state
		g.count(c, 1)
	}
}

// Lines draws the grid as the function Lines does.
func (g *Grid) Lines(width, height int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Lines(&g.grid, width, height)
}

// Answer returns the counts as the API has them; Set must not be called afterwards.
func (g *Grid) Answer(q protocol.GridQuery) protocol.ExperimentGrid { return g.grid.Part(q) }

// The smallest terminal that shows a grid, and the room for names in it.
const (
	leastWidth     = 40
	leastHeight    = 7
	leastNameWidth = 12
	leastColumn    = 8
)

// legends explain the numbers, the longest first.
var legends = []string{"done/all   +running   !failed", "done/all +run !fail", "done/all"}

// Lines draws a grid in fewer than width columns and at most height lines. It returns nil if there is no room. The
// last column and the last line sum the datasets and methods without room.
func Lines(of *protocol.ExperimentGrid, width, height int) []string {
	g := drawn{of}
	if width < leastWidth || height < leastHeight || len(g.Methods) == 0 {
		return nil
	}
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
			return countsText(g.sum(r.methods, c.datasets))
		}))
	}
	return list
}

// drawn is a grid that is drawn.
type drawn struct{ *protocol.ExperimentGrid }

// sum adds the runs of some methods on some datasets.
func (g drawn) sum(methods, datasets []int) (sum protocol.RunCounts) {
	for _, method := range methods {
		for _, d := range datasets {
			sum = sum.Plus(g.Methods[method].Runs[d].RunCounts)
		}
	}
	return sum
}

// line is a line of the grid: one method, or the sum of the methods without room.
type line struct {
	name    string
	methods []int
}

// shownMethods returns at most so many lines, in the order of the grid. If there is no room for all methods, methods
// with running or failed runs come first, then methods that have not ended. The last line has the rest.
func (g drawn) shownMethods(most int) (list []line) {
	order := make([]int, len(g.Methods))
	for i := range order {
		order[i] = i
	}
	rest := []int(nil)
	if len(order) > most {
		urgencies := make([]int, len(order))
		for i := range g.Methods {
			urgencies[i] = urgency(&g.Methods[i])
		}
		slices.SortStableFunc(order, func(a, b int) int { return urgencies[a] - urgencies[b] })
		order, rest = order[:most-1], order[most-1:]
		slices.Sort(order)
	}
	for _, i := range order {
		list = append(list, line{printable.Line(g.Methods[i].Name), []int{i}})
	}
	if rest != nil {
		list = append(list, line{fmt.Sprintf("and %s methods", units.Count(len(rest))), rest})
	}
	return list
}

// urgency orders methods if there is no room for all: 0 is shown first.
func urgency(m *protocol.GridMethod) int {
	var sum protocol.RunCounts
	for i := range m.Runs {
		sum = sum.Plus(m.Runs[i].RunCounts)
	}
	switch {
	case sum.Running > 0:
		return 0
	case sum.Failed > 0:
		return 1
	case sum.Done < sum.All:
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

// columns returns the datasets that fit, two places apart. The last column has the rest.
func (g drawn) columns(methods []line, width int) (list []column) {
	sized := func(name string, datasets []int) column {
		c := column{name: name, datasets: datasets}
		c.width = max(min(printable.Width(name), 2*leastColumn), leastColumn)
		for _, r := range methods {
			c.width = max(c.width, printable.Width(countsText(g.sum(r.methods, datasets))))
		}
		return c
	}
	all, used := make([]int, len(g.Datasets)), 0
	for d := range all {
		all[d] = d
	}
	for d, name := range g.Datasets {
		c := sized(printable.Line(name), all[d:d+1])
		rest := sized(fmt.Sprintf("%d more", len(g.Datasets)-d), all[d:])
		after := sized(fmt.Sprintf("%d more", len(g.Datasets)-d-1), all[d+1:])
		last := d == len(g.Datasets)-1
		if used+2+c.width > width || !last && used+4+c.width+after.width > width {
			return append(list, rest)
		}
		list = append(list, c)
		used += 2 + c.width
	}
	return list
}

// countsText writes how many runs are done, are running and failed.
func countsText(n protocol.RunCounts) string {
	text := fmt.Sprintf("%d/%d", n.Done, n.All)
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
