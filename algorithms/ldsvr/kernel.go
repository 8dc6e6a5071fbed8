package ldsvr

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of rounds (Round.Op).
const (
	opRows  uint8 = iota + 1 // collects the rows from which landmarks are drawn
	opPoint                  // sums losses at a point, and the system there where the shape has room for it
	opFit                    // the exact fit, as an encoded fitted
)

// The values that rounds carry (Var.ID).
const (
	varLandmarks uint16 = iota + 1 // the width (float64), then the landmarks as an encoded shard
	varPoint                       // β and b (float64)
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
	_ round.Demanding    = (*kernel)(nil)
)

// kernel is the workers' half. It is shared by lanes.
type kernel struct {
	job *learner.Job[Config]

	mu        sync.Mutex // held while the landmarks are read: other lanes wait
	landmarks *landmarks // those of a job are always the same
}

// landmarks are what varLandmarks says.
type landmarks struct {
	from  *rows.Distances
	width float64
}

func newKernel(j *learner.Job[Config]) *kernel { return &kernel{job: j} }

// Demand implements round.Demanding: the matrices of an exact fit.
func (k *kernel) Demand() (bytes int64, what string) {
	if k.job.Config.Landmarks > 0 {
		return 0, ""
	}
	n := int64(min(k.job.Manifest.Rows, 1<<27)) // the product of more would be too large a number
	return 2 * 8 * n * n, fmt.Sprintf("an exact fit needs two matrices of %d×%d numbers; give landmarks, such as 512, "+
		"to avoid them", n, n)
}

// scratch is the working memory of a lane.
type scratch struct {
	scaling scaling.Scratch

	rows    *rows.Scratch // made for the first unit with landmarks
	kernels []float64     // kernelRows×landmarks
	scaled  []float64     // the same
	gram    []float64     // landmarks×landmarks
	outputs []float64     // kernelRows×labels
	right   []float64     // kernelRows×(labels+1): a·z, a
	z, e    []float64     // labels
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	c := k.job.Manifest.Labels
	return &scratch{
		outputs: make([]float64, kernelRows*c), right: make([]float64, kernelRows*(c+1)), z: make([]float64, c),
		e: make([]float64, c),
	}
}

// size makes room for landmarks.
func (s *scratch) size(l *landmarks) {
	if s.rows != nil {
		return
	}
	n := l.from.Rows()
	s.rows, s.kernels, s.scaled, s.gram = l.from.NewScratch(), make([]float64, kernelRows*n),
		make([]float64, kernelRows*n), make([]float64, n*n)
}

// read returns the landmarks of a round's variables.
func (k *kernel) read(v round.Vars) (*landmarks, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.landmarks != nil {
		return k.landmarks, nil
	}
	b := v.Get(varLandmarks)
	if len(b) < 8 {
		return nil, fmt.Errorf("%s: there are no landmarks", Name)
	}
	kept, err := rows.Decode(b[8:], k.job.Manifest, k.job.Config.kept(k.job.Seed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	x := scaling.Find(v)
	k.landmarks = &landmarks{rows.NewDistances(kept, x.Scale), num.Float64s(b[:8])[0]}
	return k.landmarks, nil
}

// kernels is a derived value: those of a unit's rows to the landmarks, row after row.
type kernels struct {
	round.Unpooled
	values []float64
}

// Bytes implements round.Derived.
func (x *kernels) Bytes() int { return 8 * len(x.values) }

// Derive implements round.ReduceKernel: the kernels do not depend on the point.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, working any) (round.Derived, error) {
	l, err := k.read(v)
	if err != nil {
		return nil, err
	}
	refs, n := u.Rows(d), l.from.Rows()
	if u.Op != opPoint || !u.TryReserve(8*len(refs)*n) {
		return nil, nil
	}
	s := working.(*scratch)
	s.size(l)
	x := &kernels{values: make([]float64, len(refs)*n)}
	for at := 0; at < len(refs); at += kernelRows {
		block := refs[at:min(at+kernelRows, len(refs))]
		l.to(x.values[at*n:(at+len(block))*n], block, d, s)
	}
	return x, nil
}

// to sets dst to the kernels of rows to the landmarks.
func (l *landmarks) to(dst []float64, refs []dataset.RowRef, d *dataset.Data, s *scratch) {
	l.from.To(dst, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, s.rows)
	rows.Gaussian(dst, gaussian(l.width))
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	working any) error {
	s := working.(*scratch)
	if scaling.Run(dst, &u, d, v, &s.scaling) {
		return nil
	}
	if u.Op != opPoint {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	l, err := k.read(v)
	if err != nil {
		return err
	}
	point, n, labels := num.Float64s(v.Get(varPoint)), l.from.Rows(), k.job.Manifest.Labels
	if len(point) != (n+1)*labels {
		return fmt.Errorf("%s: got a point of %d values for %d landmarks", Name, len(point), n)
	}
	s.size(l)
	x := unitSums{kernel: k, scratch: s, head: dst.F64[:headSums], point: point, landmarks: n}
	if len(dst.F64) > headSums {
		x.system = systemOf(dst.F64[headSums:], n, labels)
		clear(s.gram)
	}
	have, _ := derived.(*kernels)
	refs := u.Rows(d)
	for at := 0; at < len(refs); at += kernelRows {
		block := refs[at:min(at+kernelRows, len(refs))]
		values := s.kernels[:len(block)*n]
		if have != nil {
			values = have.values[at*n:][:len(block)*n]
		} else {
			l.to(values, block, d, s)
		}
		x.add(values, block, d)
	}
	x.end()
	return nil
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	c, seed, m := k.job.Config, k.job.Seed, k.job.Manifest
	switch u.Op {
	case opRows:
		return rows.Collect(u, d, c.collected(seed)), nil
	case opFit:
		r := rows.Gather(u, d, &rows.Wanted{Labels: true})
		if r.N == 0 {
			return nil, nil
		}
		x := scaling.Find(v)
		fit, err := fitExact(ctx, c, seed, r, x.Scale)
		if err != nil {
			return nil, err
		}
		return fields.Append(nil, fitFormat, func(l *fields.List) { fit.list(l, m, c.kept(seed)) })
	}
	return nil, fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
}

// unitSums adds the rows of a unit to its sums.
type unitSums struct {
	*kernel
	*scratch
	head      []float64
	system    *systemSums // nil: only the head
	point     []float64
	landmarks int
}

// add adds rows with their kernels.
func (x *unitSums) add(values []float64, refs []dataset.RowRef, d *dataset.Data) {
	labels, n := len(x.z), len(refs)
	outputs, right := x.outputs[:n*labels], x.right[:n*(labels+1)]
	for i := range n {
		copy(outputs[i*labels:], x.point[x.landmarks*labels:])
	}
	k := linalg.Of(values, n, x.landmarks)
	linalg.AddProduct(linalg.Of(outputs, n, labels), k, linalg.Of(x.point[:x.landmarks*labels], x.landmarks, labels))
	weighted := 0
	for i, ref := range refs {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		label, weight := rows.Label(pos), rows.WeightOf(pos)
		f, r := outputs[i*labels:(i+1)*labels], right[i*(labels+1):(i+1)*(labels+1)]
		logits(x.z, label, x.job.Config.Clamp)
		loss, a := x.job.Config.weigh(x.e, x.z, f, weight)
		shares(f, f)
		x.head[sumRows] += weight
		x.head[sumLoss] += loss
		x.head[sumDivergence] += float64(weight * divergence(label, f))
		for c, z := range x.z {
			r[c] = a * z
		}
		if r[labels] = a; a > 0 && x.system != nil {
			x.scale(weighted, values[i*x.landmarks:(i+1)*x.landmarks], a)
			weighted++
		}
	}
	if x.system != nil {
		x.addSystem(k, right, weighted)
	}
}

// scale sets row i of scaled to √a·k.
func (x *unitSums) scale(i int, k []float64, a float64) {
	root, to := math.Sqrt(a), x.scaled[i*x.landmarks:(i+1)*x.landmarks]
	for j, v := range k {
		to[j] = root * v
	}
}

// addSystem adds rows to the system; so many of them have weights.
func (x *unitSums) addSystem(k linalg.Matrix, right []float64, weighted int) {
	for i := range k.Rows {
		for c := range x.system.bias {
			x.system.bias[c] += right[i*len(x.system.bias)+c]
		}
	}
	columns := len(x.system.bias)
	linalg.AddProduct(linalg.Of(x.system.right, x.landmarks, columns), k.T(), linalg.Of(right, k.Rows, columns))
	linalg.Gram(linalg.Of(x.gram, x.landmarks, x.landmarks), linalg.Of(x.scaled[:weighted*x.landmarks], weighted,
		x.landmarks))
}

// end packs the Gram matrix.
func (x *unitSums) end() {
	if x.system == nil {
		return
	}
	at := 0
	for i := range x.landmarks {
		at += copy(x.system.gram[at:], x.gram[i*x.landmarks:][:i+1])
	}
}
