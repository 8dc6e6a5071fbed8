// Package datasettest gives tests sources of given rows, files, and checks of errors.
package datasettest

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
)

// Listed is a Source of given rows.
type Listed struct {
	Described dataset.Info
	Rows      []dataset.Row
	Scans     int // scans so far
	// change, where set, is called before each scan.
	Change func(l *Listed)
}

// Info implements dataset.Source.
func (l *Listed) Info() dataset.Info { return l.Described }

// Scan implements dataset.Source.
func (l *Listed) Scan(f func(*dataset.Row) error) error {
	l.Scans++
	if l.Change != nil {
		l.Change(l)
	}
	for i := range l.Rows {
		row := l.Rows[i]
		row.Number = i
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// SomeRows returns n good rows of 2 features and 2 labels.
func SomeRows(n int) *Listed {
	l := &Listed{Described: dataset.Info{File: "some.csv", Rows: n, Features: 2, Labels: 2}}
	for i := range n {
		l.Rows = append(l.Rows, dataset.Row{Values: []float64{float64(i), 1}, Labels: []float64{0.25, 0.75}})
	}
	return l
}

// Collect returns copies of the rows of a source.
func Collect(t *testing.T, src dataset.Source) []dataset.Row {
	t.Helper()
	rows, err := TryCollect(src)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TryCollect returns copies of the rows of a source, or the error of its scan.
func TryCollect(src dataset.Source) (rows []dataset.Row, err error) {
	err = src.Scan(func(r *dataset.Row) error {
		c := *r
		c.Text = ""
		c.Columns = append([]uint32(nil), r.Columns...)
		c.Values = append([]float64(nil), r.Values...)
		c.Labels = append([]float64(nil), r.Labels...)
		rows = append(rows, c)
		return nil
	})
	return rows, err
}

// Dense returns the features of r with their zeros.
func Dense(r dataset.Row, features int) []float64 {
	if !r.Sparse {
		return r.Values
	}
	x := make([]float64, features)
	for i, c := range r.Columns {
		x[c] = r.Values[i]
	}
	return x
}

// WriteFile writes a file into a new folder, and returns its path.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// MustContain checks that err is set and says all of parts.
func MustContain(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// MustBe checks that err is target.
func MustBe(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v is not %v", err, target)
	}
}

// StoredSource returns the rows of an imported dataset in the order of the file. names has the
// names of each shard's rows; it is nil if rows have no names.
func StoredSource(m *dataset.Manifest, shards []*dataset.Rows, names [][]string) dataset.Source {
	return &stored{m, shards, names}
}

type stored struct {
	m      *dataset.Manifest
	shards []*dataset.Rows
	names  [][]string
}

// Info implements Source.
func (s *stored) Info() dataset.Info {
	return dataset.Info{
		Rows: s.m.Rows, Features: s.m.Features, Labels: s.m.Labels,
		FeatureNames: s.m.FeatureNames, LabelNames: s.m.LabelNames, HasRowNames: s.names != nil,
		LabelColumns: s.m.LabelColumns, LabelType: s.m.LabelType, Shape: s.m.Shape,
		HasValues: s.m.HasValues, HasIntervals: s.m.HasIntervals, HasWeights: s.m.HasWeights, Reading: s.m.Reading,
	}
}

// Scan implements Source.
func (s *stored) Scan(f func(*dataset.Row) error) error {
	_, of := dataset.ImportOrder(s.m.Rows)
	row := dataset.Row{}
	for i := range s.m.Rows {
		position := int(of(uint64(i)))
		shard := dataset.ShardOf(position, len(s.shards), s.m.Rows)
		from, _ := dataset.ShardSpan(shard, len(s.shards), s.m.Rows)
		row.Number = i
		RowAt(s.shards[shard], position-from, &row)
		if s.names != nil {
			row.Name = s.names[shard][position-from]
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// RowAt copies row i of r to dst.
func RowAt(r *dataset.Rows, i int, dst *dataset.Row) {
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
	dst.Weight = r.WeightOf(i)
}

// RowNames returns the names of all rows; nil: they have none.
func RowNames(r *dataset.Rows) []string {
	if !r.Named() {
		return nil
	}
	names := make([]string, r.N)
	for i := range names {
		names[i] = r.Name(i)
	}
	return names
}

// SameFloat32 reports whether numbers are equal after they are rounded to float32.
func SameFloat32(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return math.Float32bits(float32(x)+0) == math.Float32bits(float32(y)+0)
	})
}

// CountRole counts the rows with a role.
func CountRole(roles []dataset.Roles, role dataset.Roles) (n int) {
	for _, r := range roles {
		if r == role {
			n++
		}
	}
	return n
}
