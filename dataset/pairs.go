package dataset

import "math"

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
