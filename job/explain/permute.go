package explain

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

// Permuting says how permutation importance is computed.
type Permuting struct {
	Repeats int
	Seed    uint64
	Samples int // at most so many samples, which are drawn; 0: all
	// Progress, if set, is called with the number of steps that are done: first blocks of samples, then permutations. It
	// may be called from several goroutines.
	Progress func(done, of int)
}

// Mean is a mean over repeats.
type Mean struct {
	Mean float64 `json:"mean"`
	// StandardError is the standard deviation over repeats, divided by the root of their number. It is absent if there
	// is one repeat.
	StandardError *float64 `json:"standard_error,omitempty"`
}

// Permuted says how much the losses of a model rise if the values of a feature are permuted (Breiman 2001).
type Permuted struct {
	Samples int    `json:"samples"` // that were used
	Of      int    `json:"of"`      // that the file has
	Repeats int    `json:"repeats"`
	Seed    uint64 `json:"seed"`
	// KL is the mean K-L divergence without permutations, in nats. It is absent if the model predicts numbers or
	// targets.
	KL  *float64 `json:"kl,omitempty"`
	MAE float64  `json:"mae"` // mean absolute error over samples and labels; of targets, in fractions of their bounds
	// LabelMAE is the mean absolute error of each label, or of the number.
	LabelMAE []float64 `json:"label_mae"`
	// NumberMAE is the mean absolute error of the expected number of ordinal labels. It is absent for other labels.
	NumberMAE *float64 `json:"number_mae,omitempty"`
	// Features are in the order of the model. The features of a category are one feature, and permuted together.
	Features []FeaturePermuted `json:"features"`
}

// FeaturePermuted says how much the losses rise if the values of a feature are permuted.
type FeaturePermuted struct {
	Feature  string `json:"feature"`
	KL       *Mean  `json:"kl,omitempty"`
	MAE      Mean   `json:"mae"`
	LabelMAE []Mean `json:"label_mae"`
	// NumberMAE is absent unless labels are ordinal.
	NumberMAE *Mean `json:"number_mae,omitempty"`
}

// Rise returns the mean rise of the K-L divergence, or of the mean absolute error if there is no divergence.
func (f *FeaturePermuted) Rise() float64 {
	if f.KL != nil {
		return f.KL.Mean
	}
	return f.MAE.Mean
}

// permuter has the samples and their losses without permutations.
type permuter struct {
	Permuting
	ctx    context.Context
	model  algorithms.Model
	plan   *measures.Plan
	blocks []*dataset.Rows
	first  []int // number of the first sample of each block
	rows   int
	groups []group
	width  int // numbers of a prediction
	base   []float64
	scale  []float64 // by label: 1 over what an error is divided by in MAE
}

// group is one feature, or the features of a category.
type group struct {
	name     string
	features []uint32 // ascending
}

// groupsOf returns the groups of features of a model, in the order of their first features.
func groupsOf(m *predict.Model) (all []group) {
	category := make(map[string]string) // by name of a feature
	for _, c := range m.Provenance.Reading.Categories {
		for _, level := range c.Levels {
			category[c.Name+"="+level] = c.Name
		}
	}
	at := make(map[string]int)
	for f, name := range FeatureNames(m) {
		own, ok := category[name]
		if i, known := at[own]; ok && known {
			all[i].features = append(all[i].features, uint32(f))
			continue
		}
		if ok {
			at[own], name = len(all), own
		}
		all = append(all, group{name, []uint32{uint32(f)}})
	}
	return all
}

// losses is the number of losses of a sample: K-L, MAE, the error of each label, and the error of the expected number.
func (p *permuter) losses() int { return 3 + p.width }

// Permute computes the permutation importance of the features on the samples of src.
func (o Permuting) Permute(m *predict.Model, src dataset.Source, reading importer.Options) (*Permuted, error) {
	t, err := m.TypeOf(src.Info())
	if err != nil {
		return nil, err
	}
	_, labels := m.Shape()
	p := &permuter{Permuting: o, ctx: reading.Context, groups: groupsOf(m), width: m.Output().Width(labels)}
	if p.plan, err = pipeline.PlanOf(m.File.Algorithm, labels, t); err != nil {
		return nil, err
	}
	if p.model, err = m.InUnits(); err != nil {
		return nil, err
	}
	bounds, err := m.TargetBounds()
	if err != nil {
		return nil, err
	}
	p.plan.Bounds = bounds
	for c := range p.width {
		by := 1.0
		if bounds != nil {
			by = 1 / (bounds.High[c] - bounds.Low[c])
		}
		p.scale = append(p.scale, by)
	}
	found := &Permuted{Repeats: o.Repeats, Seed: o.Seed}
	if found.Of, err = p.read(src, reading); err != nil {
		return nil, err
	}
	found.Samples = p.rows
	if p.rows < 2 {
		return nil, errtext.Errorf(errtext.WrongRequest, "%s: a permutation needs at least 2 samples, got %s",
			src.Info().File, units.Count(p.rows))
	}
	p.base = make([]float64, p.rows*p.losses())
	p.inLanes(len(p.blocks), m.Threads, func(l *permuteLane, b int) {
		l.forecast(p.blocks[b])
		for i := range p.blocks[b].N {
			own := p.base[(p.first[b]+i)*p.losses():][:p.losses()]
			l.measure(own, p.blocks[b], i, l.predicted[i*p.width:][:p.width])
		}
	})
	means := make([]float64, p.losses())
	for i, v := range p.base {
		means[i%p.losses()] += v / float64(p.rows)
	}
	if p.hasKL() {
		found.KL = &means[0]
	}
	found.MAE, found.LabelMAE = means[1], means[2:2+p.width]
	if p.hasNumber() {
		found.NumberMAE = &means[2+p.width]
	}
	rises, err := p.each(m.Threads)
	if err != nil {
		return nil, err
	}
	for i := range p.groups {
		found.Features = append(found.Features, p.summary(p.groups[i].name, rises[i]))
	}
	return found, nil
}

// hasKL reports whether predictions are distributions.
func (p *permuter) hasKL() bool { return !p.plan.Number && p.plan.Bounds == nil }

// hasNumber reports whether distributions have an expected number.
func (p *permuter) hasNumber() bool { return p.hasKL() && p.plan.Type.Scale != nil }

// read reads the samples, or the drawn ones, and returns the number of all.
func (p *permuter) read(src dataset.Source, o importer.Options) (all int, err error) {
	drawn := func(int) bool { return true }
	if p.Samples > 0 {
		n, err := countRows(src, o)
		if err != nil {
			return 0, err
		}
		if n > p.Samples {
			order := num.NewPermutation(num.NewKey(p.Seed, "explain/samples"), 0, 0, uint64(n))
			drawn = func(i int) bool { return i >= n || order.At(uint64(i)) < uint64(p.Samples) }
		}
	}
	err = importer.Blocks(src, blockRows, o, func(rows *dataset.Rows, _ []string) error {
		if i := gap(rows); i >= 0 {
			return errtext.Errorf(errtext.WrongRequest, "%s: row %d: a probability is missing, so the losses are not known; "+
				"remove such samples from the file", src.Info().File, rows.Row[i])
		}
		var kept []int
		for i := range rows.N {
			if drawn(all + i) {
				kept = append(kept, i)
			}
		}
		all += rows.N
		if len(kept) == 0 {
			return nil
		}
		if len(kept) < rows.N {
			rows = subset(rows, kept)
		}
		p.blocks, p.first = append(p.blocks, rows), append(p.first, p.rows)
		p.rows += rows.N
		return nil
	})
	return all, err
}

// countRows returns the number of samples that are not left out. It reads the file if its head does not say the number.
func countRows(src dataset.Source, o importer.Options) (n int, err error) {
	if n = src.Info().Rows; n >= 0 {
		return n, nil
	}
	n = 0
	err = src.Scan(func(r *dataset.Row) error {
		if !r.LeftOut {
			n++
		}
		if n%4096 == 0 {
			return o.Report("count", n, -1, r.File)
		}
		return nil
	})
	return n, err
}

// gap returns the first sample with a missing degree; -1: there is none.
func gap(r *dataset.Rows) int {
	if r.Incomplete {
		for i := range r.N {
			if dataset.CountMissing(r.Label(i)) > 0 {
				return i
			}
		}
	}
	return -1
}

// subset returns some samples of a block.
func subset(r *dataset.Rows, kept []int) *dataset.Rows {
	s := &dataset.Rows{Features: r.Features, Labels: r.Labels, Sparse: r.Sparse, Incomplete: r.Incomplete}
	if r.Sparse {
		s.Start = append(s.Start, 0)
	}
	for _, i := range kept {
		s.N++
		s.Row, s.D = append(s.Row, r.Row[i]), append(s.D, r.Label(i)...)
		if r.Value != nil {
			s.Value = append(s.Value, r.Value[i])
		}
		if !r.Sparse {
			s.X = append(s.X, r.Dense(i)...)
			continue
		}
		columns, values := r.NonZeros(i)
		s.X, s.Index = append(s.X, values...), append(s.Index, columns...)
		s.Start = append(s.Start, uint32(len(s.X)))
	}
	return s
}

// permuteLane is the memory of a thread.
type permuteLane struct {
	*permuter
	scratch   any
	refs      []dataset.RowRef
	predicted []float32    // of a block
	changed   dataset.Rows // samples of a block with other values of a feature
	at        []int        // their numbers in the block
	columns   [][]float32  // by feature of the group: its values, of all samples
	own       []float64    // losses of a sample
	d, q      []float64    // labels
}

func (p *permuter) newLane() *permuteLane {
	return &permuteLane{permuter: p, scratch: p.model.NewScratch(), refs: refsOf(blockRows),
		predicted: make([]float32, blockRows*p.width), own: make([]float64, p.losses()),
		d: make([]float64, p.width), q: make([]float64, p.width)}
}

// forecast sets l.predicted.
func (l *permuteLane) forecast(rows *dataset.Rows) {
	l.model.Predict(l.predicted[:rows.N*l.width], l.refs[:rows.N], func(uint32) *dataset.Rows { return rows }, l.scratch)
}

// measure sets dst to the losses of sample i of rows.
func (l *permuteLane) measure(dst []float64, rows *dataset.Rows, i int, predicted []float32) {
	dst[0], dst[1] = 0, 0
	if l.plan.Number {
		dst[2] = math.Abs(l.plan.Type.Scale.Number(rows, i) - float64(predicted[0]))
		dst[1] = dst[2]
		return
	}
	for c, v := range rows.Label(i) {
		l.d[c], l.q[c] = float64(v), float64(predicted[c])
		dst[2+c] = math.Abs(l.d[c] - l.q[c])
		dst[1] += float64(dst[2+c] * l.scale[c])
	}
	dst[1] /= float64(l.width)
	if l.hasKL() {
		dst[0] = measures.KL(l.d, l.q)
	}
	if l.hasNumber() {
		s := l.plan.Type.Scale
		dst[2+l.width] = math.Abs(s.Number(rows, i) - s.Expected(predicted))
	}
}

// each computes, for each group and repeat, the means of how much the losses rise. Its first index is the group. Which
// thread computes which permutation does not matter.
func (p *permuter) each(threads int) (rises [][][]float64, err error) {
	rises = make([][][]float64, len(p.groups))
	for i := range rises {
		rises[i] = make([][]float64, p.Repeats)
	}
	all := len(p.groups) * p.Repeats
	p.inLanes(all, threads, func(l *permuteLane, i int) {
		rises[i/p.Repeats][i%p.Repeats] = l.rise(&p.groups[i/p.Repeats], i%p.Repeats)
	})
	return rises, ended(p.ctx)
}

// inLanes calls do for 0 to n - 1 on threads, until the context ends, and tells the progress.
func (p *permuter) inLanes(n, threads int, do func(l *permuteLane, i int)) {
	var next, done atomic.Int64
	var lanes sync.WaitGroup
	for range max(1, min(threads, n)) {
		lanes.Go(func() {
			l := p.newLane()
			for i := int(next.Add(1)) - 1; i < n && ended(p.ctx) == nil; i = int(next.Add(1)) - 1 {
				do(l, i)
				if d := int(done.Add(1)); p.Progress != nil {
					p.Progress(d, n)
				}
			}
		})
	}
	lanes.Wait()
}

// rise permutes a group of features, and returns how much the losses rise.
func (l *permuteLane) rise(g *group, repeat int) []float64 {
	for len(l.columns) < len(g.features) {
		l.columns = append(l.columns, make([]float32, 0, l.rows))
	}
	varies := false
	for k, f := range g.features {
		column := l.columns[k][:0]
		for _, rows := range l.blocks {
			for i := range rows.N {
				column = append(column, value(rows, i, f))
				varies = varies || column[len(column)-1] != column[0]
			}
		}
		l.columns[k] = column
	}
	rise := make([]float64, l.losses())
	if !varies {
		return rise
	}
	order := num.NewPermutation(num.NewKey(l.Seed, "explain/permutation"), uint64(repeat), g.features[0],
		uint64(l.rows))
	for b, rows := range l.blocks {
		if ended(l.ctx) != nil {
			return rise
		}
		l.change(rows, l.first[b], g.features, &order)
		if len(l.at) == 0 {
			continue
		}
		l.forecast(&l.changed)
		for j, i := range l.at {
			l.measure(l.own, rows, i, l.predicted[j*l.width:][:l.width])
			for k, v := range l.base[(l.first[b]+i)*l.losses():][:l.losses()] {
				rise[k] += l.own[k] - v
			}
		}
	}
	for k := range rise {
		rise[k] /= float64(l.rows)
	}
	return rise
}

// change sets l.changed to the samples of a block whose values of the features change, and l.at to their numbers.
func (l *permuteLane) change(rows *dataset.Rows, first int, features []uint32, order *num.Permutation) {
	r := &l.changed
	*r = dataset.Rows{Features: rows.Features, Sparse: rows.Sparse, X: r.X[:0], Index: r.Index[:0],
		Start: append(r.Start[:0], 0)}
	l.at = l.at[:0]
	for i := range rows.N {
		from, changes := order.At(uint64(first+i)), false
		for k := range features {
			changes = changes || l.columns[k][from] != l.columns[k][first+i]
		}
		if !changes {
			continue
		}
		l.at = append(l.at, i)
		r.N++
		if !rows.Sparse {
			at := len(r.X)
			r.X = append(r.X, rows.Dense(i)...)
			for k, f := range features {
				r.X[at+int(f)] = l.columns[k][from]
			}
			continue
		}
		next := 0 // of the features
		put := func(before uint32) {
			for ; next < len(features) && features[next] < before; next++ {
				if v := l.columns[next][from]; v != 0 {
					r.Index, r.X = append(r.Index, features[next]), append(r.X, v)
				}
			}
		}
		columns, values := rows.NonZeros(i)
		for j, c := range columns {
			if put(c); next == len(features) || features[next] != c {
				r.Index, r.X = append(r.Index, c), append(r.X, values[j])
			}
		}
		put(math.MaxUint32)
		r.Start = append(r.Start, uint32(len(r.X)))
	}
	if !rows.Sparse {
		r.Start = nil
	}
}

// summary returns the means over repeats.
func (p *permuter) summary(name string, rises [][]float64) FeaturePermuted {
	mean := func(k int) Mean {
		sum, n := 0.0, float64(len(rises))
		for _, r := range rises {
			sum += r[k]
		}
		m := Mean{Mean: sum / n}
		if n > 1 {
			squares := 0.0
			for _, r := range rises {
				d := r[k] - m.Mean
				squares += float64(d * d)
			}
			e := math.Sqrt(squares / (n - 1) / n)
			m.StandardError = &e
		}
		return m
	}
	x := FeaturePermuted{Feature: name, MAE: mean(1)}
	if p.hasKL() {
		kl := mean(0)
		x.KL = &kl
	}
	for c := range p.width {
		x.LabelMAE = append(x.LabelMAE, mean(2+c))
	}
	if p.hasNumber() {
		number := mean(2 + p.width)
		x.NumberMAE = &number
	}
	return x
}
