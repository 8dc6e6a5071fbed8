package ptbayes

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations (Round.Op). All are weighted sums over samples.
const (
	opSums     uint8 = iota + 1 // the first part of the moments
	opSquares                   // the second part
	opValidate                  // rows, then the K-L divergences with each smoothing
)

// varMoments are the moments that a round carries (Var.ID), float64.
const varMoments = 1

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	cfg              Config
	features, labels int
	key              num.Key // of the drawn samples
}

// scratch is the working memory of a lane.
type scratch struct {
	unit      round.Task
	moments   moments
	degrees   []float64 // labels
	scores    []float64 // labels
	model     model     // of a smoothing
	predictor *predictor
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{moments: *momentsOf(k.features, k.labels), degrees: make([]float64, k.labels),
		scores: make([]float64, k.labels)}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	switch u.Op {
	case opSums:
		k.sum(dst.F64, &s.unit, d, s)
	case opSquares:
		k.squares(dst.F64, &s.unit, d, v, s)
	case opValidate:
		k.validate(dst.F64, &s.unit, d, v, s)
	default:
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// weights sets dst to the weights that a row has as a sample of each label. They are factors of its own weight, which
// weights returns.
func (k *kernel) weights(dst []float64, rows *dataset.Rows, pos int) (weight float64) {
	maxent.Degrees(dst, rows.Label(pos))
	weight = rows.WeightOf(pos)
	for c, x := range dst {
		if k.cfg.Samples == samplesDrawn {
			x = float64(poisson(float64(x*float64(len(dst))), k.key, rows.Row[pos], uint32(c)))
		}
		dst[c] = weight * x
	}
	return weight
}

// poissonPart is the greatest mean with which a Poisson number is drawn at once.
const poissonPart = 32

// poisson returns a Poisson number with a mean. It is the sum of such numbers with smaller means, each by inversion of
// the distribution function.
func poisson(mean float64, key num.Key, row, label uint32) (n int) {
	for part := uint32(0); mean > 0; part++ {
		own := min(mean, poissonPart)
		mean -= own
		v := num.Philox(key, [4]uint32{row, label, part})
		u := float64((uint64(v[0])|uint64(v[1])<<32)>>11) * 0x1p-53
		p := num.Exp(-own)
		for i := 1; u >= p && i < 8*poissonPart; i++ {
			u -= p
			p *= own / float64(i)
			n++
		}
	}
	return n
}

// sum adds a unit's rows to the sums of the first part.
func (k *kernel) sum(sums []float64, u *round.Task, d *dataset.Data, s *scratch) {
	m := &s.moments
	m.view(sums)
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		weight := k.weights(s.degrees, rows, pos)
		m.rows[0] += weight
		num.Add64(m.weight, s.degrees)
		add := func(i int, x float64) {
			m.mean[i] += float64(weight * x)
			num.AddScaled64(m.ofLabel[i*m.labels:][:m.labels], x, s.degrees)
		}
		if rows.Sparse {
			columns, values := rows.NonZeros(pos)
			for i, c := range columns {
				add(int(c), float64(values[i]))
			}
			continue
		}
		for i, x := range rows.Dense(pos) {
			add(i, float64(x))
		}
	}
}

// squares adds a unit's rows to the sums of the second part, around the means that the round carries. What the zeros
// of sparse rows add follows from the number and the weights of all rows: each non-zero x adds (x - mean)² - mean².
func (k *kernel) squares(sums []float64, u *round.Task, d *dataset.Data, v round.Vars, s *scratch) {
	m, n := &s.moments, k.labels
	m.view(num.Float64s(v.Get(varMoments)))
	variance, variances := sums[:k.features], sums[k.features:]
	total, count := s.scores, 0.0
	clear(total)
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		of := k.weights(s.degrees, rows, pos)
		if !rows.Sparse {
			for i, x := range rows.Dense(pos) {
				by := float64(x) - m.mean[i]
				variance[i] += float64(of * float64(by*by))
				own, means := variances[i*n:][:n], m.ofLabel[i*n:][:n]
				for c, weight := range s.degrees {
					by := float64(x) - means[c]
					own[c] += float64(weight * float64(by*by))
				}
			}
			continue
		}
		count += of
		num.Add64(total, s.degrees)
		columns, values := rows.NonZeros(pos)
		for j, column := range columns {
			i, x := int(column), float64(values[j])
			variance[i] += float64(of * float64(x*(x-2*m.mean[i])))
			own, means := variances[i*n:][:n], m.ofLabel[i*n:][:n]
			for c, weight := range s.degrees {
				own[c] += float64(weight * float64(x*(x-2*means[c])))
			}
		}
	}
	if count == 0 {
		return
	}
	for i, mean := range m.mean {
		variance[i] += float64(count * float64(mean*mean))
		for c, mean := range m.ofLabel[i*n:][:n] {
			variances[i*n+c] += float64(total[c] * float64(mean*mean))
		}
	}
}

// validate sums the K-L divergences of a unit's rows with each choice of the smoothing.
func (k *kernel) validate(sums []float64, u *round.Task, d *dataset.Data, v round.Vars, s *scratch) {
	m := &s.moments
	m.view(num.Float64s(v.Get(varMoments)))
	if s.predictor == nil {
		s.predictor = newPredictor(k.features, k.labels)
		s.model = newModel(k.features, k.labels)
	}
	refs := u.Rows(d)
	for _, ref := range refs {
		sums[0] += d.Shard(int(ref.Shard)).WeightOf(int(ref.Pos))
	}
	for i, smoothing := range choices {
		s.model.set(m, smoothing)
		s.predictor.read(&s.model)
		for _, ref := range refs {
			rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
			s.predictor.predict(s.scores, rows, pos)
			sums[1+i] += float64(rows.WeightOf(pos) * softmax.KL(rows.Label(pos), s.scores))
		}
	}
}
