package dataset

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Check returns an error, which wraps ErrFormat, if no import makes such a manifest.
func (m *Manifest) Check() error {
	info := Info{
		Rows: m.Rows, Features: m.Features, Labels: m.Labels,
		FeatureNames: m.FeatureNames, LabelNames: m.LabelNames, LabelColumns: m.LabelColumns, Shape: m.Shape,
	}
	if m.Format != ManifestFormat {
		return fmt.Errorf("dataset: the manifest has format %d, but this version reads format %d: %w", m.Format, ManifestFormat, ErrFormat)
	}
	if err := info.check(); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: %w: %w", err, ErrFormat)
	}
	if err := m.LabelType.check(m.Labels, m.HasValues); err != nil || m.HasIntervals && m.LabelType.Scale == nil {
		return fmt.Errorf("dataset: the labels in the manifest are not possible: %w", errors.Join(err, ErrFormat))
	}
	if err := m.Groups.check(m.Rows); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: %w", errors.Join(err, ErrFormat))
	}
	if err := m.Reading.check(); err != nil {
		return fmt.Errorf("dataset: the manifest has unknown options for reading the file: %w: %w", err, ErrFormat)
	}
	if _, err := ParseMissing(m.Missing); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: %w: %w", err, ErrFormat)
	}
	if len(m.LeftOut) > maxLeftOut || m.FileRows() > MaxRows {
		return fmt.Errorf("dataset: the manifest is damaged: %d omitted rows are not possible: %w", m.FileRows()-m.Rows, ErrFormat)
	}
	if _, err := m.LeftOut.Rows(m.FileRows()); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: the list of omitted rows is wrong: %w", ErrFormat)
	}
	s := len(m.Shards)
	if m.Rows < 1 || m.NonZeros < 0 || m.NonZeros > int64(m.Rows)*int64(m.Features) ||
		m.Sparse != SparseStorage(m.Rows, m.Features, m.NonZeros) ||
		s != ShardCount(m.Rows, contentBytes(m.Rows, m.Features, m.Labels, m.NonZeros, m.Sparse)) {
		return fmt.Errorf("dataset: the manifest is damaged: %d samples, %d non-zero values and %d shards do not fit together: %w", m.Rows, m.NonZeros, s, ErrFormat)
	}
	for i, ref := range m.Shards {
		from, to := ShardSpan(i, s, m.Rows)
		if digest, err := hex.DecodeString(ref.Digest); err != nil || len(digest) != 32 || ref.Rows != to-from || ref.Bytes < shardHeader {
			return fmt.Errorf("dataset: the manifest is damaged: entry %d of its list of shards is wrong: %w", i, ErrFormat)
		}
	}
	return nil
}

// CheckShard returns an error, which wraps ErrFormat, if r cannot be shard i: its shape or
// its row numbers are not those of the manifest.
func (m *Manifest) CheckShard(i int, r *Rows) error {
	from, to := ShardSpan(i, len(m.Shards), m.Rows)
	if r.N != to-from || r.Features != m.Features || r.Labels != m.Labels || r.Sparse != m.Sparse ||
		(r.Value != nil) != m.HasValues || (r.Interval != nil) != m.HasIntervals {
		return fmt.Errorf("dataset: shard %d does not match the manifest: it has %d samples, %d features and %d labels: %w", i, r.N, r.Features, r.Labels, ErrFormat)
	}
	at, _ := importOrder(m.Rows)
	for j, row := range r.Row {
		if want := at(uint64(from + j)); uint64(row) != want {
			return fmt.Errorf("dataset: shard does not match the manifest: position %d of shard %d has sample %d, want %d: %w", j, i, row, want, ErrFormat)
		}
	}
	return nil
}

// String describes the dataset in one line.
func (m *Manifest) String() string {
	storage := "dense"
	if m.Sparse {
		storage = "sparse"
	}
	return fmt.Sprintf("%s samples x %s features, %s labels, %s (%.3g %% non-zero), %s shards, %.1f MiB",
		units.Count(m.Rows), units.Count(m.Features), units.Count(m.Labels), storage, 100*m.Density(), units.Count(len(m.Shards)), float64(m.Bytes())/(1<<20))
}

// Bytes is the size of all encoded shards.
func (m *Manifest) Bytes() (n int64) {
	for _, s := range m.Shards {
		n += s.Bytes
	}
	return n
}

// LabelName returns the name of label i, or its number.
func (m *Manifest) LabelName(i int) string {
	if i < len(m.LabelNames) {
		return m.LabelNames[i]
	}
	return fmt.Sprint(i)
}

// Stored returns the rows of an imported dataset in the order of the file. names has the
// names of each shard's rows; it is nil if rows have no names.
func Stored(m *Manifest, shards []*Rows, names [][]string) Source {
	return &stored{m, shards, names}
}

type stored struct {
	m      *Manifest
	shards []*Rows
	names  [][]string
}

// Info implements Source.
func (s *stored) Info() Info {
	return Info{
		Rows: s.m.Rows, Features: s.m.Features, Labels: s.m.Labels,
		FeatureNames: s.m.FeatureNames, LabelNames: s.m.LabelNames, HasRowNames: s.names != nil,
		LabelColumns: s.m.LabelColumns, LabelType: s.m.LabelType, Shape: s.m.Shape,
		HasValues: s.m.HasValues, HasIntervals: s.m.HasIntervals, Reading: s.m.Reading,
	}
}

// Scan implements Source.
func (s *stored) Scan(f func(*Row) error) error {
	_, of := importOrder(s.m.Rows)
	row := Row{}
	for i := range s.m.Rows {
		position := int(of(uint64(i)))
		shard := shardOf(position, len(s.shards), s.m.Rows)
		from, _ := ShardSpan(shard, len(s.shards), s.m.Rows)
		row.Number = i
		s.shards[shard].row(position-from, &row)
		if s.names != nil {
			row.Name = s.names[shard][position-from]
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// row copies row i to dst.
func (r *Rows) row(i int, dst *Row) {
	var values []float32
	if dst.Sparse = r.Sparse; r.Sparse {
		dst.Columns, values = r.NonZeros(i)
	} else {
		values = r.Dense(i)
	}
	dst.Values, dst.Labels = dst.Values[:0], dst.Labels[:0]
	for _, v := range values {
		dst.Values = append(dst.Values, float64(v))
	}
	for _, d := range r.Label(i) {
		dst.Labels = append(dst.Labels, float64(d))
	}
	if r.Value != nil {
		dst.Value = r.Value[i]
	}
	if r.Interval != nil {
		dst.Interval = [2]float64(r.Interval[2*i:])
	}
}
