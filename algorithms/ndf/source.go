package ndf

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// source is a job's training rows, with the draws of a tree.
type source struct {
	forest.Rows
	features, classes int
	sparse            bool
	class             []uint32  // by training row: its class; nil: some row has more than one
	weights           []float64 // as table has them
	counts            []uint32  // by training row: how often the tree drew it
}

// classesOf returns the class of each row, or nil if a row has degrees of several labels.
func classesOf(r *forest.Rows) []uint32 {
	class := make([]uint32, r.Len())
	for i := range class {
		class[i] = absent
		for c, d := range r.Label(uint32(i)) {
			if d == 0 {
				continue
			}
			if class[i] != absent {
				return nil
			}
			class[i] = uint32(c)
		}
		if class[i] == absent {
			return nil
		}
	}
	return class
}

// order sorts rows as masses wants them.
func (s *source) order(rows []uint32) {
	if s.class != nil {
		slices.SortStableFunc(rows, func(a, b uint32) int { return int(s.class[a]) - int(s.class[b]) })
	}
}

// pure reports whether all of a node's rows have the same labels.
func (s *source) pure(rows []uint32) bool {
	if s.class != nil {
		return s.class[rows[0]] == s.class[rows[len(rows)-1]]
	}
	first := s.Label(rows[0])
	for _, row := range rows[1:] {
		if !slices.Equal(s.Label(row), first) {
			return false
		}
	}
	return true
}

// masses sets m to the label masses of rows.
func (s *source) masses(m *masses, rows []uint32) {
	m.classes, m.rows, m.single, m.total = s.classes, len(rows), s.class != nil, 0
	if m.single {
		s.singleMasses(m, rows)
		return
	}
	w := forest.Resized(&m.w, s.classes*len(rows))
	for i, row := range rows {
		draws := float32(s.counts[row])
		for c, d := range s.Label(row) {
			mass := draws * d
			w[c*len(rows)+i] = mass
			m.total += float64(mass)
		}
	}
}

func (s *source) singleMasses(m *masses, rows []uint32) {
	w, from := forest.Resized(&m.w, len(rows)), forest.Resized(&m.from, s.classes+1)
	clear(from)
	for i, row := range rows {
		c := s.class[row]
		w[i] = float32(s.counts[row]) * s.Label(row)[c]
		m.total += float64(w[i])
		from[c+1]++
	}
	for c := range s.classes {
		from[c+1] += from[c]
	}
}

// moments sets mean and square to the means of the features that columns lists, and of the squares
// of the distances from these means, over so many rows with their copies.
func (s *source) moments(mean, square []float64, columns, rows []uint32, copies float64) {
	clear(mean)
	clear(square)
	s.eachValue(columns, rows, func(i int, w, x float64) { mean[i] += float64(w * x) })
	for i := range mean {
		mean[i] /= copies
	}
	present := make([]float64, len(columns))
	s.eachValue(columns, rows, func(i int, w, x float64) {
		present[i] += w
		square[i] += float64(w * float64((x-mean[i])*(x-mean[i])))
	})
	for i := range square {
		square[i] = (square[i] + float64((copies-present[i])*float64(mean[i]*mean[i]))) / copies
	}
}

// eachValue calls f for the values of rows in the columns that are listed, with the number of
// the column in the list and the copies of the row; of sparse rows for the non-zero ones.
func (s *source) eachValue(columns, rows []uint32, f func(i int, w, x float64)) {
	for _, row := range rows {
		w := float64(s.counts[row])
		shard, pos := s.At(row)
		if !shard.Sparse {
			x := shard.Dense(pos)
			for i, c := range columns {
				f(i, w, float64(x[c]))
			}
			continue
		}
		nonZero, values := shard.NonZeros(pos)
		i := 0
		for j, c := range nonZero {
			for i < len(columns) && columns[i] < c {
				i++
			}
			if i < len(columns) && columns[i] == c {
				f(i, w, float64(values[j]))
			}
		}
	}
}

// batch is rows on their way through a network, in blocks, with their label masses.
type batch struct {
	masses
	blocks  []block
	z, zt   []float32 // of all blocks
	t       []float32
	out     []float32
	routing routing
}

// table is a job's training rows. It is made once, and all growers read it concurrently.
type table struct {
	forest.Rows
	features, labels int
	sparse           bool
	class            []uint32  // see source
	weights          []float64 // forest.Rows.WeightSums
}

// newTable makes the table of a unit's rows.
func newTable(c *Config, u round.Task, d *dataset.Data) (*table, error) {
	refs := u.Rows(d)
	if len(refs) == 0 {
		return nil, algorithms.ErrNoRows
	}
	if err := c.checkDraws(len(refs)); err != nil {
		return nil, err
	}
	t := &table{Rows: forest.NewRows(d, refs), features: d.Manifest.Features, labels: d.Manifest.Labels,
		sparse: d.Manifest.Sparse}
	t.class = classesOf(&t.Rows)
	var err error
	if t.weights, err = t.WeightSums(d.Manifest); err != nil {
		return nil, fmt.Errorf("ndf: %w", err)
	}
	return t, nil
}
