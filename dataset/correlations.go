package dataset

import "math"

// correlations are the sums from which correlations of features with labels are computed.
// The first row is subtracted from all rows, which avoids cancellation of large values.
type correlations struct {
	rows    int
	x0, y0  []float64 // of the first row; x0 is nil for sparse rows
	sx, sxx []float64
	sy, syy []float64
	sxy     []float64 // by feature, then label
	offsets []float64 // scratch: labels less y0

	missing     map[int]*labelSums // of features with missing values
	noneMissing labelSums          // of the others
}

// labelSums are sums over labels of some rows.
type labelSums struct {
	rows    int
	sy, syy []float64
}

func newLabelSums(labels int) labelSums {
	return labelSums{sy: make([]float64, labels), syy: make([]float64, labels)}
}

func newCorrelations(r *Row, features int) *correlations {
	labels := len(r.targets())
	p := &correlations{
		y0: append([]float64(nil), r.targets()...),
		sx: make([]float64, features), sxx: make([]float64, features),
		sy: make([]float64, labels), syy: make([]float64, labels), sxy: make([]float64, features*labels),
		offsets: make([]float64, labels), missing: map[int]*labelSums{},
		noneMissing: newLabelSums(labels),
	}
	if !r.Sparse {
		p.x0 = append([]float64(nil), r.Values...)
		fill(p.x0, 0)
	}
	return p
}

// add adds a row. It ignores a row of another shape, or without labels.
func (p *correlations) add(r *Row) {
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
			p.addMissing(at)
		default:
			p.addFeature(at, x)
		}
	}
}

// addMissing adds the current row to the rows in which feature i is missing.
func (p *correlations) addMissing(i int) {
	h := p.missing[i]
	if h == nil {
		made := newLabelSums(len(p.sy))
		h = &made
		p.missing[i] = h
	}
	h.rows++
	for j, y := range p.offsets {
		h.sy[j] += y
		h.syy[j] += float64(y * y)
	}
}

func (p *correlations) addFeature(i int, x float64) {
	p.sx[i] += x
	p.sxx[i] += float64(x * x)
	sums := p.sxy[i*len(p.offsets) : (i+1)*len(p.offsets)]
	for j, y := range p.offsets {
		sums[j] += float64(x * y)
	}
}

// closest returns the label with the greatest absolute correlation with feature i, and the
// correlation. It is 0 if one of the two is nearly constant, or if there are few rows.
func (p *correlations) closest(i int) (label int, r float64) {
	h := p.missing[i]
	if h == nil {
		h = &p.noneMissing
	}
	n := float64(p.rows - h.rows)
	vx := float64(n*p.sxx[i]) - float64(p.sx[i]*p.sx[i])
	for j := range p.sy {
		sy, syy := p.sy[j]-h.sy[j], p.syy[j]-h.syy[j]
		vy := float64(n*syy) - float64(sy*sy)
		if n < suspectRows || !(vx > 1e-9*n*p.sxx[i]) || !(vy > 1e-9*n*syy) {
			continue
		}
		c := (float64(n*p.sxy[i*len(p.sy)+j]) - float64(p.sx[i]*sy)) / math.Sqrt(vx) / math.Sqrt(vy)
		if math.Abs(c) > math.Abs(r) {
			label, r = j, c
		}
	}
	return label, r
}
