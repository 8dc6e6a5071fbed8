package dataset

import (
	"math"
)

// Bounds of a watch: columns that it looks at, pairs of a feature and a label, and
// rows with which it begins to thin out those that it compares pairs on.
const (
	maxWatched = 1 << 20
	maxPairs   = 1 << 20
	pairRows   = 256
)

// watch looks at the features of rows that go by, for what looks wrong with them.
// Its memory does not grow with the rows.
type watch struct {
	info    Info
	rows    int
	columns []column // nil: there are too many
	pairs   *pairs   // nil: there are too many
}

// column is what is known of one column.
type column struct {
	low, high float64
	last      float64
	seen      int // values, without the zeros that a sparse row leaves out
	zeros     int // those of seen that are 0
	missing   int
	fraction  bool // some value is no whole number
	falls     bool // some value is not above the one before
}

func newWatch(info Info) *watch {
	w := &watch{info: info}
	if info.Features <= maxWatched {
		w.columns = make([]column, info.Features)
	}
	return w
}

// add looks at a row that is not left out.
func (w *watch) add(r *Row) {
	if w.columns == nil {
		return
	}
	if n := len(r.targets()); w.pairs == nil && n > 0 && n*w.info.Features <= maxPairs {
		w.pairs = newPairs(r, w.info.Features)
	}
	if w.pairs != nil && sampled(w.rows) {
		w.pairs.add(r)
	}
	w.rows++
	for i, v := range r.Values {
		at := i
		if r.Sparse {
			at = int(r.Columns[i])
		}
		if at < len(w.columns) {
			w.columns[at].add(v)
		}
	}
}

// sampled thins rows out as there are more of them: of those between pairRows·2^k
// and its double, every 2^(k+1)th.
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

func (c *column) add(v float64) {
	if math.IsNaN(v) {
		c.missing++
		return
	}
	if c.seen++; c.seen == 1 {
		c.low, c.high = v, v
	} else if v <= c.last {
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
	c.fraction = c.fraction || v != math.Floor(v)
}

// finish returns the column with the zeros that sparse rows left out.
func (c column) finish(rows int) column {
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

// pairs are the sums from which correlations of features with labels follow. All
// values are taken from those of the first row, so that large ones do not cancel.
type pairs struct {
	rows    int
	x0, y0  []float64 // of the first row; x0 is nil for sparse rows
	sx, sxx []float64
	sy, syy []float64
	sxy     []float64 // by feature, then label
	offsets []float64 // scratch: labels less y0

	holes map[int]*hole // of features with missing values
	whole hole          // of the others
}

// hole is what the rows that lack a feature have added to the sums of labels.
type hole struct {
	rows    int
	sy, syy []float64
}

func newHole(labels int) hole {
	return hole{sy: make([]float64, labels), syy: make([]float64, labels)}
}

func newPairs(r *Row, features int) *pairs {
	labels := len(r.targets())
	p := &pairs{
		y0: append([]float64(nil), r.targets()...),
		sx: make([]float64, features), sxx: make([]float64, features),
		sy: make([]float64, labels), syy: make([]float64, labels), sxy: make([]float64, features*labels),
		offsets: make([]float64, labels), holes: map[int]*hole{},
		whole: newHole(labels),
	}
	if !r.Sparse {
		p.x0 = append([]float64(nil), r.Values...)
		fill(p.x0, 0)
	}
	return p
}

// add adds a row; one of another shape, or without labels, is passed over.
func (p *pairs) add(r *Row) {
	targets := r.targets()
	if len(targets) != len(p.y0) || r.Sparse != (p.x0 == nil) {
		return
	}
	p.rows++
	for j, y := range targets {
		y -= p.y0[j]
		p.offsets[j] = y
		p.sy[j] += y
		p.syy[j] += float64(y * y)
	}
	for i, x := range r.Values {
		at := i
		if r.Sparse {
			at = int(r.Columns[i])
		} else {
			x -= p.x0[i]
		}
		switch {
		case at >= len(p.sx) || x == 0 || math.IsInf(x, 0):
		case math.IsNaN(x):
			p.lacks(at)
		default:
			p.feature(at, x)
		}
	}
}

// lacks takes the row's labels off feature i, which is missing.
func (p *pairs) lacks(i int) {
	h := p.holes[i]
	if h == nil {
		made := newHole(len(p.sy))
		h = &made
		p.holes[i] = h
	}
	h.rows++
	for j, y := range p.offsets {
		h.sy[j] += y
		h.syy[j] += float64(y * y)
	}
}

func (p *pairs) feature(i int, x float64) {
	p.sx[i] += x
	p.sxx[i] += float64(x * x)
	sums := p.sxy[i*len(p.offsets) : (i+1)*len(p.offsets)]
	for j, y := range p.offsets {
		sums[j] += float64(x * y)
	}
}

// closest returns the label with which feature i correlates most, and how much: 0
// where one of the two hardly changes, or there are few rows.
func (p *pairs) closest(i int) (label int, r float64) {
	h := p.holes[i]
	if h == nil {
		h = &p.whole
	}
	n := float64(p.rows - h.rows)
	vx := n*p.sxx[i] - float64(p.sx[i]*p.sx[i])
	for j := range p.sy {
		sy, syy := p.sy[j]-h.sy[j], p.syy[j]-h.syy[j]
		vy := n*syy - float64(sy*sy)
		if n < suspectRows || !(vx > 1e-9*n*p.sxx[i]) || !(vy > 1e-9*n*syy) {
			continue
		}
		c := (n*p.sxy[i*len(p.sy)+j] - float64(p.sx[i]*sy)) / math.Sqrt(vx) / math.Sqrt(vy)
		if math.Abs(c) > math.Abs(r) {
			label, r = j, c
		}
	}
	return label, r
}
