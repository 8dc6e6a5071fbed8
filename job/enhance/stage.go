package enhance

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The label propagation of the paper is D ← αPD + (1-α)L, whose limit is the solution of (I - αP)D = (1-α)L. The
// eigenvalues of P are in [-1, 1]. So Chebyshev's semi-iteration reaches the limit, to an error of 2^-50, in 27 passes
// instead of 50.
const (
	alpha        = 0.5
	propagations = 27
)

// Stage is the leader's half of an enhancement: the rounds that come before the rounds of an algorithm.
type Stage struct {
	of       *round.Enhance
	manifest *dataset.Manifest
	roles    dataset.Roles // of the samples that are enhanced

	logical  []byte    // by original row number, then by label; nil until they are known
	scale    []float64 // lp: 1/√ of the sum of each sample's affinities, 0 if that is 0
	point    []float64 // lp: the scores after so many passes, by label, then by sample
	before   []float64 // lp: the scores one pass earlier
	passes   uint64    // of lp and km, with the first
	omega    float64   // lp: the weight of the last pass
	width    float64   // km: the mean distance
	enhanced []float32 // the distributions, by original row number; nil until they are known

	vars [1]round.Var
}

// NewStage returns the stage of an enhancement that Check accepts, of the samples of some roles.
func NewStage(e *round.Enhance, m *dataset.Manifest, roles dataset.Roles) *Stage {
	return &Stage{of: e, manifest: m, roles: roles}
}

// Ended reports whether the last round has ended.
func (s *Stage) Ended() bool { return s == nil || s.enhanced != nil }

// Distributions returns the distributions, by original row number, once the stage has ended.
func (s *Stage) Distributions() []float32 { return s.enhanced }

// Variable is what Kernel.Data needs.
func (s *Stage) Variable() round.Var {
	return round.Var{ID: varEnhanced, Version: 1, Data: num.Bytes32(s.enhanced)}
}

// Passes returns how many passes are done, and how many there are.
func (s *Stage) Passes() (done, of int) {
	switch s.of.Method {
	case LabelPropagation:
		return int(s.passes), propagations + 1
	case KernelDistance:
		return int(s.passes), 2
	}
	return 0, 0
}

// Phase says in words how far the stage is.
func (s *Stage) Phase() string {
	if done, of := s.Passes(); of > 0 && s.logical != nil {
		return fmt.Sprintf("label enhancement, pass %d of %d", min(done+1, of), of)
	}
	return "label enhancement"
}

// count returns the number of samples, once their logical labels are known.
func (s *Stage) count() int { return len(s.logical) / s.manifest.Labels }

// Next describes the next round.
func (s *Stage) Next(r *round.Round) {
	*r = round.Round{Kind: "label enhancement", Tasks: 1, Scope: round.Whole, Roles: s.roles, How: &round.Gather{}}
	if s.logical == nil {
		r.Op = opLabels
		return
	}
	if s.of.Method == GraphLaplacian {
		r.Op = opFit
		return
	}
	r.Op, r.Tasks = opPass, (s.count()+BlockRows-1)/BlockRows
	kind, factor, columns := s.matrix()
	s.vars[0] = round.Var{ID: varPass, Version: s.passes + 1, Data: encodePass(kind, factor, columns)}
	r.Vars = s.vars[:]
}

// matrix returns the affinities of the next pass and the matrix, by column.
func (s *Stage) matrix() (kind int, factor float64, columns []float64) {
	n := s.count()
	switch {
	case s.passes == 0:
		kind = gaussianOfOthers
		if s.of.Method == KernelDistance {
			kind = euclidean
		}
		columns = make([]float64, n)
		num.Fill(columns, 1)
		return kind, 0.5, columns
	case s.of.Method == KernelDistance:
		if s.width > 0 {
			factor = 1 / (2 * float64(s.width*s.width))
		}
		columns = make([]float64, len(s.logical))
		for at, l := range s.logical {
			columns[at%s.manifest.Labels*n+at/s.manifest.Labels] = float64(l)
		}
		return gaussian, factor, columns
	}
	columns = make([]float64, len(s.point))
	for at, d := range s.point {
		columns[at] = d * s.scale[at%n]
	}
	return gaussianOfOthers, 0.5, columns
}

// Fold takes the result of the round.
func (s *Stage) Fold(res *round.Result) error {
	if s.logical == nil {
		return s.foldLogical(res.Gathered[0])
	}
	n, labels := s.count(), s.manifest.Labels
	width := labels
	if s.of.Method != GraphLaplacian && s.passes == 0 {
		width = 1
	}
	sums := make([]float64, 0, n*width)
	for task, b := range res.Gathered {
		rows := n
		if s.of.Method != GraphLaplacian {
			rows = min(n, (task+1)*BlockRows) - task*BlockRows
		}
		if len(b) != 8*rows*width {
			return fmt.Errorf("task %d of a label enhancement has a result of %d bytes, want %d", task, len(b), 8*rows*width)
		}
		sums = append(sums, num.Float64s(b)...)
	}
	for _, x := range sums {
		if x-x != 0 {
			return fmt.Errorf("the label enhancement by %s has the score %v; check the features, whose distances may be too "+
				"large", s.of.Method, x)
		}
	}
	switch {
	case s.of.Method == GraphLaplacian:
		s.finish(func(i, c int) float64 { return sums[i*labels+c] })
	case s.of.Method == KernelDistance && s.passes == 0:
		total := 0.0
		for _, x := range sums {
			total += x
		}
		if n > 1 {
			s.width = total / (float64(n) * float64(n-1))
		}
	case s.of.Method == KernelDistance:
		s.foldKernels(sums)
	case s.passes == 0:
		s.scale = sums
		for i, x := range sums {
			if x > 0 {
				s.scale[i] = 1 / math.Sqrt(x)
			}
		}
		s.point = make([]float64, n*labels)
		for at, l := range s.logical {
			s.point[at%labels*n+at/labels] = float64(l)
		}
	default:
		s.propagate(sums)
	}
	s.passes++
	return nil
}

// foldLogical takes the logical labels, which come from a worker.
func (s *Stage) foldLogical(b []byte) error {
	labels := s.manifest.Labels
	if len(b) == 0 || len(b)%labels != 0 || len(b)/labels > s.manifest.Rows {
		return fmt.Errorf("a task returned %d logical labels for %d samples with %d labels", len(b), s.manifest.Rows, labels)
	}
	for _, l := range b {
		if l > 1 {
			return errors.New("a task returned a logical label that is neither 0 nor 1")
		}
	}
	s.logical = b
	if s.of.Method == Logical {
		s.finish(func(i, c int) float64 { return float64(b[i*labels+c]) })
	}
	return nil
}

// propagate takes the sums of one pass of label propagation.
func (s *Stage) propagate(sums []float64) {
	n, labels := s.count(), s.manifest.Labels
	if s.passes == 1 {
		s.omega = 1
	} else if s.passes == 2 {
		s.omega = 2 / (2 - alpha*alpha)
	} else {
		s.omega = 1 / (1 - float64(alpha*alpha/4*s.omega))
	}
	next := make([]float64, len(s.point))
	for at := range s.point {
		i, c := at%n, at/n
		x := float64(alpha*float64(s.scale[i]*sums[i*labels+c])) + float64((1-alpha)*float64(s.logical[i*labels+c]))
		if s.before != nil {
			x = float64(s.omega*(x-s.before[at])) + s.before[at]
		}
		if s.scale[i] == 0 { // no sample is near
			x = float64(s.logical[i*labels+c])
		}
		next[at] = x
	}
	s.before, s.point = s.point, next
	if s.passes == propagations {
		s.finish(func(i, c int) float64 { return s.point[c*n+i] })
	}
}

// foldKernels takes, for each sample and label, the sum of the kernels to the samples of the label.
func (s *Stage) foldKernels(sums []float64) {
	const small = 1e-7 // of the paper, against a division by 0
	labels := s.manifest.Labels
	count, within := make([]float64, labels), make([]float64, labels)
	for at, l := range s.logical {
		if l == 1 {
			count[at%labels]++
			within[at%labels] += sums[at]
		}
	}
	square := func(at int) float64 { // the squared distance from the centre of the label
		n := count[at%labels]
		return max(0, within[at%labels]/float64(n*n)-2*sums[at]/n+1)
	}
	most := make([]float64, labels)
	for at, l := range s.logical {
		if l == 1 {
			most[at%labels] = max(most[at%labels], square(at))
		}
	}
	s.finish(func(i, c int) float64 {
		at := i*labels + c
		if s.logical[at] == 0 {
			return 0
		}
		return 1 - math.Sqrt(square(at)/(most[c]+small))
	})
}

// finish makes distributions of the scores.
func (s *Stage) finish(scoreOf func(i, c int) float64) {
	labels := s.manifest.Labels
	enhanced, scores := make([]float32, len(s.logical)), make([]float64, labels)
	for i := range s.count() {
		for c := range scores {
			scores[c] = scoreOf(i, c)
		}
		normalise(enhanced[i*labels:(i+1)*labels], scores, s.logical[i*labels:(i+1)*labels], s.of.Normalise)
	}
	s.enhanced, s.scale, s.point, s.before = enhanced, nil, nil, nil
}

// State lists the fields of a training state.
func (s *Stage) State(l *fields.List) {
	if s == nil {
		return
	}
	labels := s.manifest.Labels
	l.Bytes(&s.logical)
	l.Check(len(s.logical)%labels == 0 && len(s.logical)/labels <= s.manifest.Rows, "%d logical labels of %d samples",
		len(s.logical), s.manifest.Rows)
	for _, b := range s.logical {
		l.Check(b <= 1, "the logical label %d is neither 0 nor 1", b)
	}
	l.Uint64(&s.passes)
	l.Check(s.passes <= propagations+1, "%d passes of a label enhancement", s.passes)
	l.Float64(&s.omega, &s.width)
	l.Check(s.omega >= 0 && s.omega <= 2 && s.width >= 0 && s.width-s.width == 0, "the weight %v and the mean distance %v",
		s.omega, s.width)
	n := len(s.logical) / max(1, labels)
	l.Known(&s.scale, n)
	l.Known(&s.point, n*labels)
	l.Known(&s.before, n*labels)
	count := l.Count(len(s.enhanced), n*labels)
	if l.Reading() && count > 0 {
		s.enhanced = make([]float32, count)
	}
	l.Float32s(s.enhanced)
	if s.of.Method == LabelPropagation && s.passes > 0 && s.enhanced == nil {
		l.Check(len(s.scale) == n && len(s.point) == n*labels && (s.passes == 1) == (s.before == nil),
			"a label propagation lacks its scores after %d passes", s.passes)
	}
	if _, of := s.Passes(); s.enhanced == nil {
		l.Check(s.passes < uint64(max(1, of)) && (s.logical == nil || s.of.Method != Logical),
			"a label enhancement by %s has no distributions after %d passes", s.of.Method, s.passes)
	}
	for _, v := range [][]float64{s.scale, s.point, s.before} {
		l.Check(num.Finite64(v), "a score of a label enhancement is not finite")
	}
	for _, x := range s.enhanced {
		l.Check(x >= 0 && x <= 1, "the probability %v of an enhanced label", x)
	}
	if l.Reading() {
		s.logical = bytes.Clone(s.logical)
	}
}
