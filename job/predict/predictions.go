package predict

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/units"
)

// blockRows is the number of samples that are read and predicted at a time.
const blockRows = 1024

// Block is a block of samples with their predictions.
type Block struct {
	Rows   *dataset.Rows
	Names  []string // nil if samples have none
	values []float32
	width  int           // values per sample
	done   chan struct{} // receives when values are complete
}

// Row returns the prediction of sample i of the block.
func (p *Block) Row(i int) []float32 { return p.values[i*p.width : (i+1)*p.width] }

// Name returns the name of sample i of the block, or else its row number in the file.
func (p *Block) Name(i int) string {
	if p.Names != nil {
		return p.Names[i]
	}
	return strconv.FormatUint(uint64(p.Rows.Row[i]), 10)
}

// ofTargets is a model whose predictions are targets in their bounds.
type ofTargets struct {
	algorithms.Model
	bounds *dataset.Bounds
}

// Predict implements algorithms.Model.
func (t *ofTargets) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	t.Model.Predict(dst, refs, shard, scratch)
	for n := len(t.bounds.Low); len(dst) > 0; dst = dst[n:] {
		t.bounds.Unscale(dst[:n])
	}
}

// predictor predicts blocks of samples on several threads, and calls take with them in their order.
type predictor struct {
	model algorithms.Model
	take  func(*Block) error

	refs  []dataset.RowRef
	free  chan *Block // for the next blocks
	work  chan *Block
	order chan *Block // in the order of the file
	lanes sync.WaitGroup
	ended chan struct{} // closed when take is not called any more

	mu  sync.Mutex
	err error // the error of take
}

// newPredictor starts the threads. The caller calls end, which stops them. width is the number of values for a sample.
func newPredictor(m algorithms.Model, width, threads int, take func(*Block) error) *predictor {
	n := 2 * threads
	p := &predictor{
		model: m, take: take, refs: make([]dataset.RowRef, blockRows),
		free: make(chan *Block, n), work: make(chan *Block, n), order: make(chan *Block, n), ended: make(chan struct{}),
	}
	for i := range p.refs {
		p.refs[i].Pos = uint32(i)
	}
	for range n {
		p.free <- &Block{width: width, values: make([]float32, blockRows*width), done: make(chan struct{}, 1)}
	}
	for range threads {
		p.lanes.Go(p.lane)
	}
	go p.hand()
	return p
}

// add predicts a block. Its error is the error of an earlier block.
func (p *predictor) add(rows *dataset.Rows, names []string) error {
	if err := p.failure(); err != nil {
		return err
	}
	b := <-p.free
	b.Rows, b.Names = rows, names
	p.order <- b
	p.work <- b
	return nil
}

func (p *predictor) lane() {
	scratch := p.model.NewScratch()
	for b := range p.work {
		rows := b.Rows
		p.model.Predict(b.values[:rows.N*b.width], p.refs[:rows.N], func(uint32) *dataset.Rows { return rows }, scratch)
		b.done <- struct{}{}
	}
}

// hand calls take with the blocks, until take returns an error.
func (p *predictor) hand() {
	defer close(p.ended)
	for b := range p.order {
		<-b.done
		if p.failure() == nil {
			if err := p.take(b); err != nil {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
			}
		}
		p.free <- b
	}
}

// failure returns the error of take, or nil.
func (p *predictor) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// end waits for all blocks and returns the error of take.
func (p *predictor) end() error {
	close(p.work)
	close(p.order)
	p.lanes.Wait()
	<-p.ended
	return p.err
}

// WriteRows writes the row numbers of the samples and, if they have names, the names. done is the number of samples
// that were read. If it differs from their number when they were counted, the file has changed, which is an error.
func WriteRows(z *npy.Archive, src dataset.Source, done, counted int) error {
	if done != counted {
		return fmt.Errorf("%s, then %s: %w", units.Plural(counted, "sample"), units.Plural(done, "sample"),
			dataset.ErrChanged)
	}
	if err := write.WriteRowNumbers(z, src, counted); err != nil || !src.Info().HasRowNames {
		return err
	}
	return write.WriteRowNames(z, src, counted)
}

// derivation says what is derived from a predicted distribution: the class, or the numbers of ordinal labels.
type derivation struct {
	of     dataset.LabelType
	labels []string
}

// columns returns the names of the derived values.
func (d *derivation) columns() []string {
	switch {
	case d.of.Classes:
		return []string{"predicted_class"}
	case d.of.Scale != nil:
		return []string{"expected", "median", "mode"}
	}
	return nil
}

// numbers appends the numbers of a distribution of ordinal labels, in the order of columns.
func (d *derivation) numbers(dst []float64, p []float32) []float64 {
	s := d.of.Scale
	return append(dst, s.Expected(p), s.Median(p), s.Mode(p))
}

// fields appends the derived values of a distribution as texts.
func (d *derivation) fields(record []string, p []float32) []string {
	switch {
	case d.of.Classes:
		return append(record, d.labels[dataset.Greatest(p)])
	case d.of.Scale != nil:
		var numbers [3]float64
		for _, v := range d.numbers(numbers[:0], p) {
			record = append(record, units.InFull(v))
		}
	}
	return record
}

// valueText writes a predicted value with the fewest digits that distinguish it from all others. A large number has no
// exponent.
func valueText(v float32) string {
	const large = 1e6
	if v >= large || v <= -large {
		return strconv.FormatFloat(float64(v), 'f', -1, 32)
	}
	return strconv.FormatFloat(float64(v), 'g', -1, 32)
}

// derivedArrays keeps the derived values of all samples for the arrays of an archive: 4 bytes per sample for a class,
// 12 for numbers.
type derivedArrays struct {
	*derivation
	classes []int32
	numbers [3][]float32
}

// add adds the prediction of a sample.
func (a *derivedArrays) add(p []float32) {
	switch {
	case a.of.Classes:
		a.classes = append(a.classes, int32(dataset.Greatest(p)))
	case a.of.Scale != nil:
		var numbers [3]float64
		for i, v := range a.derivation.numbers(numbers[:0], p) {
			a.numbers[i] = append(a.numbers[i], float32(v))
		}
	}
}

// write writes the arrays predicted_class (int64, label numbers), or expected, median and mode (float32).
func (a *derivedArrays) write(z *npy.Archive) error {
	if a.of.Classes {
		return writeInts(z, "predicted_class", a.classes)
	}
	for i, name := range a.columns() {
		if err := writeFloats(z, name, a.numbers[i], 1); err != nil {
			return err
		}
	}
	return nil
}

func writeInts[T int32 | uint16 | uint32](z *npy.Archive, name string, values []T) error {
	out, err := z.Ints(name, len(values))
	if err != nil {
		return err
	}
	for _, v := range values {
		if err := out.Write([]int64{int64(v)}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// columnNames returns the columns of labels in a file with other columns. If a label has the name of another column,
// all labels have the prefix label_. Then no two columns have the same name.
func columnNames(labels, others []string) []string {
	if !slices.ContainsFunc(labels, func(name string) bool { return slices.Contains(others, name) }) {
		return labels
	}
	prefixed := make([]string, len(labels))
	for i, name := range labels {
		prefixed[i] = "label_" + name
	}
	return prefixed
}

func writeFloats(z *npy.Archive, name string, values []float32, labels int) error {
	out, err := z.Floats(name, len(values)/labels, labels)
	if err != nil {
		return err
	}
	return cmp.Or(out.Write(values), out.Flush())
}
