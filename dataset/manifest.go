package dataset

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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

	// Shape says that the features of a row are an image; like names it is not part of the
	// digest. An algorithm that reads it writes it into Job.Params.
	Shape Shape `json:"shape,omitzero"`

	// Groups says what the rows belong to; nil: nothing.
	Groups *Groups `json:"groups,omitempty"`

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

// Digest returns the SHA-256, in hex, of what the manifest describes: shape,
// storage and the digests of the shards in order. Names are not part of it.
func (m *Manifest) Digest() string {
	h := sha256.New()
	h.Write([]byte("coppice-dataset\x00"))
	sparse := uint64(0)
	if m.Sparse {
		sparse = 1
	}
	for _, v := range []uint64{uint64(m.Format), uint64(m.Rows), uint64(m.Features), uint64(m.Labels), sparse, uint64(len(m.Shards))} {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	for _, s := range m.Shards {
		h.Write([]byte(s.Digest))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Same returns an error if two manifests with the same digest differ in what the digest does
// not cover: names, type of labels, shape, groups, or row numbers; other was stored first.
func (m *Manifest) Same(other *Manifest) error {
	return cmp.Or(m.SameNames(other), m.SameRows(other), m.SameLabels(other), m.SameShape(other), m.SameGroups(other))
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
func (m *Manifest) FeatureName(i int) string { return nameAt(m.FeatureNames, i) }

// SameNames returns an error that names the first feature or label whose names in two
// manifests with the same digest differ; other is the manifest that was stored first.
func (m *Manifest) SameNames(other *Manifest) error {
	for _, k := range []struct {
		what      string
		have, new []string
	}{{"feature", other.FeatureNames, m.FeatureNames}, {"label", other.LabelNames, m.LabelNames}} {
		if i := firstDifference(k.have, k.new); i < max(len(k.have), len(k.new)) {
			return fmt.Errorf("%s %d (counted from 0) is called %q, but in the new dataset %q", k.what, i, nameAt(k.have, i), nameAt(k.new, i))
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
	return fmt.Errorf("its labels are %s, the labels of the new dataset are %s", other.LabelType.String(other.Labels), m.LabelType.String(m.Labels))
}

// SameShape returns an error if the rows of two manifests with the same digest are images of
// different shapes; other is the manifest that was stored first.
func (m *Manifest) SameShape(other *Manifest) error {
	if m.Shape == other.Shape {
		return nil
	}
	return fmt.Errorf("the shape of its samples is %s, the shape in the new dataset is %s", cmp.Or(other.Shape.String(), "none"), cmp.Or(m.Shape.String(), "none"))
}

// SameRows returns an error if the rows of two manifests with the same digest have different
// numbers in their files, since other rows were left out; other is the manifest that was
// stored first.
func (m *Manifest) SameRows(other *Manifest) error {
	if a, b := other.Fill(), m.Fill(); a != b {
		return fmt.Errorf("its missing values are filled with %s, in the new dataset with %s", cmp.Or(a, "nothing"), cmp.Or(b, "nothing"))
	}
	if bytes.Equal(m.LeftOut, other.LeftOut) {
		return nil
	}
	return fmt.Errorf("other rows were left out for missing values (%d rows, in the new dataset %d)", other.LeftOut.count(), m.LeftOut.count())
}

// Density is the share of feature entries that are not zero, from 0 to 1.
func (m *Manifest) Density() float64 {
	if m.Rows == 0 || m.Features == 0 {
		return 0
	}
	return float64(m.NonZeros) / float64(m.Rows) / float64(m.Features)
}

// ShardSpan returns the positions [from, to) in the import order of the rows of shard i of s.
func ShardSpan(i, s, rows int) (from, to int) {
	return i * rows / s, (i + 1) * rows / s
}
