package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
)

// builder fills one shard; its rows come in any order.
type builder struct {
	rows  *Rows
	names []string
	from  int      // import position of the first row
	spans [][2]int // of a sparse shard: where each row's values are in X
	added int
}

func newBuilder(m *Manifest, shard int) *builder {
	from, to := ShardSpan(shard, len(m.Shards), m.Rows)
	n := to - from
	b := &builder{from: from, rows: &Rows{
		N: n, Features: m.Features, Labels: m.Labels, Sparse: m.Sparse,
		D: make([]float32, n*m.Labels), Row: make([]uint32, n),
	}}
	if m.Sparse {
		b.spans = make([][2]int, n)
	} else {
		b.rows.X = make([]float32, n*m.Features)
	}
	if m.HasValues {
		b.rows.Value = make([]float64, n)
	}
	if m.HasIntervals {
		b.rows.Interval = make([]float64, 2*n)
	}
	if m.HasRowNames {
		b.names = make([]string, n)
	}
	return b
}

// storedRow is a row in the form that its dataset stores.
type storedRow struct {
	position uint32 // in the import order
	number   uint32 // in the dataset
	columns  []uint32
	values   []float32
	labels   []float32
	numbers  []float64 // the exact number, then the interval, where the dataset has them
	name     string
}

func (b *builder) add(r *storedRow) {
	i := int(r.position) - b.from
	b.added++
	b.rows.Row[i] = r.number
	copy(b.rows.D[i*b.rows.Labels:], r.labels)
	numbers := r.numbers
	if b.rows.Value != nil {
		b.rows.Value[i], numbers = numbers[0], numbers[1:]
	}
	if b.rows.Interval != nil {
		copy(b.rows.Interval[2*i:], numbers)
	}
	if b.names != nil {
		b.names[i] = r.name
	}
	if !b.rows.Sparse {
		copy(b.rows.X[i*b.rows.Features:], r.values)
		return
	}
	from := len(b.rows.X)
	b.rows.X = append(b.rows.X, r.values...)
	b.rows.Index = append(b.rows.Index, r.columns...)
	b.spans[i] = [2]int{from, len(b.rows.X)}
}

// finish returns the shard. Every row must have been added.
func (b *builder) finish() (*Rows, []string, error) {
	if b.added != b.rows.N {
		return nil, nil, fmt.Errorf("dataset: a shard got %d samples, want %d: %w", b.added, b.rows.N, ErrChanged)
	}
	if b.rows.Sparse {
		if len(b.rows.X) > math.MaxUint32 {
			return nil, nil, fmt.Errorf("dataset: a shard would have %d non-zero values, at most %d are possible", len(b.rows.X), math.MaxUint32)
		}
		b.sort()
	}
	return b.rows, b.names, nil
}

// sort moves a sparse shard's values from the order of arrival to the order of rows.
func (b *builder) sort() {
	r := b.rows
	x, index := make([]float32, 0, len(r.X)), make([]uint32, 0, len(r.X))
	r.Start = make([]uint32, 1, r.N+1)
	for _, s := range b.spans {
		x = append(x, r.X[s[0]:s[1]]...)
		index = append(index, r.Index[s[0]:s[1]]...)
		r.Start = append(r.Start, uint32(len(x)))
	}
	r.X, r.Index = x, index
}

// partitioner assigns checked rows to the shards of manifest m.
type partitioner struct {
	m        *Manifest
	of       func(uint64) uint64
	row      storedRow
	rows     int
	nonZeros int64
	groups   *groupRows
}

func newPartitioner(m *Manifest) *partitioner {
	_, of := importOrder(m.Rows)
	return &partitioner{m: m, of: of, groups: newGroupRows(m)}
}

// assign returns the row in c in stored form, and its shard. The row is valid until the
// next call.
func (p *partitioner) assign(r *Row, c *checker) (*storedRow, int, error) {
	if p.rows >= p.m.Rows {
		return nil, 0, fmt.Errorf("%sthe file has more samples than the %d of the first pass: %w", prefix(c.info.File), p.m.Rows, ErrChanged)
	}
	if err := p.groups.add(c.info.File, r); err != nil {
		return nil, 0, err
	}
	number := uint64(p.rows) // of the rows that are not left out
	p.rows++
	p.nonZeros += int64(c.nonZeros)
	position := p.of(number)
	columns, values := c.stored(p.m.Sparse)
	p.row = storedRow{uint32(position), uint32(number), columns, values, c.labels, p.m.numbers(p.row.numbers[:0], r), r.Name}
	return &p.row, shardOf(int(position), len(p.m.Shards), p.m.Rows), nil
}

// finishGroups names the blob of the rows' groups in the manifest and returns it; nil: they
// have none.
func (p *partitioner) finishGroups(o *ImportOptions) []byte {
	blob := p.groups.finish(p.m)
	if blob != nil && o.Groups != nil {
		o.Groups(p.groups.rows)
	}
	return blob
}

// numbers appends what the shards keep of a row's numbers on a scale.
func (m *Manifest) numbers(dst []float64, r *Row) []float64 {
	if m.HasValues {
		dst = append(dst, r.Value)
	}
	if m.HasIntervals {
		dst = append(dst, r.Interval[:]...)
	}
	return dst
}

// numberCount is how many numbers on a scale the shards keep of each row.
func (m *Manifest) numberCount() (n int) {
	if m.HasValues {
		n++
	}
	if m.HasIntervals {
		n += 2
	}
	return n
}

// checkCounts returns an error that wraps ErrChanged if the numbers of rows and non-zeros
// are not those of the first pass.
func (p *partitioner) checkCounts() error {
	if p.rows != p.m.Rows || p.nonZeros != p.m.NonZeros {
		return fmt.Errorf("dataset: the first pass found %d samples with %d non-zero values, the second pass %d with %d: %w",
			p.m.Rows, p.m.NonZeros, p.rows, p.nonZeros, ErrChanged)
	}
	return nil
}

// encodeShard encodes rows and returns the entry for the manifest.
func encodeShard(r *Rows, names []string) ([]byte, ShardRef) {
	b := EncodeShard(r, names)
	sum := sha256.Sum256(b)
	return b, ShardRef{Digest: hex.EncodeToString(sum[:]), Rows: r.N, Bytes: int64(len(b))}
}
