package clusters

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The stages of a Fit.
const (
	stageMean  uint8 = iota // the mean of the label distributions
	stageFirst              // the sample nearest to the mean, then the samples farthest from all centres
	stageMove               // passes
	stageDone
	stages
)

// Fit is KMeans for the label distributions of a job's training samples, in rounds. It has the centres, and no state
// by sample: the cluster of a sample is the cluster of its nearest centre (Nearest). A trainer calls Begin, then Next
// and Fold until Done. With fewer different distributions than clusters, some centres are equal, and the last of equal
// ones has no samples.
//
// Weights of samples are factors in means. A sample of weight 0 is no sample.
//
// The rounds have the operations 205 to 208 and the variable 0xfe20.
type Fit struct {
	clusters, labels, shards int
	nothing                  error // if no sample counts

	stage   uint8
	have    uint64    // centres
	passes  uint64    // since Begin
	version uint64    // of centres: how often they were set
	centres []float64 // clusters×labels; of stageFirst, the mean at first

	reduce round.Reduce // of the round
	vars   [1]round.Var // of the round
}

// NewFit returns the fit of so many clusters to a dataset.
func NewFit(clusters int, m *dataset.Manifest) *Fit {
	return &Fit{clusters: clusters, labels: m.Labels, shards: len(m.Shards),
		nothing: algorithms.Nothing(m), centres: make([]float64, clusters*m.Labels)}
}

// Begin begins with the first round.
func (f *Fit) Begin() {
	f.stage, f.have, f.passes = stageMean, 0, 0
	clear(f.centres)
	f.version++
}

// Done reports whether all rounds are over.
func (f *Fit) Done() bool { return f.stage == stageDone }

// Centres returns the centres, clusters×labels.
func (f *Fit) Centres() []float64 { return f.centres }

// AppendVar appends the centres, which Find finds in a round.
func (f *Fit) AppendVar(vars []round.Var) []round.Var {
	return append(vars, round.Var{ID: varCentres, Version: f.version, Data: num.Bytes64(f.centres[:f.sent()])})
}

// sent is the number of values that a round carries: of stageFirst, the mean, or the centres so far.
func (f *Fit) sent() int {
	if f.stage == stageFirst {
		return int(max(1, f.have)) * f.labels
	}
	return len(f.centres)
}

// Find returns the centres that a round carries.
func Find(v round.Vars) []float64 { return num.Float64s(v.Get(varCentres)) }

// MostSums returns the greatest number of F64 values of a round of a Fit.
func MostSums(clusters int, m *dataset.Manifest) int {
	return max(len(m.Shards)*slot(m.Labels), clusters*(1+m.Labels))
}

// slot is the number of values of a task of stageFirst: samples, the distance of the best one, its number, and its
// label distribution.
func slot(labels int) int { return 3 + labels }

// Next sets what is the fit's own in the next round: Op, Kind, Tasks, How and Vars. The caller sets Roles.
func (f *Fit) Next(r *round.Round) {
	r.Kind, r.Tasks, r.How = "clustering", f.shards, &f.reduce
	f.AppendVar(f.vars[:0])
	r.Vars = f.vars[:]
	switch f.stage {
	case stageMean:
		r.Op, f.reduce.Shape.F64, r.Vars = opMean, 1+f.labels, nil
	case stageFirst:
		r.Op, f.reduce.Shape.F64 = opFarthest, f.shards*slot(f.labels)
		if f.have == 0 {
			r.Op = opNearest
		}
	case stageMove:
		r.Op, f.reduce.Shape.F64 = opMove, f.clusters*(1+f.labels)
	}
}

// Fold takes the sums of the round that Next described. The error comes from algorithms.Nothing.
func (f *Fit) Fold(sum []float64) error {
	f.version++
	switch f.stage {
	case stageMean:
		if sum[0] == 0 {
			return f.nothing
		}
		for c, x := range sum[1:] {
			f.centres[c] = x / sum[0]
		}
		f.stage = stageFirst
	case stageFirst:
		f.add(sum)
		if f.have == uint64(f.clusters) {
			f.stage = stageMove
		}
	case stageMove:
		before := slices.Clone(f.centres)
		for g := range f.clusters {
			own := sum[g*(1+f.labels):][:1+f.labels]
			for c, x := range own[1:] {
				if own[0] > 0 {
					f.centres[g*f.labels+c] = x / own[0]
				}
			}
		}
		// The same clusters have the same sums, and the same centres have the same clusters.
		if f.passes++; f.passes == MaxPasses || slices.Equal(before, f.centres) {
			f.stage = stageDone
		}
	default:
		return fmt.Errorf("the clusters are known already")
	}
	return nil
}

// add makes the best sample of all tasks the next centre: the nearest one to the mean, or the farthest one.
func (f *Fit) add(sum []float64) {
	var best []float64
	for n := slot(f.labels); len(sum) > 0; sum = sum[n:] {
		if own := sum[:n]; own[0] > 0 && (best == nil || better(f.have > 0, own[1], best[1], own[2], best[2])) {
			best = own
		}
	}
	if best != nil { // rounds before this one have had samples
		copy(f.centres[int(f.have)*f.labels:][:f.labels], best[3:])
	}
	f.have++
}

// better reports whether a sample at a distance precedes another one. Of equal distances the lower number counts.
func better(farthest bool, distance, other, number, otherNumber float64) bool {
	switch {
	case distance == other:
		return number < otherNumber
	case farthest:
		return distance > other
	}
	return distance < other
}

// State lists the fields of a training state.
func (f *Fit) State(l *fields.List) {
	l.Byte(&f.stage)
	l.Uint64(&f.have, &f.passes, &f.version)
	l.Float64s(f.centres)
	all := uint64(f.clusters)
	l.Check(f.stage < stages && f.passes <= MaxPasses && (f.stage >= stageMove || f.passes == 0) &&
		(f.stage == stageDone || f.passes < MaxPasses),
		"the saved state is at stage %d of clustering after %d passes, which is not possible", f.stage, f.passes)
	l.Check(f.stage >= stageMove && f.have == all || f.stage == stageFirst && f.have < all || f.have == 0,
		"the saved state has %d of %d first centres at stage %d, which is not possible", f.have, all, f.stage)
	l.Check(f.stage < stageMove || f.have == all, "the saved state has %d of %d centres", f.have, all)
	l.Check(num.Finite64(f.centres), "the saved state has a centre that is not finite")
}

// The operations of rounds (Round.Op), over the training samples.
const (
	opMean     uint8 = iota + 205 // samples, and Σ d, weighted
	opNearest                     // of each task: the sample nearest to the centre
	opFarthest                    // of each task: the sample farthest from its nearest centre
	opMove                        // of each cluster: samples, and Σ d, weighted
)

// varCentres are centres (Var.ID): float64, a row for each.
const varCentres = 0xfe20

// Scratch is the working memory of a lane. The zero value is ready.
type Scratch struct{ degrees []float64 }

// Run computes a task of a round of a Fit into dst. It reports false, and does nothing, if the round is not a Fit's.
func Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, s *Scratch) bool {
	if u.Op < opMean || u.Op > opMove {
		return false
	}
	var centres []float64
	if u.Op != opMean {
		centres = Find(v)
	}
	n := d.Manifest.Labels
	if len(s.degrees) != n {
		s.degrees = make([]float64, n)
	}
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		weight := rows.WeightOf(pos)
		if weight == 0 {
			continue
		}
		degreesOf(s.degrees, rows.Label(pos))
		switch u.Op {
		case opMean:
			dst.F64[0] += weight
			num.AddScaled64(dst.F64[1:], weight, s.degrees)
		case opMove:
			g, _ := Nearest(centres, s.degrees)
			own := dst.F64[g*(1+n):][:1+n]
			own[0] += weight
			num.AddScaled64(own[1:], weight, s.degrees)
		default:
			own := dst.F64[u.ID*slot(n):][:slot(n)]
			_, distance := Nearest(centres, s.degrees)
			number := float64(rows.Row[pos])
			if own[0] == 0 || better(u.Op == opFarthest, distance, own[1], number, own[2]) {
				own[1], own[2] = distance, number
				copy(own[3:], s.degrees)
			}
			own[0]++
		}
	}
	return true
}

// degreesOf sets dst to a label distribution, divided by its sum.
func degreesOf(dst []float64, label []float32) {
	share := 1 / num.Sum64(label)
	for c, x := range label {
		dst[c] = float64(x) * share
	}
}

// Nearest returns the cluster whose centre is nearest to a row, among equally near ones the first, and the squared
// distance. There is at least one centre.
func Nearest(centres, row []float64) (cluster int, squared float64) {
	squared = math.Inf(1)
	for g := range len(centres) / len(row) {
		if d := distance(row, centres[g*len(row):][:len(row)]); d < squared {
			cluster, squared = g, d
		}
	}
	return cluster, squared
}
