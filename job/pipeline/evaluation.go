package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/enhance"
)

// The pipeline's own operations and variables. Algorithms have smaller numbers.
const (
	opMean     = 250 // sums of the training rows' label degrees
	opEvaluate = 251 // sums of the measures of the model and of the mean
	opPredict  = 252 // predictions of the held-out rows

	varModel = 0xff00
	varMean  = 0xff01
)

// The phases of a job, in order.
const (
	phaseTrain = iota
	phaseMean
	phaseLinear // only if the job has a linear baseline and test rows
	phaseEvaluate
	phasePredict // only if predictions are stored
	phaseDone
)

// evaluation is the part of a job that follows the training of its algorithm.
type evaluation struct {
	job      *round.Job
	manifest *dataset.Manifest
	plan     *measures.Plan
	fill     *fill          // nil: the job fills no missing values
	enhance  *enhance.Stage // nil: the job trains on the labels of the dataset
	linear   *linear        // nil: the job has no linear baseline
	bounds   *bounds        // nil: the labels are no targets

	phase  uint8
	mean   []float64 // mean label distribution of the rows trained on, and median if a number is predicted, once known
	counts [3]uint64 // rows by role: train, validation, test
	sums   []float64 // of opEvaluate, once known
	// predicted is the encoded predictions of held-out rows, once known.
	predicted []byte

	round  round.Round
	chunks []round.Chunk // of the model while it is evaluated, if the algorithm has chunks
	model  []byte        // the model file without provenance, from its first use until Outcome
	shared *sharedModel  // nil unless the kernel is in this process
}

// sharded returns a round in which each shard has a task, for the caller to complete.
func (t *evaluation) sharded() *round.Round {
	t.round = round.Round{Tasks: len(t.manifest.Shards), Scope: round.Sharded}
	return &t.round
}

// next returns the next round after the training by trained.
func (t *evaluation) next(trained algorithms.Trainer) (*round.Round, error) {
	if t.phase == phaseLinear {
		r, err := t.linear.next()
		if err != nil || r != nil {
			return t.prepared(r), err
		}
		t.phase = phaseEvaluate
	}
	r := t.sharded()
	switch t.phase {
	case phaseMean:
		r.Op, r.Kind, r.Roles = opMean, "label mean", dataset.AllRows
		width := 3 + t.manifest.Labels
		if t.enhance != nil {
			r.Vars = []round.Var{t.enhance.Variable()}
		}
		if incomplete(t.job, t.manifest) {
			width += t.manifest.Labels
		}
		if weighsMean(t.manifest, t.plan) {
			width++
		}
		r.How = round.Sums(width)
		if t.plan.Number { // of each task its sums and all of its rows' numbers, since a median is no sum
			r.How = &round.Gather{}
			r.Tasks = t.gatheringTasks(8 * int64(t.manifest.Rows))
		}
	case phaseEvaluate:
		return r, t.evaluateRound(trained)
	case phasePredict: // it has the same values
		err := t.evaluateRound(trained)
		r.Op, r.Kind = opPredict, "prediction"
		r.How, r.Roles = &round.Gather{}, dataset.Test
		r.Tasks = t.gatheringTasks(int64(t.predictedRows()) * rowBytes(t.job, t.manifest))
		return r, err
	default:
		return nil, nil
	}
	return r, nil
}

// prepared returns a round of the algorithm or of the linear baseline with what kernels fill missing values with, and
// scale targets with, and with the distributions that are made of logical labels.
func (t *evaluation) prepared(r *round.Round) *round.Round {
	if t.fill == nil && t.bounds == nil && t.enhance == nil || r == nil {
		return r
	}
	t.round = *r
	t.round.Vars = t.appendPrepared(slices.Clone(r.Vars))
	if t.enhance != nil && t.enhance.Ended() {
		t.round.Vars = append(t.round.Vars, t.enhance.Variable())
	}
	return &t.round
}

// appendPrepared appends what kernels fill missing values with, and scale targets with.
func (t *evaluation) appendPrepared(vars []round.Var) []round.Var {
	if t.fill != nil {
		vars = append(vars, t.fill.variable())
	}
	if t.bounds != nil {
		vars = append(vars, t.bounds.variable())
	}
	return vars
}

// evaluateRound asks for the measures of the model, which it makes available to kernels, in this
// process or in others.
func (t *evaluation) evaluateRound(trained algorithms.Trainer) error {
	if t.model == nil && len(t.chunks) == 0 {
		m, err := trained.Model()
		if err != nil {
			return err
		}
		if c, ok := trained.(algorithms.Composite); ok && t.shared == nil {
			t.chunks = c.Pieces()
		}
		if t.shared != nil {
			t.shared.model = m
		} else if len(t.chunks) == 0 {
			t.model = modelfile.EncodeWithRoom(t.job.Algorithm, m.Tensors(), provenanceRoom)
		}
	}
	t.round.Op, t.round.Kind, t.round.Roles = opEvaluate, "evaluation", t.evaluated()
	t.round.How = round.Sums(t.linear.width(t.plan))
	t.round.Vars = []round.Var{{ID: varMean, Version: 1, Data: num.Bytes64(t.mean)}}
	t.round.Vars = t.appendPrepared(t.round.Vars)
	if t.linear.fitted() {
		t.round.Vars = append(t.round.Vars, round.Var{ID: varLinear, Version: 1, Data: num.Bytes64(t.linear.weights)})
	}
	switch {
	case t.shared != nil:
	case len(t.chunks) > 0:
		t.round.Vars = append(t.round.Vars, round.Var{ID: varModel, Version: 1, Chunks: t.chunks})
	default:
		t.round.Vars = append(t.round.Vars, round.Var{ID: varModel, Version: 1, Data: t.model})
	}
	return nil
}

// evaluated returns the roles of the rows that the measures are of.
func (t *evaluation) evaluated() dataset.Roles {
	if t.counts[2] > 0 {
		return dataset.Test
	}
	return dataset.Train | dataset.Validation
}

// releaseModel frees what only the evaluation of a model needs.
func (t *evaluation) releaseModel() {
	t.chunks, t.round.Vars = nil, nil
	if t.shared != nil {
		t.shared.model = nil
	}
}

// fold takes the result of a round after the training.
func (t *evaluation) fold(res *round.Result) error {
	switch t.phase {
	case phaseMean:
		var err error
		if t.plan.Number {
			err = t.setMedian(res.Gathered)
		} else {
			err = t.setMean(res.Sum.F64)
		}
		if err != nil {
			return err
		}
		if t.linear != nil && t.counts[2] > 0 {
			t.phase = phaseLinear
			return t.linear.begin(nil)
		}
		t.phase = phaseEvaluate
		return nil
	case phaseLinear:
		if err := t.linear.fit.Fold(res); err != nil { // the job ends without linear baseline
			t.linear.fit = nil
			t.phase = phaseEvaluate
		}
		return nil
	case phaseEvaluate:
		t.sums = append([]float64{}, res.Sum.F64...)
		if !t.keepsPredictions() {
			t.releaseModel()
			t.phase = phaseDone
			return nil
		}
	case phasePredict:
		t.releaseModel()
		if err := t.setPredictions(res.Gathered); err != nil {
			return err
		}
	}
	t.phase++
	return nil
}

func (t *evaluation) setMean(sums []float64) (err error) {
	for i := range t.counts {
		t.counts[i] = uint64(sums[i])
	}
	if weighsMean(t.manifest, t.plan) && sums[len(sums)-1] == 0 {
		return algorithms.ErrNoWeights
	}
	if incomplete(t.job, t.manifest) {
		t.mean, err = observedMean(sums, t.manifest)
		return err
	}
	n := sums[0]
	if t.manifest.Validation == nil { // otherwise the mean is of the training rows alone
		n += sums[1]
	}
	if weighsMean(t.manifest, t.plan) {
		n = sums[len(sums)-1]
	}
	t.mean = make([]float64, t.manifest.Labels)
	for c := range t.mean {
		t.mean[c] = sums[3+c] / n
	}
	return nil
}

// setMedian folds what tasks returned: the sums as setMean does, and the median of the
// numbers.
func (t *evaluation) setMedian(collected [][]byte) error {
	sums := make([]float64, 3+t.manifest.Labels)
	var numbers []float64
	for u, b := range collected {
		if len(b)%8 != 0 || len(b) < 8*len(sums) {
			return fmt.Errorf("task %d: the predicted numbers have %d bytes, which is too few or too many", u, len(b))
		}
		values := num.Float64s(b)
		for i := range sums {
			sums[i] += values[i]
		}
		numbers = append(numbers, values[len(sums):]...)
	}
	err := t.setMean(sums)
	t.mean = append(t.mean, median(numbers))
	return err
}

// median returns the number in the middle, or the mean of the two that are; NaN of none.
func median(numbers []float64) float64 {
	n := len(numbers)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(numbers)
	return (numbers[(n-1)/2] + numbers[n/2]) / 2
}

// measures sets what the rounds say of the model in its outcome.
func (t *evaluation) measures(o *Outcome) {
	o.Rows = Counts{int(t.counts[0]), int(t.counts[1]), int(t.counts[2])}
	o.EvaluatedOn, o.Predictions = "training samples", t.predicted
	if t.bounds != nil {
		t.plan = bounded(t.plan, t.bounds.of)
	}
	width := t.plan.Width()
	ofModel, ofMean := t.sums[:width], t.sums[width:2*width]
	o.Measures, o.MeanPredictor, o.Added = Measured(t.plan, ofModel, ofMean)
	if c := t.plan.ReadClipped(ofModel); c != nil {
		o.Clipped = &Clipped{c, t.plan.ReadClipped(ofMean)}
	}
	if t.linear.fitted() {
		o.Linear = t.linear.read(t.plan, t.sums[2*width+measures.DifferenceWidth:], t.counts)
	}
	if t.evaluated() == dataset.Test {
		o.EvaluatedOn = "test samples"
		if !t.plan.Number && !t.plan.Gaps(ofModel) && t.bounds == nil {
			o.Against = measures.CompareWithBaseline(o.Rows.Test, t.sums[2*width:])
		}
	}
}

// fields lists the fields of a training state.
func (t *evaluation) fields(l *fields.List) {
	l.Byte(&t.phase)
	l.Uint64(&t.counts[0], &t.counts[1], &t.counts[2])
	t.fill.state(l)
	t.enhance.State(l)
	t.bounds.state(l, t.job.Bounds != nil && t.job.Bounds.Given())
	means := t.manifest.Labels
	if t.plan.Number {
		means++ // the median
	}
	l.Known(&t.mean, means)
	if t.linear != nil {
		t.linear.state(l, t.phase == phaseLinear)
	}
	l.Known(&t.sums, t.linear.width(t.plan))
	l.Bytes(&t.predicted)
	predicted := t.phase == phaseDone && t.keepsPredictions()
	l.Check(t.phase <= phaseDone && (t.mean != nil) == (t.phase > phaseMean) && (t.phase != phaseLinear ||
		t.linear != nil && t.counts[2] > 0) && (t.sums != nil) == (t.phase >= phasePredict) &&
		(t.predicted != nil) == predicted && (t.phase != phasePredict || t.keepsPredictions()),
		"phase %d of the saved state does not match its other fields", t.phase)
}

// PredictionBytes returns the bytes of the predictions of held-out rows, without names of
// rows. heldOut is the number of held-out rows of a job without folds. With folds the result
// is for all folds together, so that each fold makes the same decision.
func PredictionBytes(j *round.Job, m *dataset.Manifest, heldOut int) int64 {
	if j.Split.Folds > 0 {
		heldOut = j.Split.Divided(m.Rows)
		if j.Split.Overlap { // each row may be tested in each split
			heldOut *= j.Split.Folds
		}
	}
	return int64(heldOut) * rowBytes(j, m)
}

// rowBytes returns the bytes of a row's predictions.
func rowBytes(j *round.Job, m *dataset.Manifest) int64 {
	bytes := predictions.RowBytes(m.Labels)
	if m.LabelType.Scale != nil {
		bytes += 8
	}
	if m.HasWeights {
		bytes += 8
	}
	return bytes
}

// keepsPredictions reports whether the predictions of the held-out rows are stored.
func (t *evaluation) keepsPredictions() bool {
	heldOut := int(t.counts[2])
	return heldOut > 0 && (t.job.PredictedRows > 0 || PredictionBytes(t.job, t.manifest, heldOut) <= t.job.Predictions)
}

// predictedRows returns how many held-out rows are predicted.
func (t *evaluation) predictedRows() int {
	if n := t.job.PredictedRows; n > 0 {
		return min(n, int(t.counts[2]))
	}
	return int(t.counts[2])
}

// gatheringTasks returns the number of tasks of a round that reads all shards and collects
// so many bytes. Each result is a blob, so there are as few tasks as bounds on the bytes that a
// task reads and returns allow.
func (t *evaluation) gatheringTasks(bytes int64) int {
	const reads, answers = 64 << 20, 4 << 20
	pieces, units := max(t.manifest.Bytes()/reads, bytes/answers), 1
	for int64(units) <= pieces && units < len(t.manifest.Shards) {
		units *= 2
	}
	return units
}

// setPredictions merges the tasks' predictions by row number, and replaces row numbers by
// those in the file.
func (t *evaluation) setPredictions(encoded [][]byte) error {
	all, err := merged("task", encoded)
	if err != nil {
		return err
	}
	if n := t.job.PredictedRows; n > 0 {
		all = all.Only(drawnOf(all.Row, n, t.job.Split.Seed))
	}
	if len(all.Row) != t.predictedRows() || all.Labels != t.manifest.Labels {
		return fmt.Errorf("got held-out predictions of %d samples and %d labels, want %d and %d", len(all.Row), all.Labels,
			t.predictedRows(), t.manifest.Labels)
	}
	if err := t.manifest.ToFile(all.Row); err != nil {
		return fmt.Errorf("the held-out predictions cannot be used: %w", err)
	}
	if t.job.PredictedRows == 0 {
		all.LabelNames = t.manifest.LabelNames
	}
	if t.job.Split.Folds > 0 {
		all.SetFold(t.job.Split.Fold)
	}
	t.predicted = all.Encode()
	return nil
}

// predictRows returns the encoded predictions of a task's rows, or of the drawn rows.
func (s *scratch) predictRows(k *kernel, m algorithms.Model, u round.Task, d *dataset.Data, v round.Vars) []byte {
	plan, read := k.planFor(v), k.filledData(d, v)
	s.prepare(plan, m, v)
	width := len(s.mean)
	set := &predictions.Set{Labels: plan.Labels, Type: plan.Type, Number: plan.Number}
	shard := func(i uint32) *dataset.Rows { return read.Shard(int(i)) }
	for refs := k.drawn(u.Rows(d), d); len(refs) > 0; refs = refs[min(evaluateRows, len(refs)):] {
		block := refs[:min(evaluateRows, len(refs))]
		s.model.Predict(s.rows[:len(block)*width], block, shard, s.predict)
		unscale(plan.Bounds, s.rows[:len(block)*width])
		for i, ref := range block {
			rows := d.Shard(int(ref.Shard))
			set.Add(rows.Row[ref.Pos], rows.Label(int(ref.Pos)), s.rows[i*width:(i+1)*width])
			if scale := plan.Type.Scale; scale != nil {
				set.True = append(set.True, scale.Number(rows, int(ref.Pos)))
			}
			if rows.Weight != nil && k.weighs.predictions {
				set.Weight = append(set.Weight, rows.Weight[ref.Pos])
			}
			if rows.Named() && k.predicted == 0 { // of drawn rows the bytes are bounded
				set.Names = append(set.Names, rows.Name(int(ref.Pos)))
			}
		}
	}
	return set.Encode()
}

// mergePredictions merges the predictions of all folds; nil if a fold has none.
func mergePredictions(folds []*Outcome) ([]byte, error) {
	var encoded [][]byte
	for _, f := range folds {
		if len(f.Predictions) == 0 {
			return nil, nil
		}
		encoded = append(encoded, f.Predictions)
	}
	all, err := merged("fold", encoded)
	if err != nil {
		return nil, err
	}
	return all.Encode(), nil
}

// merged decodes and merges the predictions of tasks or folds.
func merged(what string, encoded [][]byte) (*predictions.Set, error) {
	var sets []*predictions.Set
	for i, b := range encoded {
		s, err := predictions.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, i, err)
		}
		sets = append(sets, s)
	}
	all, err := predictions.Merge(sets)
	if err != nil {
		return nil, fmt.Errorf("the held-out predictions cannot be used: %w", err)
	}
	return all, nil
}

// drawnOf returns the places in rows, ascending, of the n rows that come first in an order that the
// seed decides. The order has nothing to do with the algorithm, so all jobs of one split have the
// same rows; and the first ones of parts of the rows have the first of all among them.
func drawnOf(rows []uint32, n int, seed uint64) []int {
	key, places := num.NewKey(seed, "predicted rows"), make([]int, len(rows))
	order := make([]uint64, len(rows))
	for i, row := range rows {
		places[i] = i
		x := num.Philox(key, [4]uint32{row})
		order[i] = uint64(x[0])<<32 | uint64(x[1])
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(rows[a], rows[b]))
	})
	places = places[:min(n, len(places))]
	slices.Sort(places)
	return places
}

// drawn returns the rows of a task that have their predictions kept.
func (k *kernel) drawn(refs []dataset.RowRef, d *dataset.Data) []dataset.RowRef {
	if k.predicted == 0 {
		return refs
	}
	rows := make([]uint32, len(refs))
	for i, ref := range refs {
		rows[i] = d.Shard(int(ref.Shard)).Row[ref.Pos]
	}
	var some []dataset.RowRef
	for _, at := range drawnOf(rows, k.predicted, k.seed) {
		some = append(some, refs[at])
	}
	return some
}

// RecordBytes bounds what each run of a job of runs has beside its outcome, in bytes.
func RecordBytes(j *round.Job, m *dataset.Manifest) (bytes int64) {
	if j.Cells.Curves {
		bytes += maxFoldCurve
	}
	if n := j.Cells.PredictedRows; n > 0 {
		bytes += predictions.HeadBytes + int64(n)*rowBytes(j, m)
	}
	return bytes
}

// maxFoldCurve bounds the bytes of an encoded curve of curve.FoldPoints points without times.
const maxFoldCurve = 2 << 10
