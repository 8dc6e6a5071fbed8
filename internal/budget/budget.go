// Package budget decides which cells of an experiment may begin where their computing time is
// bounded. It is pure: whoever computes the cells tells it what has ended and what runs.
package budget

import (
	"cmp"
	"slices"
)

// Budget bounds the computing time of the cells of some groups together. It decides which cells
// are run, and never what a cell gives.
type Budget struct {
	Limit float64 // seconds
	Spent float64 // seconds of cells that have ended, in earlier runs too
}

// Group is the cells of one row on one dataset, which take about as long as each other.
type Group struct {
	Budget  *Budget // others may share it; nil: none
	Left    int     // cells that were not handed out
	Begun   bool    // a cell was handed out
	Done    int     // cells that have ended, in earlier runs too
	Seconds float64 // of those
}

// Running is a cell that was handed out and has not ended.
type Running struct {
	Group   int
	Seconds float64 // since it began
}

// Estimate returns the seconds that a cell of a group takes: the mean of its own, else usual.
func (g *Group) Estimate(usual float64) float64 {
	if g.Done > 0 {
		return g.Seconds / float64(g.Done)
	}
	return usual
}

// End notes that a cell has ended.
func (g *Group) End(seconds float64) {
	g.Begun = true
	g.Done++
	g.Seconds += seconds
}

// left returns the seconds that a budget has left beside the cells that are running; each of them
// is expected to take what it has taken at least.
func left(b *Budget, groups []Group, running []Running, usual float64) float64 {
	left := b.Limit - b.Spent
	for _, r := range running {
		if g := &groups[r.Group]; g.Budget == b {
			left -= max(g.Estimate(usual), r.Seconds)
		}
	}
	return left
}

// Plan says of each group whether its next cell may begin; usual is the mean of the seconds of all
// cells that have ended. A group that has a budget may begin while anything is left of it, so that the time
// of its cells is known. Then those groups go on whose cells all fit into what is left,
// beginning with the group that needs least: a row without all of its folds is not compared with
// others.
func Plan(groups []Group, running []Running, usual float64) []bool {
	may, byBudget := make([]bool, len(groups)), make(map[*Budget][]int)
	for i := range groups {
		g := &groups[i]
		if may[i] = g.Budget == nil && g.Left > 0; g.Budget != nil && g.Left > 0 {
			byBudget[g.Budget] = append(byBudget[g.Budget], i)
		}
	}
	for b, of := range byBudget {
		need := func(i int) float64 { return float64(groups[i].Left) * groups[i].Estimate(usual) }
		slices.SortFunc(of, func(i, j int) int { return cmp.Or(cmp.Compare(need(i), need(j)), cmp.Compare(i, j)) })
		rest := left(b, groups, running, usual)
		begin := rest > 0
		for _, i := range of {
			switch g := &groups[i]; {
			case !g.Begun:
				may[i] = begin
			case g.Done > 0: // else its first cell is running: what the others need is not known
				rest -= need(i)
				may[i] = rest >= 0
			}
		}
	}
	return may
}

// Over reports, of a budget, whether none of its cells will begin any more, as Plan says: none of them runs, whose
// end could leave more than is expected, and none may begin.
func Over(b *Budget, groups []Group, running []Running, may []bool) bool {
	for i := range groups {
		if groups[i].Budget == b && groups[i].Left > 0 && may[i] {
			return false
		}
	}
	return !slices.ContainsFunc(running, func(r Running) bool { return groups[r.Group].Budget == b })
}
