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
	// Add adds the derivatives of the row's terms by its scores to r, and what they sum to sums. p is the
	// prediction of the row and d its label distribution.
	Add(r, sums, p []float64, d []float32)
}

// Kernel is the workers' half of an evaluation and of a validation.
type Kernel struct {
	Features, Labels int
	Alone            bool // Objective.Alone
	// Incomplete says that degrees may be missing: see merged.
	Incomplete bool
}

// Scratch is the working memory of one lane.
type Scratch struct {
	Terms Terms      // nil: none
	Unit  round.Task // of the caller: a copy that stays where it is

	space   space
	version uint64 // of the weights that space has
	read    bool   // it has some
	block   blocks.Block
	known   known     // of a unit without a derived value
	slopes  []float64 // MaxRows×labels: derivatives of the terms
	sums    []float64 // of the terms of a row
	merged  *merged   // nil: labels are complete
	scaling scaling.Scratch
}

// NewScratch makes the working memory of a lane; terms may be nil.
func (k *Kernel) NewScratch(terms Terms) *Scratch {
	s := &Scratch{Terms: terms, space: newSpace(k.Features, k.Labels)}
	if k.Incomplete {
		s.merged = newMerged(k.Labels)
	}
	if terms != nil {
		s.slopes = make([]float64, blocks.MaxRows*k.Labels)
	}
	return s
}

// Evaluation is the number of values that an evaluation sums beside the rows and their losses,
// without terms: Σ x rᵀ (features×labels) and Σ r (labels), where r = p - d.
func Evaluation(features, labels int) int { return (features + 1) * labels }

// Run computes a unit of an evaluation, of a validation or of the scaling; it reports false, and
// does nothing, if the round is the algorithm's own.
func (k *Kernel) Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s *Scratch) bool {
	if scaling.Run(dst, u, d, v, &s.scaling) {
		return true
	}
	switch u.Op {
	case fullbatch.OpEvaluate:
		if s.Terms != nil {
			s.Terms.Begin(v)
		}
		k.evaluate(dst, u, d, v, derived, s)
	case gradient.OpValidate:
		k.EachRow(dst, u, d, v, derived, s, nil)
	default:
		return false
	}
	return true
}

// EachRow calls do, if not nil, with each row of a unit and its prediction p (labels). F64 gets the number of rows and
// the sum of their K-L divergences, both weighted.
func (k *Kernel) EachRow(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s *Scratch, do func(rows *dataset.Rows, pos int, p []float64)) {
	known := k.knownOf(u, d, derived, s)
	dst.F64[0] = known.rows
	dst.F64[1] = k.eachBlock(u, d, v, known, s, func(b *blocks.Block) {
		if do == nil {
			return
		}
		p := s.space.rows(b)
		for i, ref := range b.Refs {
			do(b.Rows, int(ref.Pos), p[i*k.Labels:][:k.Labels])
		}
	})
}

// Predict calls do with the number of each row of a unit, from 0, and its prediction p (labels) under effective weights
// that are not the weights of a round.
func (k *Kernel) Predict(u *round.Task, d *dataset.Data, weights []float64, s *Scratch, do func(i int, p []float64)) {
	s.space.read(weights, false)
	s.read = false
	s.space.begin()
	at := 0
	for refs := u.Rows(d); len(refs) > 0; {
		s.block = blocks.Next(refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) })
		refs = refs[len(s.block.Refs):]
		s.space.predict(&s.block)
		p := s.space.rows(&s.block)
		for i := range s.block.Refs {
			do(at+i, p[i*k.Labels:][:k.Labels])
		}
		at += len(s.block.Refs)
	}
}

// eachBlock calls do with each block of a unit's rows, with its predictions in s.space.values, and returns the sum of
// the rows' K-L divergences: Σ ln Σ exp(s_c) - Σ d_c s_c + Σ d ln d. The second sum is linear in the weights: it
// follows from what is known. Missing degrees add what merged says. A weight is a factor of the divergence of its
// row.
func (k *Kernel) eachBlock(u *round.Task, d *dataset.Data, v round.Vars, known *known, s *Scratch,
	do func(b *blocks.Block)) float64 {
	weights, version := Weights(v), v.Version(varWeights)
	s.space.read(weights, s.read && s.version == version)
	s.read, s.version = true, version
	s.space.begin()
	loss := 0.0
	for refs := u.Rows(d); len(refs) > 0; {
		s.block = blocks.Next(refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) })
		refs = refs[len(s.block.Refs):]
		s.space.score(&s.block)
		if s.merged != nil {
			loss += s.merged.read(s.space.values, &s.block)
		}
		loss += s.space.distribute(&s.block)
		do(&s.block)
	}
	return loss - num.Dot64(weights, known.sums) + known.negentropy
}

// Weights returns the effective weights that a round carries.
func Weights(v round.Vars) []float64 { return num.Float64s(v.Get(varWeights)) }

// known is what the labels of a unit's rows tell, whatever the weights: Σ x dᵀ and Σ d, as Evaluation counts them,
// and Σ d ln d, all weighted. The degrees of a row, which sum to 1 up to the rounding of float32, are divided by
// their sum, so that predictions less degrees are the derivatives of the losses.
type known struct {
	round.Unpooled
	rows       float64 // their weights, added up
	sums       []float64
	negentropy float64
}

// Bytes implements round.Derived.
func (x *known) Bytes() int { return 8*len(x.sums) + 64 }

// Derive implements round.ReduceKernel for evaluations.
func (k *Kernel) Derive(u round.Task, d *dataset.Data, s *Scratch) round.Derived {
	n := Evaluation(k.Features, k.Labels)
	if !u.TryReserve(8*n + 64) {
		return nil
	}
	x := &known{sums: make([]float64, n)}
	s.Unit = u
	k.know(x, &s.Unit, d, s)
	return x
}

// knownOf returns what is known of a unit. derived has it if there was room for it.
func (k *Kernel) knownOf(u *round.Task, d *dataset.Data, derived round.Derived, s *Scratch) *known {
	if x, ok := derived.(*known); ok {
		return x
	}
	s.known.sums = resized(s.known.sums, Evaluation(k.Features, k.Labels))
	clear(s.known.sums)
	k.know(&s.known, u, d, s)
	return &s.known
}

// know adds the sums of a unit's rows to x.sums, which are 0, and sets the other fields of x.
func (k *Kernel) know(x *known, u *round.Task, d *dataset.Data, s *Scratch) {
	n := k.Labels
	outers, total := x.sums[:k.Features*n], x.sums[k.Features*n:]
	x.rows, x.negentropy = 0, 0
	s.space.begin()
	degrees := s.space.turned[:n]
	for refs := u.Rows(d); len(refs) > 0; {
		b := blocks.Next(refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) })
		refs = refs[len(b.Refs):]
		for i := range b.Refs {
			weight := b.Weight(i)
			x.rows += weight
			if missing := s.merged.degrees(degrees, b.Label(i)); missing > 0 {
				x.negentropy += float64(weight * float64(missing*num.Log(missing)))
			}
			x.negentropy += float64(weight * negentropy(degrees))
			for c, x := range degrees {
				x = float64(x * weight)
				s.space.values[c*blocks.MaxRows+i] = x
				total[c] += x
			}
		}
		s.space.add(outers, &b)
	}
	s.space.fold(outers, total[:0])
}

// negentropy returns Σ d ln d.
func negentropy(degrees []float64) (sum float64) {
	for _, x := range degrees {
		if x > 0 {
			sum += float64(x * num.Log(x))
		}
	}
	return sum
}

// evaluate sums the unit's rows: F64 holds their number, their K-L divergences, Σ x rᵀ, Σ r and the sums of the
// terms, all weighted.
func (k *Kernel) evaluate(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s *Scratch) {
	known := k.knownOf(u, d, derived, s)
	dst.F64[0] = known.rows
	sums := dst.F64[fullbatch.SumsAt:][:Evaluation(k.Features, k.Labels)]
	own := dst.F64[fullbatch.SumsAt+len(sums):]
	outers, total := sums[:k.Features*k.Labels], sums[k.Features*k.Labels:]
	dst.F64[1] = k.eachBlock(u, d, v, known, s, func(b *blocks.Block) {
		if s.Terms != nil {
			s.addTerms(k.Alone, total, own, b)
		}
		if s.merged != nil {
			s.merged.subtract(s.space.values, total)
		}
		if b.Rows.Weight != nil {
			s.space.weigh(b)
		}
		s.space.add(outers, b)
	})
	if d.Manifest.HasWeights { // the residuals of labels were added up with their weights
		dst.F64[2] = float64(len(u.Rows(d)))
		copy(total, s.space.weighted)
	}
	if k.Alone {
		s.space.fold(outers, nil)
		return
	}
	if d.Manifest.HasWeights {
		s.space.fold(outers, nil)
	} else {
		s.space.fold(outers, total)
	}
	num.AddScaled64(sums, -1, known.sums)
}

// addTerms adds the derivatives of a block's terms to the predictions, or sets these to them if alone is true, and
// adds them to total.
func (s *Scratch) addTerms(alone bool, total, sums []float64, b *blocks.Block) {
	p, n := s.space.rows(b), s.space.labels
	slopes := s.slopes[:len(p)]
	clear(slopes)
	for i := range b.Refs {
		r := slopes[i*n:][:n]
		if b.Rows.Weight == nil {
			s.Terms.Add(r, sums, p[i*n:][:n], b.Label(i))
		} else {
			s.sums = resized(s.sums, len(sums))
			clear(s.sums)
			s.Terms.Add(r, s.sums, p[i*n:][:n], b.Label(i))
			num.AddScaled64(sums, b.Weight(i), s.sums)
		}
		for c, x := range r {
			total[c] += x
			if alone {
				s.space.values[c*blocks.MaxRows+i] = x
			} else {
				s.space.values[c*blocks.MaxRows+i] += x
			}
		}
	}
}
