package rows

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Neighbours find the kept rows that are nearest to a row, by the distances of Distances. Of kept
// rows at the same distance the first ones are nearer. Neighbours are safe for concurrent use.
//
// Between dense rows a float32 product, up to a margin that is proved, stands for the distance. Distances
// are computed only for rows that the margin leaves in doubt. Between sparse rows all distances are computed.
type Neighbours struct {
	kept    *dataset.Rows
	scale   []float64  // nil: none
	factors []float64  // of dense rows: scale, or ones
	sparse  *Distances // nil: the kept rows are dense
	sample  []uint32   // some kept rows, ascending; nil: they are few

	// Products have the features b = s·y - shift of kept rows y, and a = s·x - shift of other rows x.
	products bool
	shift    []float64
	all      panelled
	sampled  panelled
	most     float64 // the greatest |b|²
}

// panelled are some rows for products: panelRows of them after one another, column after column. The
// last panel ends with rows of zeros.
type panelled struct {
	values []float32
	half   []float32 // of each row |b|²/2; of the rows of zeros an infinity
}

const (
	panelRows  = 256
	sampleRows = 1024
	// mostProduct bounds the features of rows, and mostNorm the |a|² and |b|², for which the margin is proved.
	mostProduct = 1 << 18
	mostNorm    = 0x1p99
)

// NewNeighbours returns the neighbours among r, which has rows. scale has a factor for each feature; nil:
// none.
func NewNeighbours(r *dataset.Rows, scale []float64) *Neighbours {
	n := &Neighbours{kept: r, scale: scale}
	if r.N > 2*sampleRows {
		n.sample = sampleOf(r.N)
	}
	if r.Sparse {
		n.sparse = NewDistances(r, scale)
		return n
	}
	if n.factors = scale; scale == nil {
		n.factors = slices.Repeat([]float64{1}, r.Features)
	}
	if n.products = r.Features <= mostProduct; n.products {
		n.shift = medians(r, scale, n.sample)
		n.all, n.most = n.inPanels(r.N, func(i int) int { return i })
		n.sampled, _ = n.inPanels(len(n.sample), func(i int) int { return int(n.sample[i]) })
		n.products = n.most <= mostNorm
	}
	return n
}

// sampleOf draws sampleRows of n rows, one of each of so many ranges. What is drawn changes no neighbour.
func sampleOf(n int) []uint32 {
	s := num.NewStream(num.NewKey(0, "rows/sample"), 0, 0)
	drawn := make([]uint32, sampleRows)
	for i := range drawn {
		from, to := i*n/sampleRows, (i+1)*n/sampleRows
		drawn[i] = uint32(from) + uint32(s.Uint64n(uint64(to-from)))
	}
	return drawn
}

// medians returns a median of each scaled column of some rows. Far from outliers products are the most exact.
func medians(r *dataset.Rows, scale []float64, some []uint32) []float64 {
	n := len(some)
	if n == 0 {
		n = r.N
	}
	x, middle := make([]float64, n), make([]float64, r.Features)
	for c := range middle {
		for i := range x {
			row := i
			if len(some) > 0 {
				row = int(some[i])
			}
			x[i] = scaled(scale, c, r.Dense(row)[c])
		}
		selectSmallest(x, n/2)
		middle[c] = x[n/2]
	}
	return middle
}

// inPanels returns some kept rows for products, and the greatest |b|².
func (n *Neighbours) inPanels(rows int, row func(i int) int) (p panelled, most float64) {
	features := n.kept.Features
	all := (rows + panelRows - 1) / panelRows
	p = panelled{make([]float32, all*panelRows*features), make([]float32, all*panelRows)}
	x, b := make([]float64, features), make([]float32, panelRows*features)
	for at := range all {
		clear(b)
		half := p.half[at*panelRows : (at+1)*panelRows]
		for i := range half {
			half[i] = float32(math.Inf(1))
			if from := at*panelRows + i; from < rows {
				expand(x, n.kept, row(from), n.scale)
				norm := n.centre(b[i*features:(i+1)*features], x, 1)
				half[i], most = float32(norm/2), max(most, norm)
			}
		}
		num.Transpose32(p.values[at*panelRows*features:(at+1)*panelRows*features], panelRows, b, features,
			panelRows, features)
	}
	return p, most
}

// centre sets dst to x - shift, in float32, times a sign, and returns the square of its norm.
func (n *Neighbours) centre(dst []float32, x []float64, sign float32) (norm float64) {
	for c, shift := range n.shift {
		v := float32(x[c] - shift)
		dst[c] = sign * v
		norm += float64(float64(v) * float64(v))
	}
	return norm
}

// errorOf returns how far values may be off that stand for the distances D of rows: v = |b|²/2 - ab in float32 for
// (D - |a|²)/2, of the kept rows of values up to limit. norm is |a|².
//
// Let u = 2⁻²⁴, f the number of features, and S = |a|² + |b|². The start |b|²/2 is off by uS/2 at most. Each of f sums
// is at most |b|²/2 + |a||b| <= .81 S, and a few u more, and rounds by u of it: all together .9 fuS. Products round by
// u|a||b| <= uS/2 together if they are not fused. Rounding moves the differences s·x - s·y by u(|a|+|b|) in norm, and
// so D/2 by 2.1 uS; computing D in float64 moves it by less. All this is less than (f+5)uS, and 2⁻¹⁴⁰ for every sum if
// numbers are subnormal.
//
// Rows with |b|² > 16 max(limit, |a|²) cannot mislead: v and (D - |a|²)/2 are at least |b|²/5, which is above limit,
// the margin included. So the |b| of other rows bounds S.
func (n *Neighbours) errorOf(norm, limit float64) float64 {
	others := min(n.most, 16*max(limit, norm, 0x1p-100))
	return float64(len(n.shift)+5) * (float64(0x1p-24*(norm+others)) + 0x1p-140)
}

// rank returns which of the sampled values, from 0 on, is above the values of k neighbours in almost all cases;
// len(sample): none.
func (n *Neighbours) rank(k int) int {
	expected := float64(k) * float64(len(n.sample)) / float64(n.kept.N)
	return min(len(n.sample), int(expected+float64(3*math.Sqrt(expected))+3))
}

// Search is the working memory of one caller, who looks for the nearest rows of some numbers ks.
type Search struct {
	of       *Neighbours
	ks       []int
	queries  int       // how many rows are searched for at a time
	x        []float64 // queries×features, scaled; nil: the kept rows are sparse
	own      []int     // of each query: the kept row that it is; -1: none
	products *products // nil: there are none

	// What distances to all kept rows need.
	scratch *Scratch  // of sparse kept rows
	squares []float64 // of one query, to all kept rows
	values  []float64 // of squares, up to a limit
	rows    []uint32  // of each of values
	drawn   []float64 // of the sample
	nearest *brackets[float64]
}

// products are the values of some queries, and lists of the values up to a limit.
type products struct {
	a       []float32 // queries×features: shift - s·x
	norms   []float64 // |a|²
	tile    []float32 // queries×panelRows: values of a panel
	drawn   []float32 // queries×sample: values of the sample
	limits  []float32
	most    int       // how many values a list has room for
	values  []float32 // the lists
	rows    []uint32  // of each of values
	length  []int     // of each list; -1: there are too many values, or products are not finite
	nearest *brackets[float32]
}

const (
	mostQueries = 32
	// mostListBytes bounds the lists, unless they are for less than leastQueries rows.
	mostListBytes = 1 << 26
	leastQueries  = 6
)

// NewSearch makes the working memory of one caller. ks are numbers of neighbours, which ascend. There are as many
// kept rows at least, and one more for FindOthers.
func (n *Neighbours) NewSearch(ks []int) *Search {
	s := &Search{of: n, ks: ks, queries: 1}
	switch {
	case n.products:
		all := (n.kept.N + panelRows - 1) / panelRows * panelRows
		most := min(all, 2*ks[len(ks)-1]+16*panelRows) // about twice as many as there usually are
		s.queries = max(leastQueries, min(mostQueries, mostListBytes/(8*most)))
		s.products = &products{
			a: make([]float32, s.queries*n.kept.Features), norms: make([]float64, s.queries),
			tile:  make([]float32, s.queries*panelRows),
			drawn: make([]float32, s.queries*len(n.sample)), limits: make([]float32, s.queries), most: most,
			values: make([]float32, s.queries*most), rows: make([]uint32, s.queries*most), length: make([]int, s.queries),
			nearest: newBrackets[float32](ks, most),
		}
	case n.sparse != nil:
		s.scratch = n.sparse.NewScratch()
		fallthrough
	default:
		s.prepareComparing()
	}
	if n.sparse == nil {
		s.x = make([]float64, s.queries*n.kept.Features)
	}
	s.own = make([]int, s.queries)
	return s
}

// prepareComparing makes what compare needs.
func (s *Search) prepareComparing() {
	n := s.of.kept.N
	s.squares, s.values, s.rows = make([]float64, n), make([]float64, n), make([]uint32, n)
	s.drawn, s.nearest = make([]float64, len(s.of.sample)), newBrackets[float64](s.ks, n)
}

// Find calls found for each row of refs, in order: nearest[:ks[0]] are its ks[0] nearest kept rows, and
// nearest[ks[b-1]:ks[b]] the further ones of the ks[b] nearest. Each of these ranges ascends. They are valid until
// found returns.
func (s *Search) Find(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, found func(i int, nearest []uint32)) {
	for at := 0; at < len(refs); at += s.queries {
		block := refs[at:min(at+s.queries, len(refs))]
		for i := range block {
			s.own[i] = -1
		}
		s.search(at, block, shard, found)
	}
}

// FindOthers is Find for the kept rows [from, to), by their numbers. No row is its own neighbour.
func (s *Search) FindOthers(from, to int, found func(row int, nearest []uint32)) {
	kept := func(uint32) *dataset.Rows { return s.of.kept }
	var block [mostQueries]dataset.RowRef
	for at := from; at < to; at += s.queries {
		refs := block[:min(s.queries, to-at)]
		for i := range refs {
			refs[i].Pos, s.own[i] = uint32(at+i), at+i
		}
		s.search(at, refs, kept, found)
	}
}

// search is Find for a block of rows; first is the number of its first row.
func (s *Search) search(first int, refs []dataset.RowRef, shard func(uint32) *dataset.Rows,
	found func(i int, nearest []uint32)) {
	n, p, features := s.of, s.products, s.of.kept.Features
	if n.sparse == nil {
		for i, ref := range refs {
			expand(s.x[i*features:(i+1)*features], shard(ref.Shard), int(ref.Pos), n.scale)
		}
	}
	if p != nil {
		s.list(len(refs))
	}
	for i, ref := range refs {
		if p != nil && p.length[i] >= 0 {
			from, to := i*p.most, i*p.most+p.length[i]
			margin := n.errorOf(p.norms[i], float64(p.limits[i]))
			if p.nearest.divide(p.values[from:to], p.rows[from:to], p.limits[i], margin, func(dst []float64, rows []uint32) {
				num.SquaresAt(dst, s.x[i*features:(i+1)*features], n.factors, n.kept.X, rows)
			}) {
				found(first+i, p.nearest.found())
				continue
			}
		}
		s.compare(i, ref, shard)
		found(first+i, s.nearest.found())
	}
}

// list lists the values of the first queries up to limits, so that the lists have the nearest rows and few others.
func (s *Search) list(queries int) {
	n, p, features := s.of, s.products, s.of.kept.Features
	for i := range queries {
		a := p.a[i*features : (i+1)*features]
		p.norms[i] = n.centre(a, s.x[i*features:(i+1)*features], -1)
		p.length[i], p.limits[i] = 0, math.MaxFloat32
		if !(p.norms[i] <= mostNorm) {
			p.length[i], p.norms[i] = -1, 0
			clear(a)
		}
	}
	if rank := n.rank(s.ks[len(s.ks)-1]); rank < len(n.sample) {
		s.multiply(&n.sampled, queries, func(panel int, tile []float32) {
			for i := range queries {
				copy(p.drawn[i*sampleRows+panel*panelRows:], tile[i*panelRows:(i+1)*panelRows])
			}
		})
		for i := range queries {
			drawn := p.drawn[i*sampleRows : (i+1)*sampleRows]
			limit := float64(p.nearest.atRank(drawn, rank))
			// Many rows may have about this value. Their margin is within the limit.
			p.limits[i] = float32(limit + float64(5*n.errorOf(p.norms[i], limit)))
		}
	}
	s.multiply(&n.all, queries, func(panel int, tile []float32) {
		first := panel * panelRows
		for i, length := range p.length[:queries] {
			if length+panelRows > p.most {
				p.length[i] = -1
			}
			if p.length[i] < 0 {
				continue
			}
			values := tile[i*panelRows : (i+1)*panelRows]
			if own := s.own[i] - first; own >= 0 && own < panelRows {
				values[own] = float32(math.Inf(1))
			}
			from, to := i*p.most+length, i*p.most+length+panelRows
			p.length[i] += num.Below(p.values[from:to], p.rows[from:to], values, p.limits[i], uint32(first))
		}
	})
}

// multiply calls use with the values of the first queries and each panel.
func (s *Search) multiply(rows *panelled, queries int, use func(panel int, tile []float32)) {
	features := s.of.kept.Features
	a, tile, size := s.products.a[:queries*features], s.products.tile[:queries*panelRows], panelRows*features
	for panel := range len(rows.half) / panelRows {
		half := rows.half[panel*panelRows : (panel+1)*panelRows]
		for i := range queries {
			copy(tile[i*panelRows:(i+1)*panelRows], half)
		}
		if b := rows.values[panel*size : (panel+1)*size]; num.Accelerated {
			num.AddProduct(tile, a, b, features, panelRows)
		} else {
			addPlainProduct(tile, a, b, features)
		}
		use(panel, tile)
	}
}

// addPlainProduct is num.AddProduct to panelRows columns without fused operations, which are slow without
// vectors: the margin is for both.
func addPlainProduct(dst, a, b []float32, features int) {
	for i := range len(dst) / panelRows {
		row, x, y := (*[panelRows]float32)(dst[i*panelRows:]), a[i*features:(i+1)*features], b
		for ; len(x) >= 4; x, y = x[4:], y[4*panelRows:] {
			y0, y1, y2, y3 := (*[panelRows]float32)(y), (*[panelRows]float32)(y[panelRows:]),
				(*[panelRows]float32)(y[2*panelRows:]), (*[panelRows]float32)(y[3*panelRows:])
			for j, sum := range row {
				sum += float32(x[0] * y0[j])
				sum += float32(x[1] * y1[j])
				sum += float32(x[2] * y2[j])
				row[j] = sum + float32(x[3]*y3[j])
			}
		}
		for c, v := range x {
			for j, w := range (*[panelRows]float32)(y[c*panelRows:]) {
				row[j] += float32(v * w)
			}
		}
	}
}

// compare finds the nearest rows of query i by its distances to all kept rows.
func (s *Search) compare(i int, ref dataset.RowRef, shard func(uint32) *dataset.Rows) {
	n := s.of
	if s.nearest == nil {
		s.prepareComparing()
	}
	if n.sparse != nil {
		n.sparse.To(s.squares, []dataset.RowRef{ref}, shard, s.scratch)
	} else {
		for row := range s.rows {
			s.rows[row] = uint32(row)
		}
		num.SquaresAt(s.squares, s.x[i*n.kept.Features:(i+1)*n.kept.Features], n.factors, n.kept.X, s.rows)
	}
	limit := math.MaxFloat64
	if rank := n.rank(s.ks[len(s.ks)-1]); rank < len(n.sample) {
		for i, row := range n.sample {
			s.drawn[i] = s.squares[row]
		}
		limit = s.nearest.atRank(s.drawn, rank)
	}
	if !s.divide(limit, s.own[i]) && !s.divide(math.MaxFloat64, s.own[i]) {
		panic("rows: more neighbours than rows")
	}
}

// divide divides the rows up to a distance, other than row own.
func (s *Search) divide(limit float64, own int) bool {
	listed := 0
	for row, d := range s.squares {
		s.values[listed], s.rows[listed] = d, uint32(row)
		if d <= limit && row != own {
			listed++
		}
	}
	return s.nearest.divide(s.values[:listed], s.rows[:listed], limit, 0, func(dst []float64, rows []uint32) {
		for i, row := range rows {
			dst[i] = s.squares[row]
		}
	})
}
