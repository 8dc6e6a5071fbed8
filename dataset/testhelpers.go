package dataset

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is a Source of given rows.
type listed struct {
	info Info
	rows []Row
	scan int // scans so far
	// change, where set, is called before each scan.
	change func(l *listed)
}

func (l *listed) Info() Info { return l.info }

func (l *listed) Scan(f func(*Row) error) error {
	l.scan++
	if l.change != nil {
		l.change(l)
	}
	for i := range l.rows {
		row := l.rows[i]
		row.Number = i
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// someRows returns n good rows of 2 features and 2 labels.
func someRows(n int) *listed {
	l := &listed{info: Info{File: "some.csv", Rows: n, Features: 2, Labels: 2}}
	for i := range n {
		l.rows = append(l.rows, Row{Values: []float64{float64(i), 1}, Labels: []float64{0.25, 0.75}})
	}
	return l
}

// collected is a Source's rows, copied.
func collect(t *testing.T, src Source) []Row {
	t.Helper()
	rows, err := tryCollect(src)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func tryCollect(src Source) (rows []Row, err error) {
	err = src.Scan(func(r *Row) error {
		c := *r
		c.text = ""
		c.Columns = append([]uint32(nil), r.Columns...)
		c.Values = append([]float64(nil), r.Values...)
		c.Labels = append([]float64(nil), r.Labels...)
		rows = append(rows, c)
		return nil
	})
	return rows, err
}

// dense returns the features of r with their zeros.
func dense(r Row, features int) []float64 {
	if !r.Sparse {
		return r.Values
	}
	x := make([]float64, features)
	for i, c := range r.Columns {
		x[c] = r.Values[i]
	}
	return x
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustContain checks that err is set and says all of parts.
func mustContain(t *testing.T, err error, parts ...string) {
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

func mustBe(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v is not %v", err, target)
	}
}

// storedSource returns the rows of an imported dataset in the order of the file. names has the
// names of each shard's rows; it is nil if rows have no names.
func storedSource(m *Manifest, shards []*Rows, names [][]string) Source {
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
		rowAt(s.shards[shard], position-from, &row)
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
func rowAt(r *Rows, i int, dst *Row) {
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

// rowNames returns the names of all rows; nil: they have none.
func rowNames(r *Rows) []string {
	if !r.Named() {
		return nil
	}
	names := make([]string, r.N)
	for i := range names {
		names[i] = r.Name(i)
	}
	return names
}

func sameFloat32(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return math.Float32bits(float32(x)+0) == math.Float32bits(float32(y)+0)
	})
}

func count(roles []Roles, role Roles) (n int) {
	for _, r := range roles {
		if r == role {
			n++
		}
	}
	return n
}

// sources gives data of several kinds.
func sources(t *testing.T) map[string]Source {
	t.Helper()
	generate := func(o GenerateOptions) Source {
		src, err := Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	withNames := someRows(20)
	withNames.info.FeatureNames, withNames.info.LabelNames, withNames.info.HasRowNames = []string{"a", "b"}, []string{"c", "d"}, true
	for i := range withNames.rows {
		withNames.rows[i].Name = []string{"r", "", "Zoë"}[i%3]
	}
	unlabelled := someRows(5)
	unlabelled.info.Labels = 0
	for i := range unlabelled.rows {
		unlabelled.rows[i].Labels = nil
	}
	zeros := someRows(9) // a sparse set without any value
	for i := range zeros.rows {
		zeros.rows[i].Values = []float64{0, math.Copysign(0, -1)}
	}
	return map[string]Source{
		"artificial": Artificial(500, 1),
		"sparse":     generate(GenerateOptions{Rows: 300, Features: 200, Labels: 4, Density: 0.02, Seed: 3}),
		"dense":      generate(GenerateOptions{Rows: 100, Features: 20, Labels: 4, Density: 1, Seed: 3}),
		"half":       generate(GenerateOptions{Rows: 100, Features: 20, Labels: 4, Density: 0.5, Seed: 3}),
		"one row":    someRows(1),
		"names":      withNames,
		"unlabelled": unlabelled,
		"zeros":      zeros,
	}
}
