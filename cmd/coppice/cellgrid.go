package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/protocol"
)

// cellGrid counts the runs of each method on each dataset. Runs may change their state while lines are drawn.
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

// move moves a run from one state to another.
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

// The smallest terminal that shows a grid, and the room for names in it.
const (
	leastGridWidth  = 40
	leastGridHeight = 7
	leastNameWidth  = 12
	leastColumn     = 8
)

// gridLegends explain the numbers, the longest first.
var gridLegends = []string{"done/all   +running   !failed", "done/all +run !fail", "done/all"}

// legend returns the longest legend that fits.
func legend(width int) string {
	at := slices.IndexFunc(gridLegends, func(text string) bool { return len(text) <= width })
	return gridLegends[at]
}

// lines draws the grid in fewer than width columns and at most height lines. It returns nil if there is no room. The
// last column and the last line sum the datasets and methods without room.
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

// gridRow is a line of the grid: one method, or the sum of the methods without room.
type gridRow struct {
	name string
	rows []int
}

// shownRows returns at most so many lines, in the order of the table. If there is no room for all methods, methods with
// running or failed runs come first, then methods that have not ended. The last line has the rest.
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

// urgency orders methods if there is no room for all: 0 is shown first.
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

// nameWidth is the width of the longest name, but at most two fifths of the terminal.
func (g *cellGrid) nameWidth(rows []gridRow, width int) int {
	longest := leastNameWidth
	for _, r := range rows {
		longest = max(longest, printable.Width(r.name))
	}
	return min(longest, max(leastNameWidth, width*2/5))
}

// gridColumn is a column of the grid: a dataset, or the sum of the datasets without room.
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

// columns returns the datasets that fit, two places apart. The last column has the rest.
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

// gridLine is a name and the columns, aligned to the right.
func gridLine(name string, width int, columns []gridColumn, of func(*gridColumn) string) string {
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

// readAgain is the time after which a grid that could not be read is read again.
const readAgain = 2 * time.Second

// watchedGrid is the grid of an experiment on a cluster: the runs that have ended come with its changes, and what runs
// there are is read when it has changed. Outcomes are not read.
type watchedGrid struct {
	cl     *client.Client
	name   string
	layout *experiment.Layout // of the spec; nil: the layout of the last submission is read

	ended map[runOfJob]protocol.CellState // what is known of runs, whether they are in the grid or not
	of    string                          // the jobs and the outline that the grid is of
	next  time.Time                       // the next reading
	cells map[runOfJob][]*tables.Cell     // the cells of a run in the table; several if datasets have the same content
	grid  *cellGrid                       // nil: it was not read
}

type runOfJob struct {
	job uint64
	run int
}

// see takes a line of the changes of the experiment. If it cannot be read what runs there are, the grid stays as it is:
// the report at the end says what is wrong.
func (w *watchedGrid) see(ctx context.Context, x *protocol.ExperimentLine) {
	for _, of := range x.RunsEnded {
		for _, c := range of.Runs {
			w.ended[runOfJob{of.Job, c.Task}] = c
			w.take(runOfJob{of.Job, c.Task}, c)
		}
	}
	of := fmt.Sprintf("%d %d %s", x.Newest, x.Jobs, x.Outline)
	if w.grid != nil && of == w.of || time.Now().Before(w.next) {
		return
	}
	if w.read(ctx) == nil {
		w.of = of
	}
	w.next = time.Now().Add(readAgain)
}

// read reads what runs the experiment has.
func (w *watchedGrid) read(ctx context.Context) error {
	e, err := submission.Read(ctx, clusterSource{w.cl}, w.name)
	if err != nil {
		return err
	}
	l := w.layout
	if l == nil {
		if l, err = e.Layout(ctx); err != nil {
			return err
		}
	}
	t := l.Fill(nil, nil)
	at := make(map[string][]*tables.Cell, len(t.Cells))
	for i := range t.Cells {
		if key := l.Keys[i]; key != "" {
			at[key] = append(at[key], &t.Cells[i])
		}
	}
	of := make(map[runOfJob][]*tables.Cell)
	for _, j := range e.Jobs {
		cells, err := j.Cells()
		if err != nil {
			return err
		}
		for run := range cells {
			of[runOfJob{j.ID, run}] = at[cells[run].Key]
		}
	}
	w.cells, w.grid = of, gridOf(t)
	for run, c := range w.ended {
		w.take(run, c)
	}
	return nil
}

// take notes in the grid how a run has ended. A failed run counts as failed until it has ended well in another job.
func (w *watchedGrid) take(run runOfJob, c protocol.CellState) {
	state := tables.Done
	if c.Failed {
		state = tables.Failed
	}
	for _, cell := range w.cells[run] {
		if !c.NotRun && cell.State != tables.Done {
			w.grid.move(cell.Row, cell.Dataset, cell.State, state)
			cell.State = state
		}
	}
}

// lines draws the grid, or returns nil if it was not read.
func (w *watchedGrid) lines(columns, lines int) []string {
	if w.grid == nil {
		return nil
	}
	return w.grid.lines(columns, lines)
}
