package ldlboost

import "github.com/coppice-ldl/coppice/algorithms/kit/binning"

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

// find finds the best split of a node of these sums. It reports false if none gains anything.
func (s *search) find(sums []float64, b *binning.Bins, l *layout) (found split, ok bool) {
	node := sums[:l.width]
	parent, most := s.score(node), 0.0
	for i, at := range l.columns {
		left := s.prefix
		clear(left)
		bins := sums[l.first[i]*l.width:][:b.Columns[at].Bins()*l.width]
		for bin := 0; len(bins) > l.width; bin++ { // the last bin has nothing to its right
			own := bins[:l.width]
			bins = bins[l.width:]
			if own[0] == 0 {
				continue
			}
			for k, x := range own {
				left[k] += x
			}
			if node[0]-left[0] < s.leafRows {
				break
			}
			if left[0] < s.leafRows {
				continue
			}
			s.thresholds++
			gain := float64((s.score(left)+s.scoreRest(node, left)-parent)/2) - s.minGain
			if gain > most {
				most, ok = gain, true
				found = split{column: at, bin: bin, gain: gain, left: append(found.left[:0], left...)}
			}
		}
	}
	return found, ok
}
