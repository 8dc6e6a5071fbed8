package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// varWeights are the effective weights of a round (Var.ID): float64, (features+1)×labels.
const varWeights = 1

// Terms are what an algorithm adds to the K-L divergence of a row.
type Terms interface {
	// Sums is how many values of F64 they sum, behind the others of an evaluation.
	Sums() int
	// Begin reads the values of the round.
	Begin(v round.Vars)
	// Add adds the derivatives of the row's terms by its scores to r, of which p is the
	// prediction and d the label distribution, and what they sum to sums.
	Add(r, sums, p []float64, d []float32)
}

// Kernel is the workers' half of an evaluation and of a validation.
type Kernel struct{ Features, Labels int }

// Scratch is the working memory of one lane.
type Scratch struct {
	Terms Terms      // nil: none
	Unit  round.Task // of the caller: a copy that stays where it is

	space     space
	residuals []float64               // MaxRows×labels
	mass      [blocks.MaxRows]float64 // sums of the rows' degrees
	scaling   scaling.Scratch
}

// NewScratch makes the working memory of a lane; terms may be nil.
func (k *Kernel) NewScratch(terms Terms) *Scratch {
	return &Scratch{Terms: terms, space: newSpace(k.Labels), residuals: make([]float64, blocks.MaxRows*k.Labels)}
}

// Evaluation is the number of values that an evaluation sums beside the rows and their losses,
// without terms: Σ x rᵀ (features×labels) and Σ r (labels), where r = p - d.
func Evaluation(features, labels int) int { return (features + 1) * labels }

// Run computes a unit of an evaluation, of a validation or of the scaling; it reports false, and
// does nothing, where the round is the algorithm's own.
func (k *Kernel) Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived, s *Scratch) bool {
	if scaling.Run(dst, u, d, v, &s.scaling) {
		return true
	}
	switch u.Op {
	case fullbatch.OpEvaluate:
		s.begin(v)
		k.evaluate(dst, u, d, Weights(v), s)
		dst.F64[1] += negentropyOf(derived, u, d)
	case gradient.OpValidate:
		k.validate(dst, u, d, Weights(v), s)
	default:
		return false
	}
	return true
}

// EachRow calls do with each row of a unit and its prediction p (labels), times the sum of the row's
// degrees, which is 1 up to rounding: p - d are then the derivatives of the row's loss by its
// scores. F64 gets the number of rows and the sum of their K-L divergences.
func (k *Kernel) EachRow(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived, s *Scratch, do func(rows *dataset.Rows, pos int, p []float64)) {
	refs, weights := u.Rows(d), Weights(v)
	dst.F64[0] = float64(len(refs))
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		refs = refs[len(b.Refs):]
		scores := s.space.score(&b, weights)
		dst.F64[1] += s.crossEntropy(scores, &b)
		for i, ref := range b.Refs {
			p, share := scores[i*k.Labels:][:k.Labels], s.mass[i]*s.space.shares[i]
			for c := range p {
				p[c] *= share
			}
			do(b.Rows, int(ref.Pos), p)
		}
	}
	dst.F64[1] += negentropyOf(derived, u, d)
}

// Weights returns the effective weights that a round carries.
func Weights(v round.Vars) []float64 { return num.Float64s(v.Get(varWeights)) }

func (s *Scratch) begin(v round.Vars) {
	if s.Terms != nil {
		s.Terms.Begin(v)
	}
}

// negentropy is Σ d ln d over the labels of a unit's rows: the part of the K-L divergence that no
// weights change.
type negentropy struct {
	round.Unpooled
	sum float64
}

// Bytes implements round.Derived.
func (*negentropy) Bytes() int { return 64 }

// Derive implements round.ReduceKernel for evaluations.
func (k *Kernel) Derive(u round.Task, d *dataset.Data) round.Derived {
	if !u.TryReserve((*negentropy)(nil).Bytes()) {
		return nil
	}
	return &negentropy{sum: labelNegentropy(&u, d)}
}

// negentropyOf returns Σ d ln d of a unit's rows, which derived has where there was room for it.
func negentropyOf(derived round.Derived, u *round.Task, d *dataset.Data) float64 {
	if known, ok := derived.(*negentropy); ok {
		return known.sum
	}
	return labelNegentropy(u, d)
}

func labelNegentropy(u *round.Task, d *dataset.Data) (sum float64) {
	for _, ref := range u.Rows(d) {
		sum += rowNegentropy(d.Shard(int(ref.Shard)).Label(int(ref.Pos)))
	}
	return sum
}

func rowNegentropy(label []float32) (sum float64) {
	for _, x := range label {
		if x > 0 {
			sum += float64(float64(x) * num.Log(float64(x)))
		}
	}
	return sum
}

// evaluate sums the unit's rows: F64 holds their number, the cross-entropies -Σ d ln p, Σ x rᵀ, Σ r and
// the sums of the terms.
func (k *Kernel) evaluate(dst *round.Partial, u *round.Task, d *dataset.Data, weights []float64, s *Scratch) {
	refs := u.Rows(d)
	dst.F64[0] = float64(len(refs))
	outers := dst.F64[fullbatch.SumsAt:][:k.Features*k.Labels]
	total := dst.F64[fullbatch.SumsAt+len(outers):][:k.Labels]
	own := dst.F64[fullbatch.SumsAt+len(outers)+len(total):]
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		refs = refs[len(b.Refs):]
		scores := s.space.score(&b, weights)
		residuals := s.residuals[:len(scores)]
		dst.F64[1] += s.crossEntropy(scores, &b)
		s.residual(residuals, scores, &b)
		if s.Terms != nil {
			s.addTerms(residuals, own, scores, &b)
		}
		for i := range b.Refs {
			for c, x := range residuals[i*k.Labels:][:k.Labels] {
				total[c] += x
			}
		}
		s.space.multiply.AddProductT(outers, &b, residuals, k.Labels)
	}
}

// crossEntropy replaces the scores of a block's rows by exponentials and returns the sum of the
// rows' cross-entropies. The degrees of a row sum to 1 up to rounding; their sum is taken as it is,
// so that the residuals are the derivatives of the loss.
func (s *Scratch) crossEntropy(scores []float64, b *blocks.Block) float64 {
	n := s.space.labels
	sum := 0.0
	for i := range b.Refs {
		label := b.Label(i)
		row := scores[i*n : i*n+n : i*n+n]
		mass := 0.0
		for c, x := range label[:len(row)] {
			mass += float64(x)
			sum -= float64(float64(x) * row[c])
		}
		s.mass[i] = mass
	}
	s.space.exponentials(scores)
	for i, log := range s.space.logs[:len(b.Refs)] {
		sum += float64(s.mass[i] * log)
	}
	return sum
}

// residual sets r to the derivatives of the cross-entropies of a block's rows by their scores.
func (s *Scratch) residual(r, exponentials []float64, b *blocks.Block) {
	n := s.space.labels
	for i := range b.Refs {
		share := s.mass[i] * s.space.shares[i]
		label := b.Label(i)
		row, to := exponentials[i*n:i*n+n:i*n+n], r[i*n:i*n+n:i*n+n]
		for c, x := range label[:len(row)] {
			to[c] = float64(share*row[c]) - float64(x)
		}
	}
}

// addTerms adds the terms of a block's rows.
func (s *Scratch) addTerms(r, sums, exponentials []float64, b *blocks.Block) {
	s.space.normalise(exponentials)
	n := s.space.labels
	for i := range b.Refs {
		s.Terms.Add(r[i*n:][:n], sums, exponentials[i*n:][:n], b.Label(i))
	}
}

// validate sums the unit's rows: F64 holds their number and their K-L divergences.
func (k *Kernel) validate(dst *round.Partial, u *round.Task, d *dataset.Data, weights []float64, s *Scratch) {
	refs := u.Rows(d)
	dst.F64[0] = float64(len(refs))
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		refs = refs[len(b.Refs):]
		scores := s.space.score(&b, weights)
		for i := range b.Refs {
			dst.F64[1] += rowNegentropy(b.Label(i))
		}
		dst.F64[1] += s.crossEntropy(scores, &b)
	}
}
