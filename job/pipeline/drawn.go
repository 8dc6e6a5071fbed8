package pipeline

import (
	"cmp"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

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

// drawn returns the rows whose predictions are kept out of those of a task.
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
