package forest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// edges is the bins of a job, and the values between which cuts lie.
type edges struct {
	binning.Bins
	gaps  [][]binning.Gap // by column
	place []int32         // by feature: its column; -1: it has none
}

// newEdges returns the bins of no column yet, for rows of so many features.
func newEdges(features int) *edges {
	e := &edges{place: make([]int32, features)}
	num.Fill(e.place, -1)
	return e
}

// add adds a column with the gaps between its bins. A value is below a cut if it is below the threshold of the gap.
func (e *edges) add(feature uint32, sparse bool, gaps []binning.Gap) {
	c := binning.Column{Feature: feature, Sparse: sparse}
	for _, g := range gaps {
		c.Cuts = append(c.Cuts, upwards(Between(float64(g.Lower), float64(g.Upper))))
	}
	e.place[feature] = int32(len(e.Columns))
	e.Add(c)
	e.gaps = append(e.gaps, slices.Clone(gaps))
}

// upwards returns the least float32 that is not below x.
func upwards(x float64) float32 {
	y := float32(x)
	if float64(y) < x {
		y = math.Nextafter32(y, math.MaxFloat32)
	}
	return y
}

// threshold returns the threshold between two bins of a column.
func (e *edges) threshold(column, lower, upper int) float64 {
	gaps := e.gaps[column]
	return Between(float64(gaps[lower].Lower), float64(gaps[upper-1].Upper))
}

// append appends the encoded columns: for each its feature, 1 if it is sparse, the number of gaps, and the two values
// of each gap.
func (e *edges) append(dst []byte) []byte {
	for i := range e.Columns {
		c := &e.Columns[i]
		sparse := uint32(0)
		if c.Sparse {
			sparse = 1
		}
		for _, x := range []uint32{c.Feature, sparse, uint32(len(c.Cuts))} {
			dst = binary.LittleEndian.AppendUint32(dst, x)
		}
		for _, g := range e.gaps[i] {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(g.Lower))
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(g.Upper))
		}
	}
	return dst
}

// decodeEdges reads what append wrote, for data of m with so many bins of a feature at most.
func decodeEdges(b []byte, m *dataset.Manifest, most int) (*edges, error) {
	features := m.Features
	e := newEdges(features)
	next := uint32(0)
	for len(b) > 0 {
		if len(b) < 12 {
			return nil, binning.ErrBins
		}
		feature, sparse, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]),
			binary.LittleEndian.Uint32(b[8:])
		if b = b[12:]; feature < next || feature >= uint32(features) || sparse > 1 || n < 1 || n >= uint32(most) ||
			uint64(len(b)) < 8*uint64(n) {
			return nil, binning.ErrBins
		}
		gaps, before := make([]binning.Gap, n), float32(-math.MaxFloat32)
		for i := range gaps {
			g := binning.Gap{Lower: math.Float32frombits(binary.LittleEndian.Uint32(b[8*i:])),
				Upper: math.Float32frombits(binary.LittleEndian.Uint32(b[8*i+4:]))}
			if !(g.Lower >= before && g.Lower < g.Upper && g.Upper <= math.MaxFloat32) {
				return nil, binning.ErrBins
			}
			gaps[i], before = g, g.Upper
		}
		e.add(feature, sparse == 1, gaps)
		next, b = feature+1, b[8*n:]
	}
	return e, e.Check(m, most)
}

// layout says where the counts of a node are: its copies by class, then the copies in each bin of the columns
// that it tries.
type layout struct {
	columns []int // ascending
	first   []int // of each of these, the place of its first bin; place 0 is the node's
	places  int
}

// layouts makes the layouts of nodes.
type layouts struct {
	edges   *edges
	classes int
	sampler featureSampler
	all     layout // of all columns
	drawn   layout
}

// newLayouts prepares for a job. Its features are drawn as for exact trees.
func newLayouts(c *Config, e *edges, classes int, key num.Key) *layouts {
	l := &layouts{edges: e, classes: classes, sampler: featureSampler{key: key}}
	l.sampler.begin(c, 0, len(e.place))
	l.all.places = 1
	for i := range e.Columns {
		l.all.add(i, e)
	}
	return l
}

func (l *layout) add(column int, e *edges) {
	l.columns, l.first = append(l.columns, column), append(l.first, l.places)
	l.places += e.Columns[column].Bins()
}

// layoutOf returns the layout of a node, given its tree and its path. It is valid until the next call.
func (l *layouts) layoutOf(tree uint32, path uint64) *layout {
	if l.sampler.everyFeature {
		return &l.all
	}
	d := &l.drawn
	d.columns, d.first, d.places = d.columns[:0], d.first[:0], 1
	l.sampler.tree = tree
	l.sampler.draw(path, l.sampler.tried)
	for _, feature := range l.sampler.sorted() {
		if at := l.edges.place[feature]; at >= 0 {
			d.add(int(at), l.edges)
		}
	}
	return d
}

// numbersOf is how many numbers a node of a layout has.
func (l *layouts) numbersOf(of *layout) int { return of.places * l.classes }

// usual is how many numbers a node has on average. With random features, layouts differ.
func (l *layouts) usual() int {
	bins := int64(l.edges.All) * int64(l.sampler.tried) / int64(len(l.edges.place))
	return (1 + int(bins)) * l.classes
}

// complete sets the zero bins of sparse columns, which rows do not list: what the other bins lack of the node.
func (l *layouts) complete(counts []float64, of *layout) {
	n := l.classes
	for i, at := range of.columns {
		c := &l.edges.Columns[at]
		if !c.Sparse {
			continue
		}
		zero := counts[(of.first[i]+c.Zero)*n:][:n]
		copy(zero, counts[:n])
		for bin := range c.Bins() {
			if bin == c.Zero {
				continue
			}
			for k, x := range counts[(of.first[i]+bin)*n:][:n] {
				zero[k] -= x
			}
		}
	}
}

// countsAtMost is the greatest number of counts of a node, for the bins of the settings.
func (c *Config) countsAtMost(m *dataset.Manifest, classes int) int64 {
	bins := min(binning.AtMost(m, c.Bins), int64(c.tried(m.Features))*int64(min(c.Bins, m.Rows+1)))
	return (1 + bins) * int64(classes)
}
