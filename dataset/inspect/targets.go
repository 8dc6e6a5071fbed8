package inspect

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// targetWays returns w, and the way to take its columns for targets in bounds if they seem to be real numbers that are
// no probabilities: fractions, one of which is negative or above 1, with sums that differ. Negative numbers can only
// be targets. kind is what flags say of the labels.
func (p *profile) targetWays(w labelWay, kind dataset.LabelKind) []labelWay {
	if kind != dataset.Distributions || p.sameSum(w.columns) {
		return []labelWay{w}
	}
	fractions, negative, above := false, false, false
	for _, i := range w.columns {
		c := &p.columns[i]
		if !c.numeric() || c.Least == nil {
			return []labelWay{w}
		}
		fractions, above = fractions || !c.whole, above || *c.Most > 1+importer.DefaultTolerance
		negative = negative || *c.Least < -importer.DefaultTolerance
	}
	for _, f := range w.Flags {
		if f.Name == "--labels" {
			return []labelWay{w}
		}
	}
	targets := w
	targets.Way = w.With("as targets that are real numbers", dataset.Flag{Name: "--labels", Value: string(dataset.Bounded)})
	switch {
	case fractions && negative:
		return []labelWay{targets}
	case fractions && above:
		return []labelWay{w, targets}
	}
	return []labelWay{w}
}

// sumsDiffer is the least share by which sums differ that are not the same but for rounding, such as percentages.
const sumsDiffer = 0.02

// sameSum reports whether the columns have about the same sum in all rows that were kept.
func (p *profile) sameSum(columns []int) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for _, row := range p.first {
		sum := 0.0
		for _, i := range columns {
			sum += row[i]
		}
		if sum == sum {
			least, most = min(least, sum), max(most, sum)
		}
	}
	return most-least <= sumsDiffer*math.Abs(most)
}
