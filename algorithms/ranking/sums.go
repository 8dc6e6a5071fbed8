package ranking

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// blockRows is how many rows are summed at a time. It decides bits.
const blockRows = 128

// scratch is the working memory of one lane, made for the landmarks of the job.
type scratch struct {
	features  []float32
	marks     *marks // that the fields below are for
	distances *rows.Scratch
	block     *part
	own       [][]float64 // the block's room for kernels
	gram      linalg.Matrix
	scaling   scaling.Scratch
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return new(scratch) }

// landmarks returns the landmarks of a round, which are decoded once for all lanes.
func (k *kernel) landmarks(v round.Vars) (*marks, error) {
	b := v.Get(varKept)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.marks != nil && len(b) == len(k.kept) && &b[0] == &k.kept[0] {
		return k.marks, nil
	}
	r, err := dataset.DecodeShard(b)
	if err != nil {
		return nil, fmt.Errorf("ranking: the equations of the landmarks cannot be solved: %w", err)
	}
	if r.N == 0 {
		return nil, errNoRows
	}
	k.kept, k.marks = b, &marks{rows.NewDistances(r, scaling.Find(v).Scale),
		widths(&k.cfg, num.Float64s(v.Get(varWidth))[0])}
	return k.marks, nil
}

// prepare makes the memory for a job's landmarks.
func (s *scratch) prepare(m *marks, n int) {
	if s.marks == m {
		return
	}
	count := m.distances.Rows()
	s.marks, s.distances, s.block = m, m.distances.NewScratch(), newPart(n, blockRows, count)
	s.own = append([][]float64{}, s.block.k...)
	s.gram = linalg.New(count, count)
}

// derived are the kernels of a unit's rows, as part.k has them.
type derived struct {
	round.Unpooled
	k [][]float64
}

// Bytes implements round.Derived.
func (d *derived) Bytes() int { return 8 * len(d.k) * len(d.k[0]) }

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, lane any) (round.Derived, error) {
	m, err := k.landmarks(v)
	if err != nil {
		return nil, err
	}
	s, refs := lane.(*scratch), u.Rows(d)
	s.prepare(m, k.cfg.Kernels)
	size := len(refs) * m.distances.Rows()
	if size == 0 || !u.TryReserve(8*k.cfg.Kernels*size) {
		return nil, nil
	}
	x := new(derived)
	for range k.cfg.Kernels {
		x.k = append(x.k, make([]float64, size))
	}
	m.kernels(x.k, refs, d, s.distances)
	return x, nil
}

// kernels sets k to the kernels of rows and landmarks.
func (m *marks) kernels(k [][]float64, refs []dataset.RowRef, d *dataset.Data, s *rows.Scratch) {
	m.distances.To(k[0], refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, s)
	setKernels(k, m.widths)
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, x round.Derived, lane any) error {
	s := lane.(*scratch)
	if scaling.Run(dst, &u, d, v, &s.scaling) {
		return nil
	}
	switch u.Op {
	case opSums:
		sumFeatures(dst.F64, u.Rows(d), d)
		return nil
	case opSquares:
		s.sumSquares(dst.F64, u.Rows(d), d, num.Float64s(v.Get(varMean)), scaling.Find(v).Scale)
		return nil
	case opStage:
		m, err := k.landmarks(v)
		if err != nil {
			return err
		}
		s.prepare(m, k.cfg.Kernels)
		known, _ := x.(*derived)
		return k.sumStage(dst.F64, u.Rows(d), d, v, known, s)
	}
	return errOperation(u.Op)
}

// sumFeatures adds the number of rows and the sums of their features.
func sumFeatures(dst []float64, refs []dataset.RowRef, d *dataset.Data) {
	dst[0] += float64(len(refs))
	for _, ref := range refs {
		addFeatures(dst[1:], d.Shard(int(ref.Shard)), int(ref.Pos))
	}
}

// sumSquares adds the squared distances of rows from their mean, both scaled unless scale is nil.
func (s *scratch) sumSquares(dst []float64, refs []dataset.RowRef, d *dataset.Data, mean, scale []float64) {
	if s.features == nil {
		s.features = make([]float32, len(mean))
	}
	for _, ref := range refs {
		dst[0] += squaredFrom(mean, scale, d.Shard(int(ref.Shard)), int(ref.Pos), s.features)
	}
}

// errPoint says that a round has a point of another size.
var errPoint = errors.New("ranking: the numbers of weights do not match the landmarks and kernels")

// requestOf reads what a round asks for.
func requestOf(v round.Vars, m, n int) (q request, err error) {
	now, labels := num.Float64s(v.Get(varNow)), num.Float64s(v.Get(varLabels))
	if len(now) != 1+m+n || len(labels) != 0 && len(labels) != m+n {
		return q, errPoint
	}
	q.stage, q.now, q.middles = uint8(now[0]), point{now[1 : 1+m], now[1+m:]}, len(labels) == 0
	if !q.middles {
		q.labels = point{labels[:m], labels[m:]}
	}
	return q, nil
}

// sumStage adds the sums of a stage, a block of rows after the other.
func (k *kernel) sumStage(dst []float64, refs []dataset.RowRef, d *dataset.Data, v round.Vars, known *derived,
	s *scratch) error {
	m := s.marks.distances.Rows()
	q, err := requestOf(v, m, k.cfg.Kernels)
	if err != nil {
		return err
	}
	if q.stage == stageGram {
		clear(s.gram.V)
	}
	for from := 0; from < len(refs); from += blockRows {
		to := min(from+blockRows, len(refs))
		p := s.block.of(to - from)
		for o := range p.k {
			if known != nil {
				p.k[o] = known.k[o][from*m : to*m]
			} else {
				p.k[o] = s.own[o][:(to-from)*m]
			}
		}
		if known == nil {
			s.marks.kernels(p.k, refs[from:to], d, s.distances)
		}
		for i, ref := range refs[from:to] {
			p.low[i], p.high[i] = k.cfg.Scale.Interval(d.Shard(int(ref.Shard)), int(ref.Pos))
		}
		p.add(dst, &q, s.gram)
	}
	if q.stage == stageGram {
		pack(dst[1+m:], s.gram)
	}
	return nil
}

// of cuts the part to some rows.
func (p *part) of(rows int) part {
	n := len(p.k)
	return part{m: p.m, k: p.k, low: p.low[:rows], high: p.high[:rows], l: p.l[:rows], r: p.r[:rows], a: p.a[:rows*p.m],
		b: p.b[:rows*n]}
}

// add adds the sums of a stage; AᵀA to gram.
func (p *part) add(dst []float64, q *request, gram linalg.Matrix) {
	p.setLabels(q)
	switch q.stage {
	case stageGram:
		p.combine(q.now.v)
		dst[0] += p.residual(dst[1:1+p.m], q.now.u)
		linalg.Gram(gram, linalg.Of(p.a, len(p.l), p.m))
	case stageResidual:
		p.combine(q.now.v)
		p.sums(dst, q)
	default:
		p.sums(dst, q)
	}
}
