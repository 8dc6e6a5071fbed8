package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
	"github.com/coppice-ldl/coppice/internal/units"
)

// leaves is what stands in the place of a depth: seconds grow with the leaves of a whole tree.
const (
	depthSetting = "depth"
	leaves       = "leaves"
	byLabels     = "labels"
)

// growths returns the growths by settings on each dataset, then the growths by labels of each method.
func (s *Summary) growths() (all []Growth) {
	sweeps := sweepsOf(s.Methods)
	var among []family
	for i := range sweeps {
		among = append(among, sweeps[i:i+1])
	}
	for i := range sweeps {
		for d := range s.Datasets {
			if g, ok := s.growthBySetting(&sweeps[i], d); ok {
				g.short = among[i].title(among)
				g.title = "Time of " + g.short
				all = append(all, g)
			}
		}
	}
	groups := labelGroups(s.Datasets)
	for _, group := range groups {
		title := "Time by labels"
		if len(groups) > 1 {
			title += fmt.Sprintf(", %s samples of %s features", units.Count(s.Datasets[group[0]].Rows), units.Count(s.Datasets[group[0]].Features))
		}
		for method := range s.Methods {
			g := Growth{By: byLabels, Of: s.Methods[method].Name, title: title}
			for _, d := range group {
				g.add(float64(s.Datasets[d].Labels), s.timeOf(method, d))
			}
			if g.fit() {
				all = append(all, g)
			}
		}
	}
	return all
}

// growthBySetting returns the growth on a dataset by the setting of a sweep. It returns false if the values of the setting are
// not whole numbers above 0, or if a line cannot be fitted.
func (s *Summary) growthBySetting(of *sweep, d int) (Growth, bool) {
	g := Growth{By: of.setting, Of: of.algorithm, Dataset: s.Datasets[d].Name}
	if text := settingsText(of.others); text != "" {
		g.Of += " " + text
	}
	if of.setting == depthSetting {
		g.By = leaves
	}
	for _, p := range of.points {
		if p.value != math.Trunc(p.value) || p.value < 1 {
			return g, false
		}
		x := p.value
		if of.setting == depthSetting {
			x = math.Exp2(x - 1)
		}
		g.add(x, s.timeOf(p.method, d))
	}
	return g, g.fit()
}

// labelGroups are the datasets, by number of labels, that differ in labels alone.
func labelGroups(sets []result.Dataset) (groups [][]int) {
	alike := func(a, b *result.Dataset) bool {
		return a.Rows == b.Rows && a.Features == b.Features && a.Folds == b.Folds
	}
	for d := range sets {
		at := slices.IndexFunc(groups, func(g []int) bool { return alike(&sets[g[0]], &sets[d]) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], d)
	}
	groups = slices.DeleteFunc(groups, func(g []int) bool { return len(g) < leastSweep })
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b int) int { return cmp.Compare(sets[a].Labels, sets[b].Labels) })
	}
	return slices.DeleteFunc(groups, func(g []int) bool {
		for i := 1; i < len(g); i++ {
			if sets[g[i]].Labels == sets[g[i-1]].Labels {
				return true
			}
		}
		return false
	})
}

// timeOf is the time of a method on a dataset.
func (s *Summary) timeOf(method, d int) *Time { return &s.Times[method*len(s.Datasets)+d] }

// add adds a point if there are runs with known times.
func (g *Growth) add(x float64, t *Time) {
	if t.Runs == 0 || t.Total <= 0 {
		return
	}
	g.X, g.Seconds = append(g.X, number(x)), append(g.Seconds, t.Total/number(t.Runs))
}

// leastTimed is the time, in seconds, that the longest runs of a growth take: shorter ones take times that say
// little.
const leastTimed = 0.1

// fit computes the slope; false: there are too few points, or their times are too short.
func (g *Growth) fit() bool {
	if len(g.X) < leastSweep || slices.Max(g.Seconds) < leastTimed {
		return false
	}
	var x, y []float64
	for i := range g.X {
		x, y = append(x, math.Log(float64(g.X[i]))), append(y, math.Log(float64(g.Seconds[i])))
	}
	l := statistics.LineOf(x, y)
	g.Slope, g.Error, g.R2 = number(l.Slope), number(l.Error), number(l.R2)
	return true
}

// addGrowths adds the table of slopes and figures of the seconds.
func (d *document) addGrowths(growths []Growth) {
	if len(growths) == 0 {
		return
	}
	t := table{caption: "Growth of the time of a run", header: []string{"by", "of", "dataset", "values", "slope", "r²"}, texts: true}
	for i := range growths {
		g := &growths[i]
		values := fmt.Sprintf("%d from %s to %s", len(g.X), plainNumber(g.X[0]), plainNumber(g.X[len(g.X)-1]))
		t.lines = append(t.lines, line{cells: plain(g.By, cmp.Or(g.short, g.Of), orNone(g.Dataset), values, fixed(g.Slope, 2)+" ± "+fixed(g.Error, 2), fixed(g.R2, 3))})
	}
	d.add(paragraph("Times grow about as a power of the varied number. The slope is the exponent, from a least-squares line through the logarithms, ± its standard error; r² is the fraction of variance "+
		"that the line explains. The number of leaves is 2^(depth - 1). Work that takes the same time for every number lowers the slope."), t)
	d.addFigures("Growth of times", growthFigures(growths))
}

func plainNumber(n number) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// growthFigures draw the growths by settings, with a line for each dataset, then the growths by labels, with a line for each
// method.
func growthFigures(growths []Growth) (all []Picture) {
	together := func(a, b *Growth) bool {
		return a.By == b.By && a.title == b.title && (a.By == byLabels || a.Of == b.Of)
	}
	for _, p := range partsOf(growths, together) {
		first := &p.items[0]
		lines := figure.Lines{Title: first.title + p.text, X: figure.Axis{Name: first.By, Log: true}, Y: figure.Axis{Name: "time of a run", Unit: "s", Log: true}}
		if first.By == leaves {
			lines.X.Name = "leaves of a tree, 2^(depth - 1)"
		}
		caption := "Seconds of a run by " + first.By
		if first.By != byLabels {
			caption += ": " + first.Of
		}
		for _, g := range p.items {
			name := cmp.Or(g.Dataset, g.Of) + " (slope " + fixed(g.Slope, 2) + ")"
			lines.Series = append(lines.Series, figure.Series{Name: name, X: floatsOf(g.X), Y: floatsOf(g.Seconds)})
		}
		all = append(all, Picture{Name: "seconds-by-" + first.By, Caption: caption + p.text + ". Both axes are logarithmic.", draw: lines.Figure})
	}
	return all
}
