package ldlboost

import "github.com/coppice-ldl/coppice/internal/num"

// split is the best split of a node.
type split struct {
	column, bin int // rows up to the bin of the column go left
	gain        float64
	left        []float64 // sums of these rows
}

// search finds splits of nodes. Scores are float64 expressions of exact sums, in a fixed order.
type search struct {
	labels      int
	diagonal    bool
	leafRows    float64
	l2, minGain float64
	weight      int     // index of the sum of the rows' weights
	gradient    float64 // what a unit of G is
	hessian     float64 // what a unit of H is, or of the weight
	least       float64 // least H, in these units
	prefix      []float64
	units       units
	thresholds  uint64 // tried
}

func newSearch(c *Config, labels int, weighted bool) *search {
	s := &search{labels: labels, diagonal: c.Hessian == hessianDiagonal, leafRows: float64(c.LeafRows), l2: c.L2,
		minGain: c.MinGain, prefix: make([]float64, c.width(labels, weighted))}
	if weighted && !s.diagonal {
		s.weight = 1 + labels
	}
	s.setUnit(1)
	return s
}

// setUnit sets the unit of weights, a power of two: 1 without weights.
func (s *search) setUnit(unit float64) {
	s.gradient, s.hessian, s.least = gradientUnit*unit, hessianUnit*unit, max(1, 1/unit)
	if !s.diagonal {
		s.hessian, s.least = unit/2, 1
	}
	s.units = units{gradient: s.gradient, hessian: s.hessian, least: s.least, l2: s.l2}
}

// denominator returns what divides G of a label with the sum h of second derivatives; with hessian bound, of weights.
func (s *search) denominator(h float64) float64 { return float64(max(h, s.least)*s.hessian) + s.l2 }

// score returns Σ G²/(H + l2) of sums.
func (s *search) score(sums []float64) (score float64) {
	g := sums[1 : 1+s.labels]
	if !s.diagonal {
		for _, x := range g {
			score += float64(float64(x*s.gradient) * float64(x*s.gradient))
		}
		return float64(score / s.denominator(sums[s.weight]))
	}
	for c, h := range sums[1+s.labels:][:len(g)] {
		x := float64(g[c] * s.gradient)
		score += float64(float64(x*x) / s.denominator(h))
	}
	return score
}

// scoreRest is score of what a part lacks of a node.
func (s *search) scoreRest(sums, part []float64) (score float64) {
	part = part[:len(sums)]
	g := sums[1 : 1+s.labels]
	if !s.diagonal {
		for c, x := range g {
			x = float64((x - part[1+c]) * s.gradient)
			score += float64(x * x)
		}
		return float64(score / s.denominator(sums[s.weight]-part[s.weight]))
	}
	h, less := sums[1+s.labels:][:len(g)], part[1+s.labels:][:len(g)]
	for c := range g {
		x := float64((g[c] - part[1+c]) * s.gradient)
		score += float64(float64(x*x) / s.denominator(h[c]-less[c]))
	}
	return score
}

// scan adds the sums of a bin to the sums left of a threshold, and returns their score, and the score of what the
// node has besides.
func (s *search) scan(left, own, node []float64) (score, rest float64) {
	switch {
	case !num.Accelerated:
		num.Add64(left, own)
		return s.score(left), s.scoreRest(node, left)
	case s.diagonal:
		return scanAVX2(&left[0], &own[0], &node[0], s.labels, &s.units)
	case s.weight > 0:
		left[s.weight] += own[s.weight]
	}
	score, rest = scanBoundAVX2(&left[0], &own[0], &node[0], s.labels, s.gradient)
	return score / s.denominator(left[s.weight]), rest / s.denominator(node[s.weight]-left[s.weight])
}

// scanNarrow is scan of int32 sums of a bin, which rows with weights do not have.
func (s *search) scanNarrow(left []float64, own []int32, node []float64) (score, rest float64) {
	switch {
	case !num.Accelerated:
		addNarrow(left, own)
		return s.score(left), s.scoreRest(node, left)
	case s.diagonal:
		return scanNarrowAVX2(&left[0], &own[0], &node[0], s.labels, &s.units)
	}
	score, rest = scanBoundNarrowAVX2(&left[0], &own[0], &node[0], s.labels, s.gradient)
	return score / s.denominator(left[0]), rest / s.denominator(node[0]-left[0])
}

// addNarrow adds int32 sums to others.
func addNarrow(dst []float64, numbers []int32) {
	for i, x := range numbers[:len(dst)] {
		dst[i] += float64(x)
	}
}

// leaf sets dst to the numbers of a leaf.
func (s *search) leaf(dst []float32, sums []float64) {
	for c := range dst {
		h := sums[s.weight]
		if s.diagonal {
			h = sums[1+s.labels+c]
		}
		if g := sums[1+c]; g != 0 { // no leaf has -0
			dst[c] = float32(float64(-g*s.gradient) / s.denominator(h))
		}
	}
}

// best looks for the best split of a node, column after column, in ascending order.
type best struct {
	*search
	node   []float64 // its sums
	parent float64   // its score
	found  split     // of all columns so far, if ok
	ok     bool
}

// of begins to look for the best split of a node of these sums.
func (s *search) of(node []float64) best { return best{search: s, node: node, parent: s.score(node)} }

// try tries the thresholds of a column, given the sums of its bins.
func (b *best) try(number int, bins sums) {
	if bins.narrow != nil {
		tryBins(b, number, bins.narrow, b.scanNarrow, addNarrow)
	} else {
		tryBins(b, number, bins.wide, b.scan, num.Add64)
	}
}

// tryBins tries the thresholds of a column. scan is as in search, and add adds the sums of a bin to others.
func tryBins[T int32 | float64](b *best, number int, bins []T, scan func(left []float64, own []T,
	node []float64) (score, rest float64), add func(dst []float64, own []T)) {
	left, width := b.prefix, len(b.node)
	clear(left)
	for bin := 0; len(bins) > width; bin++ { // the last bin has nothing to its right
		own := bins[:width]
		bins = bins[width:]
		if own[0] == 0 {
			continue
		}
		rows := left[0] + float64(own[0])
		if b.node[0]-rows < b.leafRows {
			break
		}
		if rows < b.leafRows {
			add(left, own)
			continue
		}
		b.thresholds++
		score, rest := scan(left, own, b.node)
		if gain := float64((score+rest-b.parent)/2) - b.minGain; gain > b.found.gain {
			b.ok = true
			b.found = split{column: number, bin: bin, gain: gain, left: append(b.found.left[:0], left...)}
		}
	}
}
