// Package experiment has what an experiment is: a spec of datasets, methods, folds and measures,
// the job of runs that it makes of each dataset, the records of runs that ended, and the
// table of both. DESIGN.md says why.
package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
)

const (
	// MaxMethods bounds the methods of an experiment, and MaxRuns its runs on all datasets. The time and
	// the memory of a plan grow with both.
	MaxMethods = 20_000
	MaxRuns    = 250_000
)

const (
	presetKey     = "preset"     // the setting that selects among the defaults of an algorithm
	validationKey = "validation" // the key with the file of a dataset's validation samples
)

// maxName leaves room for the names of the jobs.
const maxName = 60

// Spec says what an experiment runs.
type Spec struct {
	Name     string
	Seed     uint64 // of repeat 0; repeat r has Seed + r
	Datasets []Dataset
	Methods  []Method // grids are expanded
	Measures []string
	Clip     string // of the measures that are shown: measures.Clip
	// SkipMissing is true if datasets without a file are skipped.
	SkipMissing bool
	Published   []Published
	Record      Recorded
	// Data is the folder of its files, if it is not the spec's folder. It is no part of the text.
	Data string
	// Source is the text that the spec was read from.
	Source string

	file string
}

// Dataset is a dataset of a spec.
type Dataset struct {
	Name string
	// File is the path of a data file, as the spec has it, or On the name of a dataset on the
	// cluster.
	File, On string
	// Options say how the file is read: names of flags without dashes, and their values.
	Options []param.Pair
	Folds   Folds
	// Enhance makes distributions of logical labels, in the training part of each fold alone; nil: training is on the
	// labels as they are. A method may have one, too, but not together.
	Enhance *round.Enhance
	// Mask hides degrees of the training samples of each run.
	Mask dataset.Mask
	// WeightedMeasures is true if measures are weighted by the weights of the samples.
	WeightedMeasures bool

	At yamltree.Place
}

// Folds says how the rows of a dataset are divided.
type Folds struct {
	folds.Scheme
	// Repeats is how often each fold is run, with other seeds; of groups and files too.
	Repeats int
	File    string // of Way folds.File, as the spec has it
	// Only lists the folds of each repeat that are run, ascending; empty: all.
	Only []int

	At yamltree.Place
}

// Method is an algorithm with settings.
type Method struct {
	Name      string
	Algorithm string
	Settings  map[string]string // the preset is one of them, and spec.TrainFraction may be
	Budget    *Budget           // other methods may share it; nil: none
	Enhance   *round.Enhance    // as of a Dataset
	// Candidates are the names of the settings that runs choose among; empty: they do not choose.
	Candidates []string

	// External is the folder of another program's predictions, as the spec has it. Algorithm is external.Name then.
	External string

	trained string // the algorithm that settings are chosen for, or Algorithm

	At yamltree.Place
}

// Published is a figure that a paper prints.
type Published struct {
	result.Published
	At yamltree.Place
}

// Error returns an error about a place in the spec's file; zero: about the file as a whole.
func (s *Spec) Error(at yamltree.Place, format string, args ...any) error {
	return errorAt(s.file, at, format, args...)
}

func errorAt(file string, at yamltree.Place, format string, args ...any) error {
	return &spec.Error{File: file, Line: at.Line, Column: at.Column, Reason: errtext.Sprintf(format, args...)}
}

// Located adds a place in the spec's file to an error about what the spec names there, and keeps
// the kind of the error.
func (s *Spec) Located(at yamltree.Place, err error) error { return &located{s.file, at, err} }

// DefaultMeasures are the measures of a spec without the key measures: the six measures of Geng 2016.
var DefaultMeasures = []string{"chebyshev", "clark", "canberra", "kl", "cosine", "intersection"}

// more returns round.Job.Measures: whether a measure beside the ten is wanted.
func (s *Spec) more() string {
	for _, m := range measures.More {
		if slices.Contains(s.Measures, m.Name) {
			return pipeline.AllMeasures
		}
	}
	return pipeline.TenMeasures
}

// methodName is the name of a method that has none: the algorithm, its preset, and its settings.
func methodName(algorithm string, settings []param.Pair) string {
	parts := []string{algorithm}
	for _, s := range settings {
		if s.Key == presetKey {
			parts = append(parts, s.Value)
		} else {
			parts = append(parts, s.Key+"="+s.Value)
		}
	}
	return strings.Join(parts, " ")
}

// Budget bounds the computing time of some methods together.
type Budget struct {
	Limit time.Duration
	Of    string // what the methods are: an algorithm, or a line of the spec
}

// String says the budget in reports.
func (b *Budget) String() string {
	text := b.Limit.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text + " of " + b.Of
}

// SetRecorded takes words from the command line in the place of the spec's.
func (s *Spec) SetRecorded(words []string) error {
	s.Record = Recorded{}
	for _, word := range words {
		if err := s.Record.add(word); err != nil {
			return err
		}
	}
	return nil
}

// identity returns what identifies the text of the spec; nil: the spec was not read from a text.
func (s *Spec) identity() *result.Spec {
	if s.Source == "" {
		return nil
	}
	return &result.Spec{File: filepath.Base(s.file), Digest: hexSum([]byte(s.Source)), Data: s.Data}
}

// Errors are the mistakes in a spec, and what is wrong with the data that it names. Each is about a place in the spec's
// file.
type Errors []error

// Error returns the only mistake, or lists all of them, each on its line.
func (e Errors) Error() string {
	var list []string
	for _, one := range e {
		list = append(list, one.Error())
	}
	return strings.Join(list, "\n")
}

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error { return e }

// Add adds an error about a place in the spec, or several. It reports whether err is one.
func (e *Errors) Add(err error) bool {
	var several Errors
	if errors.As(err, &several) {
		*e = append(*e, several...)
		return true
	}
	_, ok := placeOfError(err)
	if ok {
		*e = append(*e, err)
	}
	return ok
}

// Sorted returns the mistakes in the order of their places, or nil if there are none.
func (e Errors) Sorted() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b error) int {
		x, _ := placeOfError(a)
		y, _ := placeOfError(b)
		return cmp.Or(x.Line-y.Line, x.Column-y.Column)
	})
	return e
}

// placeOfError returns the place in the spec's file that an error is about; false: it is about no place.
func placeOfError(err error) (yamltree.Place, bool) {
	var one *spec.Error
	var other *located
	switch {
	case errors.As(err, &one):
		return yamltree.Place{Line: one.Line, Column: one.Column}, true
	case errors.As(err, &other):
		return other.at, true
	}
	return yamltree.Place{}, false
}

// located is an error about what the spec names at a place.
type located struct {
	file string
	at   yamltree.Place
	err  error
}

// Error returns file:line:column and the error.
func (l *located) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", l.file, l.at.Line, l.at.Column, l.err)
}

// Unwrap returns the error without its place.
func (l *located) Unwrap() error { return l.err }

// ErrFolder is wrapped by errors about what is in a folder.
var ErrFolder = errors.New("the folder does not hold an experiment, or a file of the experiment is damaged")

// ErrNoPlan is wrapped by the error of a folder that has runs and no plan.
var ErrNoPlan = errors.New("plan.json is missing, though cells.log has runs")

// Recorded says what is recorded of each run beside its outcome.
type Recorded struct {
	Curve       bool `json:"curve,omitempty"`       // the learning curve
	Predictions bool `json:"predictions,omitempty"` // what it predicts of some test rows

	At yamltree.Place `json:"-"`
}

// The words of Recorded.
const (
	recordCurve       = "curve"
	recordPredictions = "predictions"
)

var recordWords = []string{recordCurve, recordPredictions}

// add takes a word; the error says that it is none, or that it stands there twice.
func (r *Recorded) add(word string) error {
	of := map[string]*bool{recordCurve: &r.Curve, recordPredictions: &r.Predictions}[word]
	switch {
	case of == nil:
		return fmt.Errorf("cannot record %q%s; want %s", word, param.Suggest(word, recordWords),
			strings.Join(recordWords, " or "))
	case *of:
		return fmt.Errorf("%s is listed twice", word)
	}
	*of = true
	return nil
}

// Any reports whether anything is recorded.
func (r *Recorded) Any() bool { return r.Curve || r.Predictions }

// In reports whether a job of runs keeps what is recorded.
func (r *Recorded) In(c *round.Cells) bool {
	return (c.Curves || !r.Curve) && (c.PredictedRows > 0 || !r.Predictions)
}

// set has a job of runs keep what is recorded.
func (r *Recorded) set(c *round.Cells) {
	c.Curves, c.PredictedRows = r.Curve, 0
	if r.Predictions {
		c.PredictedRows = round.MaxPredictedRows
	}
}

// axisOf says what the labels are. It returns nil if predictions are not recorded, and for targets in bounds: there is
// no figure of their predictions.
func (r *Recorded) axisOf(m *dataset.Manifest) *result.Labels {
	if !r.Predictions || m.LabelType.Bounds != nil {
		return nil
	}
	l := &result.Labels{Names: m.LabelNames, Classes: m.LabelType.Classes}
	if scale := m.LabelType.Scale; scale != nil {
		l.Scale, l.First = true, scale.Low
	}
	return l
}

// hexSum returns a SHA-256 sum.
func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
