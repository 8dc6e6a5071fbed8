package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Loss is what an algorithm's kernel adds to the rounds of a Descent.
type Loss interface {
	// Gradients sets df (len(samples)×outputs) to the derivatives of each sample's loss by
	// the outputs f (the same shape), and appends each sample's loss to losses.
	Gradients(df, f []float32, samples []Sample, v *Values, losses []float64) []float64
	// Validation returns the loss of a sample with outputs f, as validation measures it.
	Validation(f []float32, x *Sample, v *Values) float64
}

// Values are the vectors and the scaling of a round as a kernel reads them.
type Values struct {
	Weights
	Own []Vector // the algorithm's own: all but Θ
}

// Read sets x to the vectors and the scaling that a round carries.
func (x *Values) Read(v round.Vars) { x.read(v, varVectors) }

func (x *Values) read(v round.Vars, first uint16) {
	x.Theta, x.Version = num.Float32s(v.Get(first)), v.Version(first)
	x.Input = scaling.Find(v)
	x.Own = x.Own[:0]
	for i := range v {
		if id := v[i].ID; id > first && id < first+maxVectors {
			x.Own = append(x.Own, Vector{num.Float32s(v[i].Data), v[i].Version})
		}
	}
}

// Kernel is the workers' half of a Descent.
type Kernel struct {
	Function Function
	Outputs  int
	Draws    Sampler
}

// Scratch is the working memory of one lane.
type Scratch struct {
	Block  int       // samples that go through the function at once
	Batch  []Sample  // of a mini-batch, or a block of other rows
	F, DF  []float32 // Block×outputs: outputs and their derivatives
	Space  Workspace
	Values Values

	rows    []uint32 // positions among a unit's rows
	passes  passes
	losses  []float64 // of the rows drawn for a step, or of the unit's validation rows
	scaling scaling.Scratch
}

// NewScratch makes the working memory of a lane that takes blocks of so many samples through f, or of
// fewer where f is Limited. F and DF have room for the whole block.
func NewScratch(f Function, outputs, block int) Scratch {
	most := block
	if l, ok := f.(Limited); ok {
		most = min(block, l.MostRows())
	}
	return Scratch{Block: most, F: make([]float32, block*outputs), DF: make([]float32, block*outputs),
		Space: f.NewWorkspace()}
}

// Run computes a unit of a Descent's round, of its scaling included; it reports false, and
// does nothing, where the round is the algorithm's own.
func (k *Kernel) Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, l Loss, s *Scratch) bool {
	if scaling.Run(dst, u, d, v, &s.scaling) {
		return true
	}
	switch u.Op {
	case OpStep:
		s.Values.Read(v)
		k.step(dst, u, d, l, s)
	case OpValidate:
		s.Values.Read(v)
		k.validate(dst, u, d, l, s)
	case OpCompare:
		s.Values.Read(v)
		k.validate(dst, u, d, l, s)
		s.Values.read(v, varReference)
		k.compare(dst, u, d, l, s)
	default:
		return false
	}
	return true
}

// step computes the unit's part of the gradient on mini-batch u.Steps[0]: F64
// holds the rows drawn and the sum of their losses, both weighted, the rest is the
// feature function's. Rows are taken in the order of drawing.
func (k *Kernel) step(dst *round.Partial, u *round.Task, d *dataset.Data, l Loss, s *Scratch) {
	refs, w, step := u.Rows(d), &s.Values.Weights, u.Steps[0]
	if p, ok := k.Draws.(Batches); ok {
		s.rows = p.draw(s.rows[:0], u, len(refs), step, &s.passes)
	} else {
		s.rows = k.Draws.Draw(s.rows[:0], u, len(refs), step)
	}
	s.Batch = Gather(s.Batch[:0], s.rows, refs, d)
	k.Function.Begin(dst, u, s.Batch, s.Block, s.Space)
	s.losses = s.losses[:0]
	for rest := s.Batch; len(rest) > 0; {
		n := min(s.Block, len(rest))
		f, df := s.F[:n*k.Outputs], s.DF[:n*k.Outputs]
		k.Function.Forward(f, rest[:n], w, step, s.Space)
		s.losses = l.Gradients(df, f, rest[:n], &s.Values, s.losses)
		if d.Manifest.HasWeights {
			weigh(df, s.losses[len(s.losses)-n:], rest[:n])
		}
		k.Function.Backward(dst, df, rest[:n], w, s.Space)
		rest = rest[n:]
	}
	dst.F64[0], dst.F64[1] = weightOf(s.Batch), sumLosses(s.losses)
}

// weigh multiplies the derivatives (len(samples)×outputs) and the losses of samples by their weights.
func weigh(df []float32, losses []float64, samples []Sample) {
	outputs := len(df) / len(samples)
	for i := range samples {
		w := samples[i].Weight()
		losses[i] = float64(w * losses[i])
		for c := range outputs {
			df[i*outputs+c] = float32(w * float64(df[i*outputs+c]))
		}
	}
}

// weightOf returns the sum of the weights of samples: their number if they have none.
func weightOf(samples []Sample) (sum float64) {
	for i := range samples {
		sum += samples[i].Weight()
	}
	return sum
}

// lossRows is how many rows' losses are summed before they are added to the unit's: a
// matter of its last bit, which does not depend on the size of blocks.
const lossRows = 32

func sumLosses(losses []float64) (sum float64) {
	for from := 0; from < len(losses); from += lossRows {
		part := 0.0
		for _, x := range losses[from:min(from+lossRows, len(losses))] {
			part += x
		}
		sum += part
	}
	return sum
}

// validate sums the losses of the unit's rows: F64 holds the rows and the sum, both weighted. s.losses is
// left with each row's.
func (k *Kernel) validate(dst *round.Partial, u *round.Task, d *dataset.Data, l Loss, s *Scratch) {
	s.losses = s.losses[:0]
	k.eachLoss(u, d, l, s, func(_ int, loss, weight float64) {
		s.losses = append(s.losses, loss)
		dst.F64[0] += weight
		dst.F64[1] += float64(weight * loss)
	})
}

// compare adds three sums to the sums of validate, the first two weighted. The terms of the first are the losses of the
// reference, under s.Values, less the present losses. The terms of the second are the squares of these differences, and
// the terms of the third are the squares of the weights.
func (k *Kernel) compare(dst *round.Partial, u *round.Task, d *dataset.Data, l Loss, s *Scratch) {
	k.eachLoss(u, d, l, s, func(i int, loss, weight float64) {
		gain := loss - s.losses[i]
		dst.F64[2] += float64(weight * gain)
		dst.F64[3] += float64(weight * float64(gain*gain))
		dst.F64[4] += float64(weight * weight)
	})
}

// eachLoss calls do with the loss and the weight of every row of the unit.
func (k *Kernel) eachLoss(u *round.Task, d *dataset.Data, l Loss, s *Scratch, do func(i int, loss, weight float64)) {
	k.EachRow(u, d, s, func(i int, f []float32, x *Sample) { do(i, l.Validation(f, x, &s.Values), x.Weight()) })
}

// EachRow calls do with the outputs of every row of the unit, under s.Values. The outputs and the row
// are valid until do returns.
func (k *Kernel) EachRow(u *round.Task, d *dataset.Data, s *Scratch, do func(i int, f []float32, x *Sample)) {
	refs := u.Rows(d)
	for from := 0; from < len(refs); from += s.Block {
		s.Batch = s.Batch[:0]
		for _, ref := range refs[from:min(from+s.Block, len(refs))] {
			s.Batch = append(s.Batch, SampleOf(d.Shard(int(ref.Shard)), int(ref.Pos)))
		}
		k.Function.Predict(s.F, s.Batch, &s.Values.Weights, s.Space)
		for i := range s.Batch {
			do(from+i, s.F[i*k.Outputs:(i+1)*k.Outputs], &s.Batch[i])
		}
	}
}

// Sampler draws mini-batches.
type Sampler interface {
	// Draw appends to dst the positions, among the n training rows of unit u, of
	// the unit's share of mini-batch step, in the order of drawing.
	Draw(dst []uint32, u *round.Task, n int, step uint64) []uint32
}

// passes keeps the permutation of each unit. It serves many steps.
type passes struct{ ofUnit []pass }

type pass struct {
	key    num.Key
	number uint64
	unit   int
	perm   num.Permutation
}

// maxKept bounds the permutations that are kept.
const maxKept = 1024

// permutation returns the permutation of n rows in pass number of a unit, which is valid until the next call.
func (p *passes) permutation(key num.Key, number uint64, unit, n int) *num.Permutation {
	at := unit % maxKept
	if at >= len(p.ofUnit) {
		p.ofUnit = append(p.ofUnit, make([]pass, at+1-len(p.ofUnit))...)
	}
	o := &p.ofUnit[at]
	if o.unit != unit || o.key != key || o.number != number || o.perm.Len() != uint64(n) {
		*o = pass{key: key, number: number, unit: unit, perm: num.NewPermutation(key, number, uint32(unit), uint64(n))}
	}
	return &o.perm
}

// Batches draw by counter-based permutations (design section 8.3): a unit
// walks through its n rows in the order of permutation (pass, unit), b_u rows a
// step, and takes the permutation of its next pass when it has seen them all.
type Batches struct {
	Key  num.Key
	Size int // rows of a mini-batch, over all units
}

// Draw implements Sampler.
func (p Batches) Draw(dst []uint32, u *round.Task, n int, step uint64) []uint32 {
	return p.draw(dst, u, n, step, new(passes))
}

func (p Batches) draw(dst []uint32, u *round.Task, n int, step uint64, kept *passes) []uint32 {
	share := algorithms.BatchShare(u.ID, u.Of, p.Size)
	if n == 0 || share == 0 {
		return dst
	}
	at := step * uint64(share)
	pass, offset := at/uint64(n), at%uint64(n)
	dst = slices.Grow(dst, share)
	for share > 0 {
		perm := kept.permutation(p.Key, pass, u.ID, n)
		k := min(share, n-int(offset))
		dst = perm.Append(dst, offset, k)
		share -= k
		pass, offset = pass+1, 0
	}
	return dst
}

// count adds to counts, of the training rows of unit u, how often each is drawn in the
// unit's share of mini-batches steps. It takes whole passes over the rows at once, and of one
// that is cut the rows that are fewer: those drawn or those left out.
func (p Batches) count(counts []uint32, u *round.Task, steps [2]uint64) {
	n, share := uint64(len(counts)), uint64(algorithms.BatchShare(u.ID, u.Of, p.Size))
	if n == 0 || share == 0 {
		return
	}
	end := steps[1] * share
	for at := steps[0] * share; at < end; {
		pass, from := at/n, at%n
		to := min(n, from+end-at)
		at += to - from
		if to-from == n {
			addAll(counts, 1)
			continue
		}
		perm := num.NewPermutation(p.Key, pass, uint32(u.ID), n)
		if to-from <= n/2 {
			addAt(counts, &perm, from, to, 1)
			continue
		}
		addAll(counts, 1)
		addAt(counts, &perm, 0, from, ^uint32(0)) // less 1
		addAt(counts, &perm, to, n, ^uint32(0))
	}
}

func addAll(counts []uint32, x uint32) {
	for i := range counts {
		counts[i] += x
	}
}

// addAt adds x to the counts of the numbers at the positions [from, to).
func addAt(counts []uint32, perm *num.Permutation, from, to uint64, x uint32) {
	for i := from; i < to; i++ {
		counts[perm.At(i)] += x
	}
}

// Window is the rows that a unit draws in some consecutive mini-batches.
type Window struct {
	Rows    []uint32  // the distinct positions drawn, ascending
	Weights []float32 // how often each was
	counts  []uint32
}

// Count sets w to the draws of the unit's mini-batches u.Steps from its n training rows. It
// uses w's memory again.
func (w *Window) Count(draws Sampler, u *round.Task, n int) {
	w.counts = slices.Grow(w.counts[:0], n)[:n]
	clear(w.counts)
	if p, ok := draws.(Batches); ok {
		p.count(w.counts, u, u.Steps)
	} else {
		for step := u.Steps[0]; step < u.Steps[1]; step++ {
			w.Rows = draws.Draw(w.Rows[:0], u, n, step)
			for _, row := range w.Rows {
				w.counts[row]++
			}
		}
	}
	w.Rows, w.Weights = w.Rows[:0], w.Weights[:0]
	for row, count := range w.counts {
		if count > 0 {
			w.Rows = append(w.Rows, uint32(row))
			w.Weights = append(w.Weights, float32(count))
		}
	}
}
