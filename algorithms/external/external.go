// Package external evaluates the predictions of another program as a run of an experiment. The "model" of such a run is
// a table: the predicted distribution of each test sample, by the number of its row. There is nothing to train.
//
// An experiment has one blob of all predictions of other programs for a dataset, which Encode makes and Job.Weights
// names. The job of a run names one table of the blob by its digest (Config.Predictions), so a run with the same
// predictions is the same run, whatever the other tables are. The only round compares the rows of the table with the
// test samples: a run with other rows fails, and its error lists some of them.
//
// No user can train the algorithm, so the registry does not list it.
package external

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the algorithm of runs whose predictions come from another program.
const Name = "external"

// Config names the table of a run.
type Config struct {
	Predictions string // the digest of the table, in hex
}

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:  Name,
		About: algorithms.About{Summary: "predictions of another program"},
		Doc:   "predictions of another program, as a method of an experiment",
		Settings: param.Table[Config]{
			param.Text("predictions", "digest of the predictions", "a SHA-256 in hex", "", checkDigest,
				func(c *Config) *string { return &c.Predictions }),
		},
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			t, err := tableOf(j)
			return &trainer{job: j, table: t}, err
		},
		Incomplete:   true, // its predictions are there, whatever they were learned from
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			t, err := tableOf(j)
			return &kernel{t}, err
		},
		Model: learner.Decoder((*Table).tensors),
		Memory: func(_ *Config, m *dataset.Manifest) algorithms.Footprint {
			return algorithms.Footprint{Model: 4 * int64(m.Rows) * int64(1+m.Labels)}
		},
	})
}

// Params returns the settings of a run with the table of a digest.
func Params(digest string) []byte { return fmt.Appendf(nil, `{"predictions":%q}`, digest) }

func checkDigest(text string) error {
	if _, ok := digests.Parse(text); !ok {
		return errors.New("not the digest of a table of predictions; only an experiment has them, with the key external " +
			"of a method")
	}
	return nil
}

// Table is the predictions of some rows of a dataset. It is the model of a run.
type Table struct {
	Labels  int
	Row     []uint32  // numbers of rows in the dataset, ascending
	Degrees []float32 // rows×labels, row-major
}

// Sort sorts the rows of a table by number.
func (t *Table) Sort() {
	order := make([]int, len(t.Row))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.Row[a], t.Row[b]) })
	sorted := &Table{Labels: t.Labels}
	for _, at := range order {
		sorted.Row = append(sorted.Row, t.Row[at])
		sorted.Degrees = append(sorted.Degrees, t.Degrees[at*t.Labels:(at+1)*t.Labels]...)
	}
	*t = *sorted
}

// Digest identifies the content of a table. It is the model digest of its run.
func (t *Table) Digest() string { return modelfile.Digest(Name, t.Tensors()) }

// The bounds of a table. A sum of degrees may differ from 1 by the rounding of six digits.
const (
	format       = 1
	maxLabels    = 1 << 20
	sumTolerance = 1e-3
)

// CheckDegrees returns an error if degrees are not a distribution: each in [0, 1], and their sum 1 ± 0.001.
func CheckDegrees(degrees []float32) error {
	sum := 0.0
	for c, d := range degrees {
		if !(d >= 0 && d <= 1) {
			return fmt.Errorf("degree %v of label %d is not from 0 to 1", d, c)
		}
		sum += float64(d)
	}
	if math.Abs(sum-1) > sumTolerance {
		return fmt.Errorf("the degrees sum to %.6g, not 1", sum)
	}
	return nil
}

func (t *Table) tensors(l *learner.Tensors) {
	rows := len(t.Row)
	l.Settings(format, learner.Within(&t.Labels, 1, maxLabels), learner.Within(&rows, 0, dataset.MaxRows))
	l.U32("rows", &t.Row, rows)
	l.F32("degrees", &t.Degrees, rows, t.Labels)
	if !l.Reading() {
		return
	}
	for i := range t.Row {
		l.Check(i == 0 || t.Row[i-1] < t.Row[i], "the rows of the predictions are not sorted")
		err := CheckDegrees(t.Degrees[i*t.Labels : (i+1)*t.Labels])
		l.Check(err == nil, "predictions of row %d: %v", t.Row[i], err)
	}
}

// Tensors implements algorithms.Model.
func (t *Table) Tensors() []algorithms.Tensor { return learner.ListTensors(t.tensors) }

// Shape implements algorithms.Model. A table reads no features.
func (t *Table) Shape() (features, labels int) { return 0, t.Labels }

// NewScratch implements algorithms.Model.
func (t *Table) NewScratch() any { return nil }

// Predict implements algorithms.Model. The degrees of a row that the table does not have are NaN.
func (t *Table) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, _ any) {
	for i, ref := range refs {
		own := dst[i*t.Labels : (i+1)*t.Labels]
		if at, ok := slices.BinarySearch(t.Row, shard(ref.Shard).Row[ref.Pos]); ok {
			copy(own, t.Degrees[at*t.Labels:])
			continue
		}
		for c := range own {
			own[c] = float32(math.NaN())
		}
	}
}

// Describe implements algorithms.Model.
func (t *Table) Describe() [][2]string {
	return [][2]string{{"predicted samples", fmt.Sprint(len(t.Row))}}
}

// magic begins a blob of tables. Each table follows as its length, 8 bytes little-endian, and a model file.
const magic = "COPEXT01"

// Encode returns the blob of some tables.
func Encode(tables []*Table) []byte {
	b := []byte(magic)
	for _, t := range tables {
		file, _ := modelfile.Encode(Name, t.Tensors(), nil)
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(file))), file...)
	}
	return b
}

// Decode reads what Encode wrote.
func Decode(b []byte) ([]*Table, error) {
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return nil, errors.New("the bytes are not predictions of other programs")
	}
	var tables []*Table
	for len(rest) > 0 {
		if len(rest) < 8 || binary.LittleEndian.Uint64(rest) > uint64(len(rest)-8) {
			return nil, errors.New("the predictions of other programs end too early")
		}
		n := 8 + binary.LittleEndian.Uint64(rest)
		file, err := modelfile.Decode(rest[8:n])
		if err != nil {
			return nil, err
		}
		t := new(Table)
		err = learner.ReadTensors(file.Tensors, t.tensors)
		if err == nil && file.Algorithm != Name {
			err = fmt.Errorf("a model of %.40q is among them", file.Algorithm)
		}
		if err != nil {
			return nil, fmt.Errorf("the predictions of other programs are damaged: %w", err)
		}
		tables, rest = append(tables, t), rest[n:]
	}
	return tables, nil
}

// tableOf returns the table of a job.
func tableOf(j *learner.Job[Config]) (*Table, error) {
	if j.WeightsFile == nil {
		return nil, errors.New("the predictions of other programs are missing")
	}
	tables, err := Decode(j.WeightsFile)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.Digest() == j.Config.Predictions {
			if t.Labels != j.Manifest.Labels {
				return nil, fmt.Errorf("the predictions have %d labels, but the dataset has %d", t.Labels, j.Manifest.Labels)
			}
			return t, nil
		}
	}
	return nil, fmt.Errorf("the predictions with the digest %.12s are missing", j.Config.Predictions)
}

// trainer compares the rows of the table with the test samples.
type trainer struct {
	learner.Base
	job      *learner.Job[Config]
	table    *Table
	compared bool
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if t.compared {
		return nil, nil
	}
	return &round.Round{Kind: "comparison of rows", Tasks: 1, Scope: round.Whole, Roles: dataset.Test,
		How: &round.Gather{}}, nil
}

// maxNamed is how many rows an error lists.
const maxNamed = 5

// Fold implements round.Trainer. The result is two lists of rows, each after its length: rows that the table lacks, and
// rows that it should not have.
func (t *trainer) Fold(res *round.Result) error {
	rows := num.Uint32s(res.Gathered[0])
	if len(rows) < 2 || int(rows[0])+int(rows[1]) != len(rows)-2 {
		return errors.New("the comparison of rows is damaged")
	}
	lacking, others := rows[2:2+rows[0]], rows[2+rows[0]:]
	if len(lacking)+len(others) == 0 {
		t.compared = true
		return nil
	}
	lacks, err := t.named(lacking)
	if err != nil {
		return err
	}
	has, err := t.named(others)
	switch {
	case err != nil:
		return err
	case lacks == "":
		return fmt.Errorf("the file of predictions has %s, which the fold does not test", has)
	case has == "":
		return fmt.Errorf("the file of predictions lacks %s, which the fold tests", lacks)
	}
	return fmt.Errorf("the file of predictions lacks %s, which the fold tests, and has %s, which it does not test", lacks,
		has)
}

// named lists the numbers of some rows as the file counts them, or returns an empty text if there are none.
func (t *trainer) named(rows []uint32) (string, error) {
	if len(rows) == 0 {
		return "", nil
	}
	some := slices.Clone(rows[:min(len(rows), maxNamed)])
	if err := t.job.Manifest.ToFile(some); err != nil {
		return "", err
	}
	text := ""
	for i, row := range some {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(row)
	}
	switch n := len(rows) - len(some); {
	case len(rows) == 1:
		return "row " + text, nil
	case n > 0:
		return fmt.Sprintf("rows %s and %d more", text, n), nil
	}
	return "rows " + text, nil
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress { return round.Progress{Loss: -1} }

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) { return t.table, nil }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) { l.Bool(&t.compared) }

// kernel has the table.
type kernel struct{ table *Table }

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return nil }

// Gather implements round.GatherKernel: the comparison of rows.
func (k *kernel) Gather(_ context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	tested := make(map[uint32]bool)
	for _, ref := range u.Rows(d) {
		tested[d.Shard(int(ref.Shard)).Row[ref.Pos]] = true
	}
	var lacking, others []uint32
	for _, row := range k.table.Row {
		if !tested[row] {
			others = append(others, row)
		}
		delete(tested, row)
	}
	lacking = slices.Sorted(maps.Keys(tested))
	return num.BytesU32(slices.Concat([]uint32{uint32(len(lacking)), uint32(len(others))}, lacking, others)), nil
}
