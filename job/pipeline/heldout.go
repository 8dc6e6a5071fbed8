package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// PredictionBytes returns the bytes of the predictions of held-out rows, without names of
// rows. heldOut is the number of held-out rows of a job without folds. With folds the result
// is for all folds together, so that each fold makes the same decision.
func PredictionBytes(j *round.Job, m *dataset.Manifest, heldOut int) int64 {
	if j.Split.Folds > 0 {
		heldOut = m.Rows
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
	return bytes
}

// keepsPredictions reports whether the predictions of the held-out rows are stored.
func (t *single) keepsPredictions() bool {
	heldOut := int(t.counts[2])
	return heldOut > 0 && (t.job.PredictedRows > 0 || PredictionBytes(t.job, t.manifest, heldOut) <= t.job.Predictions)
}

// predictedRows returns how many held-out rows are predicted.
func (t *single) predictedRows() int {
	if n := t.job.PredictedRows; n > 0 {
		return min(n, int(t.counts[2]))
	}
	return int(t.counts[2])
}

// predictRound asks for the predictions of the held-out rows.
func (t *single) predictRound() error {
	if err := t.evaluateRound(); err != nil { // the same values
		return err
	}
	t.round.Op, t.round.Kind = opPredict, "prediction"
	t.round.How, t.round.Roles = &round.Gather{}, dataset.Test
	t.round.Tasks = t.gatheringTasks(int64(t.predictedRows()) * rowBytes(t.job, t.manifest))
	return nil
}

// gatheringTasks returns the number of tasks of a round that reads all shards and collects
// so many bytes. Each result is a blob, so there are as few tasks as bounds on the bytes that a
// task reads and returns allow.
func (t *single) gatheringTasks(bytes int64) int {
	const reads, answers = 64 << 20, 4 << 20
	pieces, units := max(t.manifest.Bytes()/reads, bytes/answers), 1
	for int64(units) <= pieces && units < len(t.manifest.Shards) {
		units *= 2
	}
	return units
}

// setPredictions merges the tasks' predictions by row number, and replaces row numbers by
// those in the file.
func (t *single) setPredictions(encoded [][]byte) error {
	var sets []*predictions.Set
	for u, b := range encoded {
		s, err := predictions.Decode(b)
		if err != nil {
			return fmt.Errorf("task %d: %w", u, err)
		}
		sets = append(sets, s)
	}
	all, err := predictions.Merge(sets)
	if err != nil {
		return fmt.Errorf("the held-out predictions cannot be used: %w", err)
	}
	if n := t.job.PredictedRows; n > 0 {
		all = all.Only(drawnOf(all.Row, n, t.job.Split.Seed))
	}
	if len(all.Row) != t.predictedRows() || all.Labels != t.manifest.Labels {
		return fmt.Errorf("got held-out predictions of %d samples and %d labels, want %d and %d", len(all.Row), all.Labels, t.predictedRows(), t.manifest.Labels)
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
	plan := k.plan
	s.prepare(plan, m, v)
	width := len(s.mean)
	set := &predictions.Set{Labels: plan.Labels, Type: plan.Type, Number: plan.Number}
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for refs := k.drawn(u.Rows(d), d); len(refs) > 0; refs = refs[min(evaluateRows, len(refs)):] {
		block := refs[:min(evaluateRows, len(refs))]
		s.model.Predict(s.rows[:len(block)*width], block, shard, s.predict)
		for i, ref := range block {
			rows := d.Shard(int(ref.Shard))
			set.Add(rows.Row[ref.Pos], rows.Label(int(ref.Pos)), s.rows[i*width:(i+1)*width])
			if scale := plan.Type.Scale; scale != nil {
				set.True = append(set.True, scale.Number(rows, int(ref.Pos)))
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
	var sets []*predictions.Set
	for i, f := range folds {
		if len(f.Predictions) == 0 {
			return nil, nil
		}
		s, err := predictions.Decode(f.Predictions)
		if err != nil {
			return nil, fmt.Errorf("fold %d: %w", i, err)
		}
		sets = append(sets, s)
	}
	all, err := predictions.Merge(sets)
	if err != nil {
		return nil, fmt.Errorf("the held-out predictions cannot be used: %w", err)
	}
	return all.Encode(), nil
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
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(rows[a], rows[b])) })
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
