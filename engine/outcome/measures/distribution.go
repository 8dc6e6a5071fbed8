package measures

// MoreRow holds the measures More of one row, in their order.
type MoreRow [CountMore]float64

// MoreOfRow returns the measures More of one row of float32 degrees, clipped as how says; d and p are
// divided by their sums as in OfRow.
func MoreOfRow(d, p []float32, how Clip) MoreRow {
	var buf [shortComparison]float64
	c := compare(spaceFor(buf[:], len(d)), d, p, how)
	return MoreRow{Spearman(c.d, c.p), JensenShannon(c.clippedD, c.clippedP), ZeroOne(c.d, c.p), ErrorProbability(c.d, c.p)}
}

// OfDistribution are the measures More.
type OfDistribution struct {
	Spearman         Stat `json:"spearman"`
	JensenShannon    Stat `json:"jensen_shannon"`
	ZeroOne          Stat `json:"zero_one"`
	ErrorProbability Stat `json:"error_probability"`
}

// Stats lists the measures in the order of More.
func (o *OfDistribution) Stats() [CountMore]*Stat {
	return [CountMore]*Stat{&o.Spearman, &o.JensenShannon, &o.ZeroOne, &o.ErrorProbability}
}

// moreWidth is the number of sums of More: the measures, then their squares.
const moreWidth = 2 * CountMore

// addMore adds a row to the sums of More.
func addMore(sums []float64, row MoreRow) {
	for i, v := range row {
		sums[i] += v
		sums[CountMore+i] += float64(v * v)
	}
}

// moreFrom reads the sums of n rows.
func moreFrom(n float64, sums []float64) *OfDistribution {
	o := new(OfDistribution)
	for i, s := range o.Stats() {
		*s = statOf(n, sums[i], sums[CountMore+i])
	}
	return o
}

// moreOverFolds returns the measures over folds.
func moreOverFolds(folds []OfDistribution) *OfDistribution {
	o := new(OfDistribution)
	for i, s := range o.Stats() {
		*s = overFolds(folds, func(f *OfDistribution) Stat { return *f.Stats()[i] })
	}
	return o
}
