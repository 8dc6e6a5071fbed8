package enhance

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The operations of rounds (Round.Op), below the operations of the pipeline and above the operations of algorithms.
const (
	opLabels uint8 = iota + 235 // the logical labels, one byte each
	opPass                      // sums over all samples, weighted by affinities
	opFit                       // the scores of glle
)

// The values that rounds carry (Var.ID).
const (
	varPass     uint16 = iota + 0xff10 // the kind of affinities, their factor, and a matrix with a row for each sample
	varEnhanced                        // the distributions, float32
)

// BlockRows is how many samples a task of a pass computes the sums of.
const BlockRows = 128

// KeptBytes bounds the affinities that a Kernel keeps between passes: all of at most 2,896 samples. The others are
// computed again in each pass, to the same bits.
const KeptBytes = 64 << 20

// Kernel is the workers' half. It is shared by executors.
type Kernel struct {
	of     *round.Enhance
	labels int
	roles  dataset.Roles // of the samples that are enhanced

	// Fitted, if set, hears how many of the steps of glle are done.
	Fitted func(steps, of int)

	mu        sync.Mutex
	data      *dataset.Data // that the next two are of
	samples   *dataset.Rows
	distances *rows.Distances
	kept      map[int][]float64 // by task: squared distances, or affinities of the kind gaussianOfOthers; nil: not yet
	bytes     int               // of kept
	limit     int               // of bytes

	raw, enhanced *dataset.Data // see Data
}

// NewKernel returns the kernel of an enhancement that Check accepts, of the samples of some roles.
func NewKernel(e *round.Enhance, m *dataset.Manifest, roles dataset.Roles) *Kernel {
	return &Kernel{of: e, labels: m.Labels, roles: roles, kept: make(map[int][]float64), limit: KeptBytes}
}

// Has reports whether a round belongs to the enhancement.
func (k *Kernel) Has(u *round.Task) bool { return k != nil && u.Op >= opLabels && u.Op <= opFit }

// release frees the memory that only the rounds of the enhancement need.
func (k *Kernel) release() {
	k.data, k.samples, k.distances, k.bytes = nil, nil, nil, 0
	clear(k.kept)
}

// Data returns the samples with the distributions that Stage.Variable carries in the place of their labels.
func (k *Kernel) Data(d *dataset.Data, v round.Vars) *dataset.Data {
	at := slices.IndexFunc(v, func(x round.Var) bool { return x.ID == varEnhanced })
	if at < 0 { // the round needs the labels of the dataset
		return d
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.raw != d {
		k.raw, k.enhanced = d, d.Relabelled(k.roles, num.Float32s(v[at].Data))
		k.release()
	}
	return k.enhanced
}

// NewScratch implements round.Kernel.
func (k *Kernel) NewScratch() any { return nil }

// Gather implements round.GatherKernel for the rounds of the enhancement.
func (k *Kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	switch u.Op {
	case opLabels:
		return k.readLogical(u, d)
	case opPass:
		return k.pass(ctx, u, d, v)
	}
	samples, from := k.prepare(u, d)
	labels, err := k.readLogical(u, d)
	if err != nil {
		return nil, err
	}
	scores, err := fitGraph(ctx, samples, from, from.NewScratch(), labels, k.labels, k.Fitted)
	if err != nil {
		return nil, err
	}
	return num.Bytes64(scores), nil
}

// readLogical returns the logical labels of the samples, by original row number.
func (k *Kernel) readLogical(u round.Task, d *dataset.Data) ([]byte, error) {
	r := rows.Gather(u, d, &rows.Wanted{Labels: true})
	if r.N == 0 {
		return nil, algorithms.ErrNoRows
	}
	labels := make([]byte, r.N*k.labels)
	for i := range r.N {
		to := labels[i*k.labels : (i+1)*k.labels]
		refused := func(text errtext.Text) error {
			row := []uint32{r.Row[i]}
			if err := d.Manifest.ToFile(row); err != nil {
				return err
			}
			if first := d.Manifest.Divided().FileRows(); int(row[0]) >= first {
				return errtext.Errorf(errtext.WrongData, "row %d (counted from 0) of the {validation} file %s", int(row[0])-first,
					text)
			}
			return errtext.Errorf(errtext.WrongData, "row %d (counted from 0) %s", row[0], text)
		}
		if !Relevant(to, r.Label(i), k.of.Binarise) {
			return nil, refused(errtext.Sprintf("has relevant labels with different probabilities, so its labels are a " +
				"distribution; {binarise=0.5} makes logical labels of distributions"))
		}
		if !slices.Contains(to, 1) {
			return nil, refused("has no relevant label")
		}
	}
	return labels, nil
}

// prepare returns the samples by original row number, and the distances to them.
func (k *Kernel) prepare(u round.Task, d *dataset.Data) (*dataset.Rows, *rows.Distances) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		k.data, k.samples, k.bytes = d, rows.Gather(u, d, &rows.Wanted{}), 0
		k.distances = rows.NewDistances(k.samples, nil)
		clear(k.kept)
	}
	return k.samples, k.distances
}

// pass returns, for the samples of a task, the sums of the rows of the round's matrix over all samples, weighted by the
// affinities to them.
func (k *Kernel) pass(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars) (_ []byte, failed error) {
	samples, from := k.prepare(u, d)
	n := samples.N
	kind, factor, columns, err := decodePass(v.Get(varPass), n)
	if err != nil {
		return nil, err
	}
	first, last := min(n, u.ID*BlockRows), min(n, (u.ID+1)*BlockRows)
	sums := make([]float64, 0, (last-first)*len(columns))
	size := 8 * n * (last - first)
	k.mu.Lock()
	block, taken := k.kept[u.ID]
	known := block != nil
	if !taken && size > 0 && k.bytes+size <= k.limit { // a second executor computes its own affinities
		block = make([]float64, n*(last-first))
		k.kept[u.ID], k.bytes = nil, k.bytes+size
		defer func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.data != d {
				return
			}
			if k.kept[u.ID] = block; failed != nil {
				delete(k.kept, u.ID)
				k.bytes -= size
			}
		}()
	}
	k.mu.Unlock()
	refs, shard := make([]dataset.RowRef, 1), func(uint32) *dataset.Rows { return samples }
	row, scratch := make([]float64, n), from.NewScratch()
	const some = 8    // rows that Distances compute together
	var own []float64 // without a block
	if block == nil {
		own = make([]float64, some*n)
	}
	for at := first; at < last; at += some {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows := min(some, last-at)
		squares := own
		if block != nil {
			squares = block[(at-first)*n : (at-first+rows)*n]
		}
		if !known {
			refs = refs[:0]
			for i := range rows {
				refs = append(refs, dataset.RowRef{Pos: uint32(at + i)})
			}
			from.To(squares[:rows*n], refs, shard, scratch)
			if kind == gaussianOfOthers {
				for i := range rows {
					affinities(squares[i*n:(i+1)*n], squares[i*n:(i+1)*n], gaussianOfOthers, factor, at+i)
				}
			}
		}
		for i := range rows {
			weights := squares[i*n : (i+1)*n]
			if kind != gaussianOfOthers {
				affinities(row, weights, kind, factor, at+i)
				weights = row
			}
			for _, column := range columns {
				sums = append(sums, num.Dot64(weights, column))
			}
		}
	}
	return num.Bytes64(sums), nil
}

// encodePass returns the bytes of varPass; the matrix is by column.
func encodePass(kind int, factor float64, columns []float64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(kind))
	b = append(b, num.Bytes64([]float64{factor})...)
	return append(b, num.Bytes64(columns)...)
}

// decodePass reads what encodePass wrote for n samples.
func decodePass(b []byte, n int) (kind int, factor float64, columns [][]float64, err error) {
	if len(b) < 16 || (len(b)-16)%(8*n) != 0 || binary.LittleEndian.Uint64(b) >= kinds {
		return 0, 0, nil, fmt.Errorf("the variable of a label enhancement has %s, which do not fit %s", units.Plural(len(b),
			"byte"), units.Plural(n, "sample"))
	}
	values := num.Float64s(b[16:])
	return int(binary.LittleEndian.Uint64(b)), num.Float64s(b[8:16])[0], slices.Collect(slices.Chunk(values, n)), nil
}
