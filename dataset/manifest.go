package dataset

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// ManifestFormat is the version of Manifest's JSON form.
const ManifestFormat = 1

// Manifest describes an imported dataset. The dataset exists once its manifest is committed.
type Manifest struct {
	Format   int        `json:"format"`
	Rows     int        `json:"rows"`
	Features int        `json:"features"`
	Labels   int        `json:"labels"`
	NonZeros int64      `json:"non_zeros"` // non-zero feature entries over all rows
	Sparse   bool       `json:"sparse"`
	Shards   []ShardRef `json:"shards"` // their number is a power of two

	FeatureNames []string `json:"feature_names,omitempty"` // empty or Features long
	LabelNames   []string `json:"label_names,omitempty"`   // empty or Labels long
	HasRowNames  bool     `json:"has_row_names,omitempty"` // in the shards

	// LabelType says what the labels are; like names it is not part of the digest. An
	// algorithm that reads a scale's numbers writes them into Job.Params.
	LabelType LabelType `json:"label_type,omitzero"`
	// HasValues and HasIntervals: the rows in the shards have a Value, an Interval.
	HasValues    bool `json:"has_values,omitempty"`
	HasIntervals bool `json:"has_intervals,omitempty"`
	// HasWeights: the rows in the shards have a Weight. They are not all 1.
	HasWeights bool `json:"has_weights,omitempty"`

	// Shape says that the features of a row are an image; like names it is not part of the
	// digest. An algorithm that reads it writes it into Job.Params.
	Shape Shape `json:"shape,omitzero"`

	// Groups says what the rows belong to; nil: nothing. It is about the rows of Divided.
	Groups *Groups `json:"groups,omitempty"`

	// Validation says that the last rows are validation rows of every job; nil: a job draws its own.
	Validation *OwnValidation `json:"validation,omitempty"`

	// LabelColumns says which columns of the file were labels, for later files; like
	// names it is not part of the digest.
	LabelColumns LabelColumns `json:"label_columns,omitzero"`

	// Missing is what Missing.String of the import wrote; empty: refused. It and the
	// next two are not part of the digest either; Job.Fill has what decides a model.
	Missing string `json:"missing,omitempty"`
	// LeftOut lists the rows of the file that were left out; the others are the
	// dataset's rows, in their order.
	LeftOut LeftOut `json:"left_out,omitempty"`
	// CountedFrom is where a libsvm file begins to count features.
	CountedFrom Counting `json:"counted_from,omitempty"`

	// Reading says how the file was read, for later files; like names it is not part of the
	// digest.
	Reading Reading `json:"reading,omitzero"`

	// MeanLabel is the mean label distribution over all rows, for display; it is
	// not part of the digest.
	MeanLabel []float64 `json:"mean_label,omitempty"`
}

// ShardRef names one shard's blob.
type ShardRef struct {
	Digest string `json:"digest"` // SHA-256 of the encoded shard, in hex
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"` // size of the encoded shard
}

// Check returns an error, which wraps ErrFormat, if no dataset has such a shard.
func (r ShardRef) Check() error {
	if digest, err := hex.DecodeString(r.Digest); err != nil || len(digest) != sha256.Size || r.Rows < 1 ||
		r.Rows > MaxRows || r.Bytes < shardHeader {
		return fmt.Errorf("dataset: a shard with the digest %.80q, %d samples and %d bytes is not possible: %w", r.Digest,
			r.Rows, r.Bytes, ErrFormat)
	}
	return nil
}

// Digest returns the SHA-256, in hex, of what the manifest describes: shape,
// storage, the digests of the shards in order, and the number of validation rows. Names are not part of it.
func (m *Manifest) Digest() string {
	h := sha256.New()
	h.Write([]byte("coppice-dataset\x00"))
	sparse := uint64(0)
	if m.Sparse {
		sparse = 1
	}
	for _, v := range []uint64{uint64(m.Format), uint64(m.Rows), uint64(m.Features), uint64(m.Labels), sparse,
		uint64(len(m.Shards))} {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	for _, s := range m.Shards {
		h.Write([]byte(s.Digest))
	}
	if v := m.Validation; v != nil {
		h.Write(binary.LittleEndian.AppendUint64([]byte("validation\x00"), uint64(v.Rows)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Check returns an error, which wraps ErrFormat, if no import makes such a manifest.
func (m *Manifest) Check() error {
	info := Info{
		Rows: m.Rows, Features: m.Features, Labels: m.Labels,
		FeatureNames: m.FeatureNames, LabelNames: m.LabelNames, LabelColumns: m.LabelColumns, Shape: m.Shape,
	}
	if m.Format != ManifestFormat {
		return fmt.Errorf("dataset: the manifest has format %d, but this version reads format %d: %w", m.Format,
			ManifestFormat, ErrFormat)
	}
	if err := info.Check(); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: %w: %w", err, ErrFormat)
	}
	if err := m.LabelType.check(m.Labels, m.HasValues); err != nil || m.HasIntervals && m.LabelType.Scale == nil {
		return fmt.Errorf("dataset: the labels in the manifest are not possible: %w", errors.Join(err, ErrFormat))
	}
	if v := m.Validation; v != nil && (v.Rows < 1 || v.Rows >= m.Rows || v.FileRows < v.Rows ||
		v.FileRows-v.Rows > m.LeftOut.Count()) {
		return fmt.Errorf("dataset: the manifest is damaged: %d validation samples of %d are not possible: %w", v.Rows,
			m.Rows, ErrFormat)
	}
	if m.Groups != nil {
		if err := m.Groups.check(m.Divided().Rows); err != nil {
			return fmt.Errorf("dataset: the manifest is damaged: %w", errors.Join(err, ErrFormat))
		}
	}
	if err := m.Reading.check(); err != nil {
		return fmt.Errorf("dataset: the manifest has unknown options for reading the file: %w: %w", err, ErrFormat)
	}
	if _, err := ParseMissing(m.Missing); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: %w: %w", err, ErrFormat)
	}
	if len(m.LeftOut) > MaxLeftOut || m.FileRows() > MaxRows {
		return fmt.Errorf("dataset: the manifest is damaged: %d omitted rows are not possible: %w",
			m.FileRows()-m.Rows, ErrFormat)
	}
	if _, err := m.LeftOut.Rows(m.FileRows()); err != nil {
		return fmt.Errorf("dataset: the manifest is damaged: the list of omitted rows is wrong: %w", ErrFormat)
	}
	s := len(m.Shards)
	if m.Rows < 1 || m.NonZeros < 0 || m.NonZeros > int64(m.Rows)*int64(m.Features) ||
		m.Sparse != SparseStorage(m.Rows, m.Features, m.NonZeros) ||
		s != ShardCount(m.Rows, m.ContentBytes()) {
		return fmt.Errorf("dataset: the manifest is damaged: %d samples, %d non-zero values and %d shards do not fit "+
			"together: %w", m.Rows, m.NonZeros, s, ErrFormat)
	}
	for i, ref := range m.Shards {
		from, to := ShardSpan(i, s, m.Rows)
		if ref.Check() != nil || ref.Rows != to-from {
			return fmt.Errorf("dataset: the manifest is damaged: entry %d of its list of shards is wrong: %w", i, ErrFormat)
		}
	}
	return nil
}

// CheckShard returns an error, which wraps ErrFormat, if r cannot be shard i: its shape or
// its row numbers differ from the manifest.
func (m *Manifest) CheckShard(i int, r *Rows) error {
	from, to := ShardSpan(i, len(m.Shards), m.Rows)
	if r.N != to-from || r.Features != m.Features || r.Labels != m.Labels || r.Sparse != m.Sparse ||
		(r.Value != nil) != m.HasValues || (r.Interval != nil) != m.HasIntervals || (r.Weight != nil) != m.HasWeights ||
		r.Incomplete != m.LabelType.Incomplete {
		return fmt.Errorf("dataset: shard %d does not match the manifest: it has %d samples, %d features and %d labels: %w",
			i, r.N, r.Features, r.Labels, ErrFormat)
	}
	at, _ := ImportOrder(m.Rows)
	for j, row := range r.Row {
		if want := at(uint64(from + j)); uint64(row) != want {
			return fmt.Errorf("dataset: shard does not match the manifest: position %d of shard %d has sample %d, want %d: %w",
				j, i, row, want, ErrFormat)
		}
	}
	return nil
}

// Same returns an error if two manifests with the same digest differ in what the digest does
// not cover: names, type of labels, shape, groups, or row numbers; other was stored first.
func (m *Manifest) Same(other *Manifest) error {
	return cmp.Or(m.SameNames(other), m.SameRows(other), m.SameLabels(other), m.SameShape(other), m.SameGroups(other))
}

// SameNames returns an error that names the first feature or label whose names in two
// manifests with the same digest differ; other is the manifest that was stored first.
func (m *Manifest) SameNames(other *Manifest) error {
	for _, k := range []struct {
		what      string
		have, new []string
	}{{"feature", other.FeatureNames, m.FeatureNames}, {"label", other.LabelNames, m.LabelNames}} {
		if i := FirstDifference(k.have, k.new); i < max(len(k.have), len(k.new)) {
			return fmt.Errorf("%s %d (counted from 0) is called %q, but in the new dataset %q", k.what, i, NameAt(k.have, i),
				NameAt(k.new, i))
		}
	}
	return nil
}

// SameLabels returns an error if the labels of two manifests with the same digest are of
// different types; other is the manifest that was stored first.
func (m *Manifest) SameLabels(other *Manifest) error {
	if m.LabelType.Same(&other.LabelType) {
		return nil
	}
	return fmt.Errorf("its labels are %s, the labels of the new dataset are %s", other.LabelType.String(other.Labels),
		m.LabelType.String(m.Labels))
}

// SameShape returns an error if the rows of two manifests with the same digest are images of
// different shapes; other is the manifest that was stored first.
func (m *Manifest) SameShape(other *Manifest) error {
	if m.Shape == other.Shape {
		return nil
	}
	return fmt.Errorf("the shape of its samples is %s, the shape in the new dataset is %s",
		cmp.Or(other.Shape.String(), "none"), cmp.Or(m.Shape.String(), "none"))
}

// SameRows returns an error if the rows of two manifests with the same digest have different
// numbers in their files, since other rows were left out; other is the manifest that was
// stored first.
func (m *Manifest) SameRows(other *Manifest) error {
	if a, b := other.Fill(), m.Fill(); a != b {
		return fmt.Errorf("its missing values are filled with %s, in the new dataset with %s", cmp.Or(a, "nothing"),
			cmp.Or(b, "nothing"))
	}
	if bytes.Equal(m.LeftOut, other.LeftOut) && m.Divided().FileRows() == other.Divided().FileRows() {
		return nil
	}
	return fmt.Errorf("other rows were left out for missing values (%d rows, in the new dataset %d)",
		other.LeftOut.Count(), m.LeftOut.Count())
}

// OwnValidation counts the validation rows of a dataset, which come from a file of their own and follow the others.
type OwnValidation struct {
	Rows     int `json:"rows"`
	FileRows int `json:"file_rows"` // with those that were left out
}

// Divided describes the rows that splits divide: all but validation rows of a file of their own. NonZeros is an
// estimate: the mean of all rows, for each of these rows.
func (m *Manifest) Divided() *Manifest {
	v := m.Validation
	if v == nil {
		return m
	}
	d := *m
	d.Validation, d.Rows, d.LeftOut = nil, m.Rows-v.Rows, nil
	d.NonZeros = int64(float64(m.NonZeros) / float64(m.Rows) * float64(d.Rows))
	last, end := -1, m.FileRows()-v.FileRows
	for _, row := range m.LeftOutRows() {
		if row < end {
			d.LeftOut.Add(last, row)
			last = row
		}
	}
	return &d
}

// KeepValidation has a split name the first of the validation rows of the dataset, if it has some.
func (m *Manifest) KeepValidation(s *Split) {
	if m.Validation != nil {
		s.ValidationFrom = m.Rows - m.Validation.Rows
	}
}

// Groups says what the rows of a dataset belong to, such as persons. A blob has the group
// of each row, as a list of folds does: leave-one-group-out is the split that the blob
// lists. Like names they are not part of the dataset's digest.
type Groups struct {
	Digest string   `json:"digest"` // of EncodeFolds of the rows' groups
	Names  []string `json:"names"`  // by group: sorted, by value where all are numbers
}

// KeepGroups has a split name the groups, if there are at least two.
func (m *Manifest) KeepGroups(s *Split) {
	if m.Groups != nil && len(m.Groups.Names) > 1 {
		s.Groups = m.Groups.Digest
	}
}

// MaxGroups bounds the number of groups, and MaxGroupBytes their names, in bytes.
const (
	MaxGroups     = MaxFolds
	MaxGroupBytes = 1 << 20
)

// check returns an error if no import makes such groups of so many rows.
func (g *Groups) check(rows int) error {
	digest, err := hex.DecodeString(g.Digest)
	if n := len(g.Names); err != nil || len(digest) != sha256.Size || n < 1 || n > MaxGroups || n > rows {
		return fmt.Errorf("the dataset's description is damaged: %d groups of %d samples are not possible: %w", len(g.Names),
			rows, ErrFormat)
	}
	bytes := 0
	for _, name := range g.Names {
		if bytes += len(name); name == "" || bytes > MaxGroupBytes {
			return fmt.Errorf("the dataset's description is damaged: a group has no name, or the names are too long: %w",
				ErrFormat)
		}
	}
	return CheckDistinct("groups", g.Names)
}

// Check returns an error if b is no list of the groups of so many rows, in which each group has a
// row. It wraps ErrFormat.
func (g *Groups) Check(b []byte, rows int) error {
	of, err := DecodeFolds(b, rows)
	if err != nil {
		return err
	}
	counts := make([]int, len(g.Names))
	for i, group := range of {
		if int(group) >= len(counts) {
			return fmt.Errorf("the list of groups is damaged: sample %d is in group %d, but there are %d groups: %w", i, group,
				len(counts), ErrFormat)
		}
		counts[group]++
	}
	if i := slices.Index(counts, 0); i >= 0 {
		return fmt.Errorf("the list of groups is damaged: no sample is in the group %q: %w", g.Names[i], ErrFormat)
	}
	return nil
}

// SameGroups returns an error if the rows of two manifests with the same digest belong to
// other groups; other is the manifest that was stored first.
func (m *Manifest) SameGroups(other *Manifest) error {
	a, b := m.Groups, other.Groups
	if (a == nil) == (b == nil) && (a == nil || a.Digest == b.Digest && slices.Equal(a.Names, b.Names)) {
		return nil
	}
	return fmt.Errorf("its samples have %s, the samples of the new dataset have %s", other.Groups, m.Groups)
}

// String counts the groups; nil: none.
func (g *Groups) String() string {
	switch {
	case g == nil:
		return "no groups"
	case len(g.Names) == 1:
		return "1 group"
	}
	return fmt.Sprintf("%d groups", len(g.Names))
}

// Fill returns Missing.By of the import: jobs fill the missing features that the shards have as
// NaN.
func (m *Manifest) Fill() string {
	missing, err := ParseMissing(m.Missing)
	if err != nil {
		return ""
	}
	return missing.By
}

// FeatureName returns the name of feature i; empty: it has none.
func (m *Manifest) FeatureName(i int) string { return NameAt(m.FeatureNames, i) }

// Density is the share of feature entries that are not zero, from 0 to 1.
func (m *Manifest) Density() float64 {
	if m.Rows == 0 || m.Features == 0 {
		return 0
	}
	return float64(m.NonZeros) / float64(m.Rows) / float64(m.Features)
}

// String describes the dataset in one line.
func (m *Manifest) String() string {
	storage := "dense"
	if m.Sparse {
		storage = "sparse"
	}
	return fmt.Sprintf("%s samples x %s features, %s labels, %s (%.3g %% non-zero), %s shards, %.1f MiB",
		units.Count(m.Rows), units.Count(m.Features), units.Count(m.Labels), storage, 100*m.Density(),
		units.Count(len(m.Shards)), float64(m.Bytes())/(1<<20))
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

// The rule by which a dataset is cut into shards (design section 8.2). Changing
// any of these numbers changes every model.
const (
	shardBytes    = 8 << 20 // a shard is at most about this large
	minShards     = 16      // where the rows allow
	minShardRows  = 8       // on average
	SparseDivisor = 4       // sparse storage below 1/4 of non-zero entries
)

// ShardCount returns the number of shards of a dataset of so many rows and
// content bytes: the smallest power of two that keeps a shard at 8 MiB or less,
// at least 16, but at most rows/8, and never less than one.
func ShardCount(rows int, bytes int64) int {
	limit := 1
	for limit*2 <= rows/minShardRows {
		limit *= 2
	}
	s := minShards
	for s < limit && int64(s)*shardBytes < bytes {
		s *= 2
	}
	return min(s, limit)
}

// SparseStorage reports whether a dataset is stored sparse: if and only if under
// a quarter of its rows×features entries are not zero.
func SparseStorage(rows, features int, nonZeros int64) bool {
	return nonZeros*SparseDivisor < int64(rows)*int64(features)
}

// ContentBytes is the size that ShardCount goes by: row numbers, labels and
// features as stored; names do not count.
func (m *Manifest) ContentBytes() int64 {
	n := int64(m.Rows)
	b := 4*n + 4*n*int64(m.Labels)
	if m.Sparse {
		return b + 4*n + 8*m.NonZeros
	}
	return b + 4*n*int64(m.Features)
}

// ShardSpan returns the positions [from, to) in the import order of the rows of shard i of s.
func ShardSpan(i, s, rows int) (from, to int) {
	return i * rows / s, (i + 1) * rows / s
}

// ImportOrder is the permutation that scatters rows over shards: position j of
// the import order holds row at(j), and row r is at position of(r). Its key is
// the same for every dataset.
func ImportOrder(rows int) (at, of func(uint64) uint64) {
	p := num.NewPermutation(num.NewKey(0, "dataset/import"), 0, 0, uint64(rows))
	return p.At, p.Inverse
}

// ShardOf returns the shard, of s, whose ShardSpan contains position j of rows.
func ShardOf(j, s, rows int) int { return ((j+1)*s - 1) / rows }

// LeftOutRows lists the rows of the file that were left out for missing values, by
// their numbers in it.
func (m *Manifest) LeftOutRows() []int {
	rows, err := m.LeftOut.Rows(m.FileRows())
	if err != nil { // Check refuses such a manifest
		return nil
	}
	return rows
}

// FileRows is the number of rows of the file that the dataset was imported from.
func (m *Manifest) FileRows() int { return m.Rows + m.LeftOut.Count() }

// FileRow returns the number that each row of the dataset has in the file that it
// was imported from; nil where it is the same.
func (m *Manifest) FileRow() []int {
	out := m.LeftOutRows()
	if len(out) == 0 {
		return nil
	}
	kept := make([]int, 0, m.Rows)
	for row := range m.FileRows() {
		if len(out) > 0 && out[0] == row {
			out = out[1:]
		} else {
			kept = append(kept, row)
		}
	}
	return kept
}

// ToFile replaces each row number of the dataset by the row's number in the file.
// A row that the dataset does not have is an error that wraps ErrFormat.
func (m *Manifest) ToFile(rows []uint32) error {
	kept := m.FileRow()
	for i, row := range rows {
		if int64(row) >= int64(m.Rows) {
			return fmt.Errorf("dataset: there is no row %d among the %d rows: %w", row, m.Rows, ErrFormat)
		}
		if kept != nil {
			rows[i] = uint32(kept[row])
		}
	}
	return nil
}
