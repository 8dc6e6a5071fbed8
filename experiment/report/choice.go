package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// choicesOf lists the choices of the methods that have candidates with scores.
func choicesOf(g *grid) (list []Choice) {
	for _, method := range listed(g.table.Methods) {
		if len(g.table.Methods[method].Candidates) == 0 {
			continue
		}
		c := Choice{Method: g.table.Methods[method].Name}
		for _, name := range g.table.Methods[method].Candidates {
			c.Candidates = append(c.Candidates, Candidate{Name: name})
		}
		for d := range g.table.Datasets {
			if g.table.Datasets[d].Same != "" {
				continue
			}
			if ratios := c.scored(g, d, method); ratios != nil {
				c.Datasets = append(c.Datasets, g.table.Datasets[d].Name)
				for i, v := range ratios {
					c.Candidates[i].Ratios = append(c.Candidates[i].Ratios, number(v))
				}
			}
		}
		if len(c.Datasets) > 0 {
			c.decide()
			list = append(list, c)
		}
	}
	return list
}

// scored returns the ratio of each candidate on a dataset: the mean score of its runs over the mean
// predictor's mean K-L on the rows that the same runs test; nil: no run has scores.
func (c *Choice) scored(g *grid, d, method int) []float64 {
	scores, means := make([][]float64, len(c.Candidates)), []float64(nil)
	for _, p := range g.folds[d] {
		x := g.done[d][method][p]
		if x == nil || len(x.CandidateKL) != len(scores) {
			continue
		}
		least := 0 // as the run's model chose: without the rule of statistics.Equal
		for i, v := range x.CandidateKL {
			scores[i] = append(scores[i], v)
			if v < x.CandidateKL[least] {
				least = i
			}
		}
		c.Candidates[least].Runs++
		means = append(means, x.MeanKL)
	}
	mean := statistics.Sum(means)
	if mean == 0 {
		return nil
	}
	ratios := make([]float64, len(scores))
	for i, list := range scores {
		ratios[i] = statistics.Sum(list) / mean
	}
	return ratios
}

// decide computes the means and what is chosen: the candidate with the least mean of logarithms is best, and the first
// candidate within one standard error of it is chosen. Candidates are sorted, the simplest first.
func (c *Choice) decide() {
	var means []float64
	for i := range c.Candidates {
		means = append(means, statistics.MomentsOf(c.logs(i)).Mean)
	}
	c.Best = max(0, slices.Index(statistics.Places(means, false), 1))
	c.Chosen = -1
	for i := range c.Candidates {
		above, deviation := c.above(i, c.Best)
		if c.Chosen < 0 && (i == c.Best || statistics.Equal(means[i], means[c.Best]) || above <= deviation) {
			c.Chosen = i
		}
		x := &c.Candidates[i]
		x.Log, x.Above, x.Error = number(means[i]), number(above), number(deviation)
	}
}

// above returns the mean over datasets of the difference of two candidates' logarithms, and its
// standard error (NaN of a single dataset).
func (c *Choice) above(i, than int) (mean, deviation float64) {
	d := statistics.Differences(c.logs(i), c.logs(than))
	m := statistics.MomentsOf(d)
	return m.Mean, m.Deviation / math.Sqrt(float64(len(d)))
}

func (c *Choice) logs(candidate int) (list []float64) {
	for _, r := range c.Candidates[candidate].Ratios {
		list = append(list, math.Log(float64(r)))
	}
	return list
}

// addChoices adds a table of the candidates of each method that chooses its settings.
func (d *document) addChoices(choices []Choice) {
	if len(choices) == 0 {
		return
	}
	d.add(heading("Chosen settings"), paragraph("Each candidate is scored on training samples held out from its own "+
		"training; test samples are never used. "+
		"Values are ratios: a candidate's mean K-L over a dataset's runs, divided by the K-L of the mean baseline on their "+
		"test samples. The criterion is the ratio's mean logarithm over datasets. "+
		"A candidate's difference from the best has a standard error over datasets. The rule chooses the simplest "+
		"candidate within one standard error of the best."))
	for i := range choices {
		c := &choices[i]
		best, chosen := &c.Candidates[c.Best], &c.Candidates[c.Chosen]
		rule := fmt.Sprintf("%s: the best candidate is %s. The simplest candidate within one standard error is %s.", c.Method,
			best.Name, chosen.Name)
		if c.Best == c.Chosen {
			rule = fmt.Sprintf("%s: the best candidate is %s, and no simpler candidate is within one standard error.",
				c.Method, best.Name)
		}
		criterion := table{caption: c.Method + ": criterion of the choice", header: []string{"candidate", "mean ln ratio",
			"above the best", "worst dataset", "runs that chose it"}}
		for k, x := range c.Candidates {
			mean, above := cell{text: fixed(x.Log, 4)}, fixed(x.Above, 4)
			if k == c.Chosen {
				mean.place = 1
			}
			if k == c.Best {
				above = none
			} else if !math.IsNaN(float64(x.Error)) {
				above += " ± " + fixed(x.Error, 4)
			}
			worst := 0
			for d := range x.Ratios {
				if x.Ratios[d] > x.Ratios[worst] {
					worst = d
				}
			}
			criterion.lines = append(criterion.lines, line{cells: append(plain(x.Name), mean, cell{text: above},
				cell{text: fmt.Sprintf("%s (%s)", fixed(x.Ratios[worst], 4), c.Datasets[worst])}, cell{text: fmt.Sprint(x.Runs)})})
		}
		d.add(criterion, paragraph(rule))
	}
}
