package dataset

import "math"

// Bounds of featureStats: columns, pairs of a feature and a label, and the number of rows
// from which on correlations use a sample of the rows only.
const (
	maxStatsColumns = 1 << 20
	maxPairs        = 1 << 20
	pairRows        = 256
)

// featureStats computes statistics of features that show what looks wrong with them. Its
// memory does not grow with the rows.
type featureStats struct {
	info         Info
	rows         int
	columns      []columnStats // nil: there are too many
	correlations *correlations // nil: there are too many
}

// columnStats are the statistics of one column.
type columnStats struct {
	low, high float64
	last      float64
	seen      int // values, without the zeros that a sparse row leaves out
	zeros     int // those of seen that are 0
	missing   int
	fraction  bool // some value is no whole number
	falls     bool // some value is not above the one before
}

func newFeatureStats(info Info) *featureStats {
	w := &featureStats{info: info}
	if info.Features <= maxStatsColumns {
		w.columns = make([]columnStats, info.Features)
	}
	return w
}

// add adds a row that is not left out.
func (w *featureStats) add(r *Row) {
	if w.columns == nil {
		return
	}
	if n := len(r.targets()); w.correlations == nil && n > 0 && n*w.info.Features <= maxPairs {
		w.correlations = newCorrelations(r, w.info.Features)
	}
	if w.correlations != nil && sampled(w.rows) {
		w.correlations.add(r)
	}
	w.rows++
	if r.Sparse {
		for i, v := range r.Values {
			if at := int(r.Columns[i]); at < len(w.columns) {
				w.columns[at].add(v)
			}
		}
		return
	}
	columns := w.columns[:min(len(w.columns), len(r.Values))]
	for i := range columns {
		columns[i].add(r.Values[i])
	}
}

// sampled reports whether correlations use a row: all rows below pairRows, and every
// 2^(k+1)-th row from pairRows·2^k up to twice that.
func sampled(row int) bool {
	step := 1
	for n := row / pairRows; n > 0; n /= 2 {
		step *= 2
	}
	return row%step == 0
}

// targets are the numbers that the labels of a row are, or were made from.
func (r *Row) targets() []float64 {
	if r.raw != nil {
		return r.raw
	}
	return r.Labels
}

func (c *columnStats) add(v float64) {
	if c.seen == 0 || v != v {
		c.begin(v)
		return
	}
	c.seen++
	if !c.falls && v <= c.last { // falls first: the comparison of random values is mispredicted
		c.falls = true
	}
	c.last = v
	if v < c.low {
		c.low = v
	}
	if v > c.high {
		c.high = v
	}
	if v == 0 {
		c.zeros++
	}
	if !c.fraction {
		c.fraction = v != math.Floor(v)
	}
}

// begin adds a missing value, or the first one that is not.
func (c *columnStats) begin(v float64) {
	if math.IsNaN(v) {
		c.missing++
		return
	}
	c.seen, c.low, c.high, c.last = 1, v, v, v
	if v == 0 {
		c.zeros++
	}
	c.fraction = v != math.Floor(v)
}

// finish returns the statistics with the zeros that sparse rows do not list.
func (c columnStats) finish(rows int) columnStats {
	if out := rows - c.seen - c.missing; out > 0 {
		if c.seen == 0 {
			c.low, c.high = 0, 0
		}
		if c.low > 0 {
			c.low = 0
		}
		if c.high < 0 {
			c.high = 0
		}
		c.zeros, c.falls = c.zeros+out, true
	}
	return c
}
