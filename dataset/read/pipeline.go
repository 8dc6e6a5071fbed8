package read

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// pipeline is a Source of the rows of a reader after some steps, in order: missing values, labels, images, names, and
// the columns of a model. It does not change: after and described return others.
type pipeline struct {
	reader dataset.Source
	steps  []step
	info   dataset.Info // of the rows after the last step

	place  func(error) error // changes an error about a row that the caller of Scan returned; nil: nothing
	advise func(error) error // adds to an error that the caller of Scan did not return; nil: nothing
}

// step begins a scan. It returns what changes each row of the scan, and what ends the scan after the rows or an error,
// or nil. The change is in place, but what the slices of the row hold belongs to the reader.
type step func() (change func(*dataset.Row) error, end func(error) error, err error)

// simple is a step that needs no end and cannot fail to begin.
func simple(begin func() func(*dataset.Row) error) step {
	return func() (func(*dataset.Row) error, func(error) error, error) { return begin(), nil, nil }
}

func pipelineOf(src dataset.Source) *pipeline {
	if p, ok := src.(*pipeline); ok {
		return p
	}
	return &pipeline{reader: src, info: src.Info()}
}

// after returns a pipeline with one more step, and what it makes of the rows.
func (p *pipeline) after(s step, info dataset.Info) *pipeline {
	next := *p
	next.steps, next.info = append(p.steps[:len(p.steps):len(p.steps)], s), info
	return &next
}

// described returns a pipeline of the same rows with another description.
func (p *pipeline) described(info dataset.Info) *pipeline {
	next := *p
	next.info = info
	return &next
}

// Info describes the rows.
func (p *pipeline) Info() dataset.Info { return p.info }

// Scan implements Source.
func (p *pipeline) Scan(f func(*dataset.Row) error) (err error) {
	var changes []func(*dataset.Row) error
	var failed error // of f
	defer func() {
		if err != nil && failed == nil && p.advise != nil {
			err = p.advise(err)
		}
	}()
	for _, begin := range p.steps {
		change, end, failure := begin()
		if failure != nil {
			return failure
		}
		if changes = append(changes, change); end != nil {
			defer func() { err = end(err) }()
		}
	}
	var row dataset.Row
	return p.reader.Scan(func(r *dataset.Row) error {
		row = *r
		for _, change := range changes {
			if err := change(&row); err != nil {
				return err
			}
		}
		if failed = f(&row); failed != nil && p.place != nil {
			failed = p.place(failed)
		}
		return failed
	})
}

// Match says how the columns of a file were matched with a model's. Commands print its JSON
// form.
type Match struct {
	By     string `json:"by"`               // ByName or ByPosition
	Why    string `json:"why,omitempty"`    // with ByPosition: which side has no names
	Moved  int    `json:"moved"`            // columns that have another position in the file
	Filled int    `json:"filled,omitempty"` // columns that a sparse file lacks, read as 0

	// from is the file's column of each of the model's; nil: the same.
	from []int
}

// The values of Match.By.
const (
	ByName     = "name"
	ByPosition = "position"
)

// columns are one side of a match; names are empty or n.
type columns struct {
	n     int
	names []string
}

// match finds the file's column for each of the model's. what is "feature" or "label", for
// messages.
func match(what string, model, file columns) (*Match, error) {
	if len(model.names) == 0 && defaultNames(what, file.names) {
		model.names = make([]string, model.n)
		for i := range model.names {
			model.names[i] = dataset.DefaultName(what, i)
		}
	}
	switch {
	case len(model.names) == 0 && len(file.names) == 0:
		return matchPositions(what, model.n, file.n, "neither the model nor the file has the names of "+what+"s")
	case len(model.names) == 0:
		return matchPositions(what, model.n, file.n, "the model does not have the names of "+what+"s")
	case len(file.names) == 0:
		return matchPositions(what, model.n, file.n, "the file does not have the names of "+what+"s")
	}
	from, missing, extra := matchNames(model.names, file.names)
	if len(missing)+len(extra) > 0 {
		return nil, differ(what, model.names, file.names, missing, extra)
	}
	m := &Match{By: ByName}
	for i, c := range from {
		if i != c {
			m.Moved, m.from = m.Moved+1, from
		}
	}
	return m, nil
}

func matchPositions(what string, model, file int, why string) (*Match, error) {
	if model != file {
		var hint errtext.Text
		if what == "feature" && file > model {
			hint = errtext.Sprintf("; {drop} leaves columns out")
		}
		return nil, errtext.Errorf(errtext.WrongData, "found %s, but the model %s %s, and %s%s", dataset.Counted(file, what),
			verb(what), units.Count(model), why, hint)
	}
	return &Match{By: ByPosition, Why: why}, nil
}

// matchNames returns the file's column of each name of the model, and the names that
// only one side has. Columns without a name are taken in their order.
func matchNames(model, file []string) (from []int, missing, extra []string) {
	at := make(map[string][]int, len(file))
	for i, name := range file {
		at[name] = append(at[name], i)
	}
	for _, name := range model {
		if len(at[name]) == 0 {
			missing = append(missing, name)
			continue
		}
		from = append(from, at[name][0])
		at[name] = at[name][1:]
	}
	for _, name := range file {
		if len(at[name]) > 0 {
			extra = append(extra, name)
			at[name] = at[name][1:]
		}
	}
	return from, missing, extra
}

// differ returns an error that says where the names of a model and of a file first differ,
// and how many are on one side only.
func differ(what string, model, file, missing, extra []string) error {
	i, hint := dataset.FirstDifference(model, file), errtext.Text("")
	if what == "feature" && len(missing) == 0 {
		hint = errtext.Sprintf("; {drop} leaves columns out")
	}
	return errtext.Errorf(errtext.WrongData, "%s %d (counted from 0) differs: the model %s %s, the file has %s; missing "+
		"from the file: %s; unknown to the model: %s%s",
		what, i, verb(what), dataset.Quoted(model, i), dataset.Quoted(file, i), dataset.ListSome(missing),
		dataset.ListSome(extra), hint)
}

func verb(what string) string {
	if what == "label" {
		return "predicts"
	}
	return "reads"
}

// defaultNames reports whether WriteCSV gives the names to columns without
// names, in any order.
func defaultNames(what string, names []string) bool {
	all := make([]string, len(names))
	for i := range all {
		all[i] = dataset.DefaultName(what, i)
	}
	_, missing, _ := matchNames(all, names)
	return len(names) > 0 && len(missing) == 0
}

// Matching says how the columns of a file were matched with those of a model; Labels is nil
// if labels were not read.
type Matching struct {
	Features *Match `json:"features"`
	Labels   *Match `json:"labels,omitempty"`
}

// project returns src with the columns of a schema, in its order.
func project(src dataset.Source, s *dataset.Schema, labels bool) (*pipeline, *Matching, error) {
	info := src.Info()
	if a, b := s.Shape, info.Shape; a != b && a != (dataset.Shape{}) && b != (dataset.Shape{}) {
		return nil, nil, fmt.Errorf("%sthe samples of the file are images of %v, but the model reads images of %v",
			dataset.Prefix(info.File), b, a)
	}
	f := &Matching{}
	var err error
	if f.Features, err = matchFeatures(src, info, s); err != nil {
		return nil, nil, err
	}
	if labels {
		f.Labels, err = match("label", columns{s.Labels, dataset.CleanNames(s.LabelNames)},
			columns{info.Labels, info.LabelNames})
		if err != nil {
			return nil, nil, dataset.Errorf(dataset.ErrOtherLabels, "%s%w", dataset.Prefix(info.File), err)
		}
	}
	info.Features = s.Features
	info.FeatureNames = pick(info.FeatureNames, f.Features)
	if labels {
		info.LabelNames = pick(info.LabelNames, f.Labels)
	}
	p := pipelineOf(src).after(simple(func() func(*dataset.Row) error {
		features, labels := newReorder(f.Features), newReorder(f.Labels)
		return func(r *dataset.Row) error {
			if r.Sparse {
				r.Columns, r.Values = features.sparse(r.Columns, r.Values)
			} else {
				r.Values = features.dense(r.Values)
			}
			r.Labels = labels.dense(r.Labels)
			return nil
		}
	}), info)
	p.place = f.inFile
	return p, f, nil
}

// matchFeatures also takes a sparse file without names that has fewer columns.
func matchFeatures(src dataset.Source, info dataset.Info, s *dataset.Schema) (*Match, error) {
	model, file := columns{s.Features, dataset.CleanNames(s.FeatureNames)}, columns{info.Features, info.FeatureNames}
	short := 0
	if info.Sparse && len(file.names) == 0 {
		if file.n > model.n {
			return nil, checkSparseWidth(src, model.n)
		}
		short, file.n = model.n-file.n, model.n
	}
	m, err := match("feature", model, file)
	if err != nil {
		return nil, fmt.Errorf("%s%w", dataset.Prefix(info.File), err)
	}
	m.Filled = short
	return m, nil
}

// checkSparseWidth scans src for the first row with a feature that the model does not read,
// and returns an error that names it.
func checkSparseWidth(src dataset.Source, features int) error {
	info := src.Info()
	err := fmt.Errorf("%sthe file has %s features, but the model reads %s", dataset.Prefix(info.File),
		units.Count(info.Features), units.Count(features))
	scan := src.Scan(func(r *dataset.Row) error {
		for _, c := range r.Columns {
			if int(c) >= features {
				err = dataset.RowErrorf(info.File, r.Number, "the sample has feature %d, but the model reads features 0 to %d", c,
					features-1)
				return errFound
			}
		}
		return nil
	})
	if scan != nil && !errors.Is(scan, errFound) {
		return scan
	}
	return err
}

// pick returns the names in the order of a match.
func pick(names []string, m *Match) []string {
	if m.from == nil || len(names) == 0 {
		return names
	}
	out := make([]string, len(m.from))
	for i, c := range m.from {
		out[i] = names[c]
	}
	return out
}

// inFile changes the column in an error from the model's number to the file's.
func (f *Matching) inFile(err error) error {
	var at *dataset.RowError
	if !errors.As(err, &at) {
		return err
	}
	m := f.Features
	if at.Kind == "label" {
		m = f.Labels
	}
	if m != nil && at.Column >= 0 && at.Column < len(m.from) {
		at.Column = m.from[at.Column]
	}
	return err
}

// reorder applies a match to rows; its slices hold the last row.
type reorder struct {
	from, to []int // columns of the file by those of the model, and the other way round
	columns  []uint32
	values   []float64
	order    []int
}

func newReorder(m *Match) *reorder {
	if m == nil || m.from == nil {
		return &reorder{}
	}
	r := &reorder{from: m.from, to: make([]int, len(m.from)), values: make([]float64, len(m.from))}
	for i, c := range m.from {
		r.to[c] = i
	}
	return r
}

// dense reorders all values of a row. It returns a row of another length unchanged; the
// check of rows refuses it.
func (r *reorder) dense(values []float64) []float64 {
	if r.from == nil || len(values) != len(r.from) {
		return values
	}
	for i, c := range r.from {
		r.values[i] = values[c]
	}
	return r.values
}

// sparse reorders the values of a sparse row. It returns a row with a column that does not
// exist unchanged; the check of rows refuses it.
func (r *reorder) sparse(columns []uint32, values []float64) ([]uint32, []float64) {
	if r.from == nil || slices.ContainsFunc(columns, func(c uint32) bool { return int(c) >= len(r.to) }) {
		return columns, values
	}
	r.order, r.columns, r.values = r.order[:0], r.columns[:0], r.values[:0]
	for i := range columns {
		r.order = append(r.order, i)
	}
	slices.SortFunc(r.order, func(a, b int) int { return r.to[columns[a]] - r.to[columns[b]] })
	for _, i := range r.order {
		r.columns = append(r.columns, uint32(r.to[columns[i]]))
		r.values = append(r.values, values[i])
	}
	return r.columns, r.values
}
