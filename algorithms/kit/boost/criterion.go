package boost

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Pair is the first and the second derivative of a row's loss, or sums of them over rows, in
// units of 2^-Bits.
type Pair struct{ G, H int64 }

func (p Pair) add(q Pair) Pair { return Pair{p.G + q.G, p.H + q.H} }

func (p Pair) less(q Pair) Pair { return Pair{p.G - q.G, p.H - q.H} }

// Choice is what a Criterion chose at a node: two labels.
type Choice struct{ Up, Down uint16 }

// Criterion says what a tree is fitted to. A criterion is used for one tree at a time. Its results depend
// on the gradients and the node's rows only.
//
// A node of sums G and H has the score G²/(H + L2), and a split gains what both sides' scores have
// more than the node's, under the node's pairs.
type Criterion interface {
	// L2 returns what is added to H, as a number.
	L2() float64
	// Begin prepares for tree number tree of a round.
	Begin(g *Gradients, tree int)
	// Node writes pairs for the node's rows, by row, and returns their sums over these and
	// what was chosen. The pairs are read before the next call of Node.
	Node(rows []uint32, pairs []Pair) (Pair, Choice)
	// Leaf writes what a leaf of the sums adds to the scores; dst has a leaf's width.
	Leaf(dst []float32, sum Pair, c Choice)
}

// Gradients are what is known of the training rows at the beginning of a round.
type Gradients struct {
	Rows, Labels int
	P            []float64 // rows×Labels: the predicted degrees
	D            []float32 // rows×Labels: the true ones
	Bits         int       // derivatives are multiples of 2^-Bits
	unit         float64   // 2^Bits
	weights      []float64 // by row, in units of 2^(maxBits-Bits); nil: none
	mass         float64   // weight of all rows, in these units
	loss         float64   // mean K-L, in nats

	rounds int
	users  int // growers that read it
}

// newGradients returns the gradients of rows of degrees d (rows×labels), before any prediction.
func newGradients(d []float32, weights []float64, labels int) *Gradients {
	g := &Gradients{Rows: len(d) / labels, Labels: labels, D: d, P: make([]float64, len(d)), weights: weights}
	g.Bits, g.mass = bitsFor(g.Rows), float64(g.Rows)
	if weights != nil {
		g.weigh()
	}
	g.unit = math.Ldexp(1, g.Bits)
	return g
}

// weigh sets what depends on weights: bits so that sums are exact as without weights, where a sample of weight 1 counts
// as a row. Weights of a small sum have more bits. Weights are in units of 2^(maxBits-Bits), so that whole weights of a
// sum below 2^10 are factors of what Fixed returns without weights.
func (g *Gradients) weigh() {
	g.mass = 0
	for _, w := range g.weights {
		g.mass += w
	}
	exponent := Exponent(g.mass)
	g.Bits = min(maxBits-min(0, exponent), 50-exponent, 900)
	scaled, factor := make([]float64, g.Rows), math.Ldexp(1, g.Bits-maxBits)
	for i, w := range g.weights {
		scaled[i] = w * factor
	}
	g.weights, g.mass = scaled, g.mass*factor
}

// GradientsAt returns the gradients of rows of degrees d (rows×labels) that are predicted by F (the
// same shape).
func GradientsAt(f []float64, d []float32, labels int) *Gradients {
	g := newGradients(d, nil, labels)
	copy(g.P, f)
	for i := 0; i < len(f); i += labels {
		Softmax(g.P[i : i+labels])
	}
	return g
}

// Fixed returns x of a row, at most 2 in size, times the row's weight in units of 2^-Bits: the nearest whole number.
func (g *Gradients) Fixed(row int, x float64) int64 {
	if g.weights != nil {
		whole := float64(RoundToInt(float64(x * (1 << maxBits))))
		return RoundToInt(float64(whole * g.weights[row]))
	}
	return RoundToInt(float64(x * g.unit))
}

// Number returns what so many units are.
func (g *Gradients) Number(x int64) float64 { return float64(x) / g.unit }

// maxBits bounds the bits of derivatives of rows without weights.
const maxBits = 40

// bitsFor returns k of the units of 2^-k in which the derivatives of so many rows are summed: sums of
// numbers of at most 1 are whole numbers of at most 2^52, which float64 has exactly.
func bitsFor(rows int) int {
	log := 0
	for 1<<log < rows {
		log++
	}
	return min(maxBits, 52-log)
}

// Variant has the parts of a boosting algorithm that the algorithms of this package do not share.
// Its method New makes the algorithm.
type Variant struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// PerLabel says that a round has a tree for each label, whose leaves have one number. Else a
	// round has one tree, whose leaves have a number for each label.
	PerLabel bool
	// L2 says that there is a setting l2.
	L2 bool
	// Factor returns the factor of the trees' sums for so many labels. The learning rate is another factor.
	Factor func(labels int) float64
	// NewCriterion makes the criterion of one grower.
	NewCriterion func(c *Config) Criterion
}

// trees returns how many trees a round has.
func (v *Variant) trees(labels int) int {
	if v.PerLabel {
		return labels
	}
	return 1
}

// width returns how many numbers a leaf has.
func (v *Variant) width(labels int) int { return labels / v.trees(labels) }

// leastDegree is the least predicted degree in a K-L divergence, and the least mean degree that
// training starts from.
const leastDegree = 1e-12

// leastLog is ln leastDegree.
const leastLog = -27.631021115928547

// RoundToInt returns the whole number nearest to x, which is less than 2^51 in size; the even one
// of two.
func RoundToInt(x float64) int64 {
	const shift = 0x1.8p52 // numbers from 2^52 to 2^53 are whole, and their bits count them
	return int64(math.Float64bits(x+shift)) - 0x4338000000000000
}

// Exponent returns the least e for which a number above 0 is below 2^e, or -1022 if that is greater.
func Exponent(x float64) int { return int(math.Float64bits(x)>>52) - 1022 }

// LossOf returns the K-L divergence, in nats, of a distribution from the prediction. f is
// F of the prediction, and logSum is ln Σ exp F.
func LossOf(label []float32, f []float64, logSum float64) (loss float64) {
	for c, d := range label {
		if d > 0 {
			x := float64(d)
			loss += float64(x * (num.Log(x) - max(f[c]-logSum, leastLog)))
		}
	}
	return loss
}

// lossBits says in which units, 2^-lossBits, the losses of rows are summed, so that sums of 2^20
// rows are exact: a loss is at most 28 or so.
const lossBits = 26

// ExactLoss returns a row's loss as a multiple of 2^-lossBits.
func ExactLoss(loss float64) float64 {
	return float64(float64(RoundToInt(float64(loss*(1<<lossBits)))) / (1 << lossBits))
}

// Scores make a distribution of the sums of leaves.
type Scores struct {
	Start  []float64 // F before the first round, by label
	Factor float64   // of the sums
}

// Apply makes F of a row's sums of leaves, in place.
func (s *Scores) Apply(f []float64) {
	mean := 0.0
	for _, sum := range f {
		mean += sum
	}
	mean /= float64(len(f))
	for c, sum := range f {
		f[c] = s.Start[c] + float64(s.Factor*(sum-mean))
	}
}

// Softmax replaces F by p, and returns ln Σ exp F.
func Softmax(f []float64) float64 {
	most, sum := exps(f)
	for c := range f {
		f[c] /= sum
	}
	return most + num.Log(sum)
}

// exps replaces F by exp(F - most), where most is the greatest of F, and returns the sum of these too.
func exps(f []float64) (most, sum float64) {
	most = f[0]
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for c := range f {
		f[c] -= most
	}
	num.Exps(f, f)
	for _, x := range f {
		sum += x
	}
	return most, sum
}

// LogSumExp returns ln Σ exp F.
func LogSumExp(f []float64) float64 {
	most, sum := f[0], 0.0
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for _, x := range f {
		sum += num.Exp(x - most)
	}
	return most + num.Log(sum)
}
