package experiment

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// Data is what a plan must know of a dataset.
type Data struct {
	Manifest *dataset.Manifest
	Groups   []uint16           // the group of each sample; nil: there are none
	Splits   *dataset.SplitList // of the file that the folds name; nil: they name none
	MaxList  int64              // bytes of a list of splits that the plan may make; 0: any number
	External *External          // predictions of other programs; nil: there are none
}

// External is the predictions of other programs for a dataset.
type External struct {
	protocol.ExperimentExternal
	Predictions []string // the digest of each table
}

// NewExternal returns the predictions that a blob has. An error says that the blob is damaged or has other tables.
func NewExternal(of *protocol.ExperimentExternal, blob []byte) (*External, error) {
	tables, err := external.Decode(blob)
	if err != nil {
		return nil, err
	}
	if len(tables) != len(of.Tables) {
		return nil, fmt.Errorf("the blob has %s, want %d", units.Plural(len(tables), "table"), len(of.Tables))
	}
	x := &External{ExperimentExternal: *of}
	for _, t := range tables {
		x.Predictions = append(x.Predictions, t.Digest())
	}
	return x, nil
}

// of returns the digests of the predictions of a method, by fold as round.Cells.Index counts them. It returns nil if
// the method has none. An error says which predictions are missing, or are of no fold that is run.
func (x *External) of(method *Method, p *Plan) ([]string, error) {
	if x == nil || !slices.ContainsFunc(x.Tables, func(t protocol.ExternalTable) bool { return t.Method == method.Name }) {
		return nil, nil
	}
	fold := func(repeat, fold int) string {
		if p.Repeats == 1 {
			return fmt.Sprintf("fold %d", fold)
		}
		return fmt.Sprintf("fold %d of repeat %d", fold, repeat)
	}
	run := func(fold int) bool { return len(p.OnlyFolds) == 0 || slices.Contains(p.OnlyFolds, fold) }
	list := make([]string, p.Repeats*p.Folds)
	for i, t := range x.Tables {
		if t.Method != method.Name {
			continue
		}
		if t.Repeat < 0 || t.Repeat >= p.Repeats || t.Fold < 0 || t.Fold >= p.Folds || !run(t.Fold) {
			return nil, fmt.Errorf("%s has predictions of %s, which the experiment does not run: it has %s of %s",
				method.External, fold(t.Repeat, t.Fold), units.Plural(p.Repeats, "repeat"), units.Plural(p.Folds, "fold"))
		}
		list[t.Repeat*p.Folds+t.Fold] = x.Predictions[i]
	}
	for i, digest := range list {
		if digest == "" && run(i%p.Folds) {
			return nil, fmt.Errorf("%s has no predictions of %s", method.External, fold(i/p.Folds, i%p.Folds))
		}
	}
	return list, nil
}

// Plan is what an experiment runs on one dataset.
type Plan struct {
	Dataset  Dataset
	Manifest *dataset.Manifest
	// Job is the job of the runs; nil: no method goes with the dataset.
	Job *round.Job
	// Methods lists, for each method of Job.Cells, its index in Spec.Methods.
	Methods []int
	// Refused says why a method of Spec.Methods does not go with the dataset: its runs have failed.
	Refused map[int]string
	// Unvalidated lists the methods of Spec.Methods that do not use the validation samples of the dataset, if it has some.
	Unvalidated []int
	// Assigned is the list that Job.Split.Assigned names, or nil. Tested has the SHA-256 of the samples that each split of
	// the list tests, if the splits overlap.
	Assigned []uint16
	Tested   []string
	// Repeats and Folds are the same for each method.
	Repeats, Folds int
	// Divisions numbers the folds of all repeats as result.Dataset.Divisions does.
	Divisions []int
	// OnlyFolds lists the folds of each repeat that are run; empty: all.
	OnlyFolds []int
}

// overlapping reports whether the folds of all repeats are put into one list of splits that overlap. This is necessary
// if the seed of a job does not make the folds, such as the folds of scikit-learn.
func (s *Spec) overlapping(f *Folds) bool {
	return f.Way == folds.ScikitLearn || f.Way == folds.Seeded && f.Seed != s.Seed
}

// NewPlan makes the plan of a spec for one of its datasets. Errors name the dataset's place in
// the spec: folds that the rows cannot be divided into, or too many runs. If ctx is done first, the error
// is ctx's.
func NewPlan(ctx context.Context, s *Spec, d *Dataset, data *Data) (*Plan, error) {
	split, list, err := s.split(&d.Folds, data)
	if err != nil {
		return nil, s.Error(d.Folds.place(d), "dataset %s: %v", d.Name, err)
	}
	if err := s.checkKeys(d, data.Manifest); err != nil {
		return nil, err
	}
	split.Mask = d.Mask
	data.Manifest.KeepValidation(split)
	p := &Plan{Dataset: *d, Manifest: data.Manifest, Refused: make(map[int]string), Assigned: list,
		Repeats: d.Folds.Repeats, Folds: split.Folds}
	if s.overlapping(&d.Folds) {
		p.Folds = d.Folds.Scheme.Folds
	}
	if p.Tested, err = testedBy(*split, list, data.Manifest.Rows); err != nil {
		return nil, s.Error(d.Folds.place(d), "dataset %s: %v", d.Name, err)
	}
	if p.Divisions, err = s.divisions(&d.Folds, p, &folds.Rows{Count: data.Manifest.Divided().Rows}); err != nil {
		return nil, s.Error(d.Folds.place(d), "dataset %s: %v", d.Name, err)
	}
	p.OnlyFolds = d.Folds.Only
	if n := len(p.OnlyFolds); n > 0 && p.OnlyFolds[n-1] >= p.Folds {
		return nil, s.Error(d.Folds.place(d), "dataset %s: the key \"only\" lists fold %d, but folds are numbered 0 to %d",
			d.Name, p.OnlyFolds[n-1], p.Folds-1)
	}
	var only []int // the folds of all repeats that are run, as in round.CellRow.Only
	if len(p.OnlyFolds) > 0 {
		for repeat := range p.Repeats {
			for _, fold := range p.OnlyFolds {
				only = append(only, repeat*p.Folds+fold)
			}
		}
	}
	cells, weights := &round.Cells{Repeats: p.Repeats, Folds: p.Folds, Labels: data.Manifest.LabelType}, ""
	for i := range s.Methods {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var row *round.CellRow
		if method := &s.Methods[i]; method.External != "" {
			tables, err := data.External.of(method, p)
			if err != nil {
				return nil, s.Error(method.At, "dataset %s: %v", d.Name, err)
			}
			if tables == nil {
				p.Refused[i] = method.External + " has no predictions of this dataset"
				continue
			}
			row, weights = &round.CellRow{Algorithm: external.Name, Params: external.Params(slices.Max(tables)),
				External: tables}, data.External.Digest // a run has the digest of its own predictions
		} else {
			validates := false
			if row, validates, err = s.resolve(method, d, split, data.Manifest); err != nil {
				p.Refused[i] = err.Error()
				continue
			}
			if data.Manifest.Validation != nil && !validates {
				p.Unvalidated = append(p.Unvalidated, i)
			}
		}
		row.Only = only
		if row.Groups {
			split.Groups = data.Manifest.Groups.Digest
		}
		cells.Rows, p.Methods = append(cells.Rows, *row), append(p.Methods, i)
	}
	if len(cells.Rows) == 0 {
		return p, nil
	}
	if err := cells.Check(split.Folds, split.Overlap); err != nil {
		return nil, s.Error(d.At, "dataset %s: %v", d.Name, err)
	}
	p.Job = &round.Job{
		Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: s.Seed, Dataset: data.Manifest.Digest(),
		Split: *split, Cells: cells,
		Params: json.RawMessage(`{}`), Measures: pipeline.EveryMeasures, Fill: data.Manifest.Fill(), Weights: weights,
		Bounds:           data.Manifest.LabelType.Bounds,
		WeightedMeasures: d.WeightedMeasures && data.Manifest.HasWeights,
	}
	s.Record.set(cells)
	return p, nil
}

// checkKeys returns an error about a key of a dataset that does not go with its samples.
func (s *Spec) checkKeys(d *Dataset, m *dataset.Manifest) error {
	if d.WeightedMeasures && !m.HasWeights && m.Reading.Weights == "" { // weights of 1 are no weights
		return s.Error(d.At, "dataset %s: weighted_measures: the samples have no weights; the key {key weights} names the "+
			"column with the weights, and {key weighted_measures=false} of the dataset leaves its measures unweighted", d.Name)
	}
	return nil
}

// fewRows bounds the rows of a fold for which other repeats are searched for the same fold: of more rows two
// draws never are the same.
const fewRows = 64

// divisions returns Plan.Divisions: which folds of all repeats test the same rows.
func (s *Spec) divisions(f *Folds, p *Plan, rows *folds.Rows) (list []int, err error) {
	var tested []string // by fold, of one repeat or of all
	switch {
	case p.Tested != nil:
		tested = p.Tested
	case f.Way == folds.Groups || f.Way == folds.File:
		for fold := range p.Folds {
			tested = append(tested, strconv.Itoa(fold))
		}
	case p.Repeats == 1 || rows.Count > fewRows*p.Folds:
		return nil, nil
	default:
		for repeat := range p.Repeats {
			own, err := f.Divide(rows, repeat)
			if err != nil {
				return nil, err
			}
			numbers := make([][]byte, own.Folds) // of the rows that each fold tests
			for row, fold := range own.Assigned {
				numbers[fold] = binary.AppendUvarint(numbers[fold], uint64(row))
			}
			for _, b := range numbers {
				tested = append(tested, string(b))
			}
		}
	}
	at, repeated := make(map[string]int), false
	for i := range p.Repeats * p.Folds {
		own := tested[i%len(tested)]
		if _, ok := at[own]; ok {
			repeated = true
		} else {
			at[own] = len(at)
		}
		list = append(list, at[own])
	}
	if !repeated {
		return nil, nil
	}
	return list, nil
}

// resolve makes a method of the job of a dataset, with the hyperparameters for the dataset and its folds. validates is
// true if its runs use validation samples.
func (s *Spec) resolve(r *Method, d *Dataset, of *dataset.Split, m *dataset.Manifest) (_ *round.CellRow, validates bool,
	err error) {
	asked := protocol.Spec{
		Algorithm: r.Algorithm, Set: maps.Clone(r.Settings), Folds: of.Folds, Assigned: of.Assigned, Overlap: of.Overlap,
		Measures: s.more(), Clip: s.Clip, Mask: of.Mask.String(),
	}
	if share, ok := r.Settings[spec.TrainFraction]; ok {
		delete(asked.Set, spec.TrainFraction)
		if err := spec.Set(&asked, spec.TrainFraction, share); err != nil {
			return nil, false, err
		}
	}
	if r.Enhance != nil && d.Enhance != nil {
		return nil, false, errtext.Errorf(errtext.WrongSpec, "the dataset %s and the method both name a label "+
			"enhancement; name it once", d.Name)
	}
	if e := cmp.Or(r.Enhance, d.Enhance); e != nil {
		asked.Enhance, asked.Normalise, asked.Binarise = e.Method, e.Normalise, &e.Binarise
	}
	j, validates, err := spec.ResolveMethod(asked, m)
	var about *param.Error
	switch {
	case errors.As(err, &about) && (about.Name == "algorithm" || about.Name == "mask"):
		return nil, false, errtext.Errorf(errtext.WrongSpec, "%s", about.Reason)
	case err != nil:
		return nil, false, err
	case j.Weights != "":
		return nil, false, param.Errorf("init_from", "a method of an experiment cannot start from the weights of a model; "+
			"coppice train can")
	}
	return &round.CellRow{
		Algorithm: j.Algorithm, Params: j.Params, ValidationFraction: j.Split.ValidationFraction,
		ValidationMin: j.Split.ValidationMin, TrainFraction: j.Split.TrainFraction, Enhance: j.Enhance,
		Groups: j.Split.Groups != "",
	}, validates, nil
}

// split makes the split of all folds, and the list that it names.
func (s *Spec) split(f *Folds, data *Data) (*dataset.Split, []uint16, error) {
	rows := &folds.Rows{Count: data.Manifest.Divided().Rows, Groups: data.Groups, File: data.Splits}
	split := &dataset.Split{Seed: s.Seed}
	if f.Way == folds.Seeded && !s.overlapping(f) {
		split.Folds = f.Scheme.Folds
		return split, nil, f.Fits(rows.Count)
	}
	if f.Way == folds.Groups && data.Manifest.Groups == nil {
		return nil, nil, errtext.Errorf(errtext.WrongData,
			"the dataset has no groups; name their column with the dataset's key groups, or with {groups} at the import")
	}
	if s.overlapping(f) {
		if err := f.Fits(rows.Count); err != nil {
			return nil, nil, err
		}
		n := f.Scheme.Folds * f.Scheme.Repeats
		size := 2 * int64(dataset.Split{Folds: n, Overlap: true}.AssignedLength(rows.Count))
		if most := data.MaxList; most > 0 && size > most {
			return nil, nil, fmt.Errorf("the list of %s folds of %s samples takes %s, want at most %s; folds drawn by the "+
				"experiment's own seed need no list",
				units.Count(n), units.Count(rows.Count), units.Format(size), units.Format(most))
		}
	}
	var lists []*dataset.SplitList
	for repeat := range max(1, f.Scheme.Repeats) {
		list, err := f.Divide(rows, repeat)
		if err != nil {
			return nil, nil, err
		}
		lists = append(lists, list)
	}
	list := lists[0]
	if s.overlapping(f) {
		list = folds.Joined(lists, rows.Count)
	}
	split.Folds, split.Overlap, split.Assigned = list.Folds, list.Overlap, hexSum(dataset.EncodeFolds(list.Assigned))
	if list.Folds < 2 && !list.Overlap {
		return nil, nil, errors.New("want at least two folds, got one")
	}
	return split, list.Assigned, nil
}

// Runs lists the runs of the plan's job by unit. Keys are the SHA-256 of what decides a run:
// dataset, type of its labels, algorithm, resolved settings, split, seed and numerics.
func (p *Plan) Runs() ([]Run, error) {
	if p.Job == nil {
		return nil, nil
	}
	return RunsOf(p.Job, p.Tested, p.Methods)
}

// testedBy returns the SHA-256 of the samples that each fold tests if folds overlap, or nil.
func testedBy(s dataset.Split, assigned []uint16, rows int) (list []string, err error) {
	if !s.Overlap {
		return nil, nil
	}
	for s.Fold = range s.Folds {
		tests, err := s.Tests(rows, assigned)
		if err != nil {
			return nil, err
		}
		b := make([]byte, rows)
		for i, tested := range tests {
			if tested {
				b[i] = 1
			}
		}
		list = append(list, hexSum(b))
	}
	return list, nil
}

// Only returns the job of the runs for which want returns true, and for each of its methods the index in Spec.Methods.
// It returns nil if there are no such runs.
func (p *Plan) Only(cells []Run, want func(*Run) bool) (of *round.Job, rows []int) {
	if p.Job == nil {
		return nil, nil
	}
	only := make(map[int][]int) // by method of the job
	for i := range cells {
		if want(&cells[i]) {
			only[cells[i].Cell.Row] = append(only[cells[i].Cell.Row], p.Job.Cells.Index(cells[i].Cell))
		}
	}
	j, c := *p.Job, *p.Job.Cells
	c.Rows = nil
	for i, r := range p.Job.Cells.Rows {
		folds := only[i]
		if len(folds) == 0 {
			continue
		}
		slices.Sort(folds)
		if len(folds) < p.Repeats*p.Folds {
			r.Only = folds
		}
		c.Rows, rows = append(c.Rows, r), append(rows, p.Methods[i])
	}
	if len(c.Rows) == 0 {
		return nil, nil
	}
	j.Cells = &c
	return &j, rows
}

// place is the place of folds in the spec, or the place of the dataset if the spec has no folds.
func (f *Folds) place(d *Dataset) yamltree.Place {
	if f.At.Line == 0 {
		return d.At
	}
	return f.At
}

// CheckPlans returns an error if the plans have too many runs, or if what they record takes too much: of one run, or of
// all runs.
func (s *Spec) CheckPlans(plans []*Plan) error {
	runs := 0
	for _, p := range plans {
		if p.Job == nil {
			continue
		}
		if runs += p.Job.Cells.Count(); runs > MaxRuns {
			return s.Error(p.Dataset.At, "the experiment has more than %s runs with this dataset", units.Count(MaxRuns))
		}
	}
	all := int64(0)
	for _, p := range plans {
		if p.Job == nil {
			continue
		}
		one := pipeline.RecordBytes(p.Job, p.Manifest)
		if one > protocol.MaxCellRecord {
			return s.Error(s.Record.At, "record: dataset %s: the predictions for %d samples with %d labels take %d bytes in "+
				"each run, want at most %d",
				p.Dataset.Name, p.Job.Cells.PredictedRows, p.Manifest.Labels, one, protocol.MaxCellRecord)
		}
		all += one * int64(p.Job.Cells.Count())
	}
	if all > protocol.MaxCellRecords {
		return s.Error(s.Record.At, "record: the records of all runs take up to %d MB, want at most %d; leave out %s, or "+
			"some of the methods, repeats or folds",
			all>>20, protocol.MaxCellRecords>>20, strings.Join(recordWords, " or "))
	}
	return nil
}
