package round

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"github.com/coppice-ldl/coppice/dataset"
)

// Numerics names the arithmetic that decides a model's bits. Any change that
// alters a digest raises it.
const Numerics = 1

// AlgorithmCells stands in Job.Algorithm of a job of runs.
const AlgorithmCells = "cells"

// Job is a resolved job: with the dataset it decides the model, bit for bit.
type Job struct {
	Algorithm string        `json:"algorithm"`
	Numerics  int           `json:"numerics"`
	Seed      uint64        `json:"seed"`
	Dataset   string        `json:"dataset"` // Manifest.Digest
	Split     dataset.Split `json:"split"`
	// Folds > 0 runs the job once for each fold of Split as sub-jobs and
	// averages their measures.
	Folds int `json:"folds,omitempty"`
	// Cells, if set, runs the job as runs: sub-jobs with algorithms and settings of their
	// own. Algorithm is AlgorithmCells then.
	Cells *Cells `json:"cells,omitempty"`
	// Fill says by what the missing features of the dataset are filled: dataset.FillMean or
	// dataset.FillMedian of the training rows; empty: there are none.
	Fill string `json:"fill,omitempty"`
	// Enhance, if set, trains on distributions that are made of logical labels: see package enhance.
	Enhance *Enhance `json:"enhance,omitempty"`
	// Bounds are the bounds of targets as the dataset has them; nil: the labels are no targets.
	Bounds *dataset.Bounds `json:"bounds,omitempty"`
	// Params holds the algorithm's resolved settings in its own JSON form.
	Params json.RawMessage `json:"settings"`
	// Predictions is the greatest size, in bytes, of the predictions of held-out rows
	// that are stored with the job; 0: none are. The model does not depend on it.
	Predictions int64 `json:"predictions,omitempty"`
	// PredictedRows, if above 0, keeps the predictions of so many held-out rows instead of all
	// rows. The seed of the split draws them. The model does not depend on it.
	PredictedRows int `json:"predicted_rows,omitempty"`
	// Measures says which measures the job has, and Clip whether degrees are clipped for
	// them: see pipeline.JobPlan. The model does not depend on either.
	Measures string `json:"measures,omitempty"`
	Clip     string `json:"clip,omitempty"`
	// WeightedMeasures is true if measures are weighted by the weights of the samples. The model does not depend on it.
	WeightedMeasures bool `json:"weighted_measures,omitempty"`
	// LinearSamples is the greatest number of training rows that the linear baseline is fitted to; 0:
	// there is no linear baseline. The model does not depend on it. Sub-jobs have none.
	LinearSamples int `json:"linear_samples,omitempty"`
	// Screen compares the model with small models of other algorithms on the validation rows, if there are any. The
	// model does not depend on it.
	Screen bool `json:"screen,omitempty"`
	// NoModel leaves the model out of the job's outcome, which has its digest: the sub-job
	// is trained for its predictions.
	NoModel bool `json:"no_model,omitempty"`
	// Weights is the digest of the blob whose weights training begins from, where the settings
	// name one: see package network. Its bytes are no part of the job; see WithWeights.
	Weights string `json:"weights,omitempty"`
	// WeightsFile are the bytes of that blob, where WithWeights added them.
	WeightsFile []byte `json:"-"`
}

// WithWeights returns the job with the bytes of the blob that Weights names, which its trainer
// needs. An error says that they are others.
func (j *Job) WithWeights(b []byte) (*Job, error) {
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != j.Weights {
		return nil, fmt.Errorf("the weights to start from have the digest %x, but the job names %.80s", sum, j.Weights)
	}
	with := *j
	with.WeightsFile = b
	return &with, nil
}

// Enhance says how the labels of the training and validation samples become distributions. Test samples keep theirs.
type Enhance struct {
	Method    string `json:"method"`
	Normalise string `json:"normalise"`
	// Binarise, if above 0, makes logical labels of distributions first: labels by falling degree until their sum
	// exceeds it. 0: the labels are logical.
	Binarise float64 `json:"binarise,omitempty"`
}

// String describes the enhancement.
func (e *Enhance) String() string {
	text := e.Method + ", " + e.Normalise
	if e.Binarise > 0 {
		text += fmt.Sprintf(", binarised at %v", e.Binarise)
	}
	return text
}

// Flags are the flags of train that ask for the enhancement; none for nil.
func (e *Enhance) Flags() []string {
	if e == nil {
		return nil
	}
	flags := []string{"--enhance", e.Method, "--normalise", e.Normalise}
	if e.Binarise > 0 {
		flags = append(flags, "--binarise", fmt.Sprint(e.Binarise))
	}
	return flags
}

// Check returns an error if a number of the job is out of its range. Only the job's algorithm can check Params.
func (j *Job) Check() error {
	if err := j.Split.Check(); err != nil {
		return err
	}
	if j.Numerics < 0 || j.Folds < 0 || j.Folds > dataset.MaxFolds || j.Predictions < 0 || j.PredictedRows < 0 ||
		j.LinearSamples < 0 {
		return fmt.Errorf("the job is damaged: arithmetic version %d, %d folds, predictions of %d bytes and %d samples, "+
			"linear baseline of %d samples",
			j.Numerics, j.Folds, j.Predictions, j.PredictedRows, j.LinearSamples)
	}
	if j.Cells == nil {
		return nil
	}
	return j.Cells.Check(j.Split.Folds, j.Split.Overlap)
}

// MaxCells bounds the runs of a job.
const MaxCells = 1_000_000

// MaxPredictedRows bounds the rows of a run whose predictions are kept.
const MaxPredictedRows = 6

// Cells are the sub-jobs of a job of runs: one for each row, repeat and fold of one
// dataset. The list is short: it is not expanded.
type Cells struct {
	Rows []CellRow `json:"rows"`
	// Repeats is how often each fold is run: repeat r with the seed of the job + r.
	Repeats int `json:"repeats"`
	// Folds is the number of folds of each repeat. The job's split has so many. If its
	// splits overlap, it may have Repeats times so many: the folds of one repeat after the other.
	Folds int `json:"folds"`
	// Again is how many of the runs failed in earlier jobs and are run again, for display.
	Again int `json:"again,omitempty"`
	// Models keeps the models of the runs.
	Models bool `json:"models,omitempty"`
	// Labels says what the labels of the dataset are, of whose digest that is no part: runs of others
	// have other measures.
	Labels dataset.LabelType `json:"labels,omitzero"`
	// Budgets bound the computing time of the runs of some rows. No result of a run depends on
	// it; which runs are run does.
	Budgets []CellBudget `json:"budgets,omitempty"`
	// Curves keeps the learning curve of each run, and PredictedRows, where above 0, what each
	// predicts of so many of its test rows.
	Curves        bool `json:"curves,omitempty"`
	PredictedRows int  `json:"predicted_rows,omitempty"`
}

// CellBudget bounds the computing time of the runs of some rows, together with the runs under the
// budget of the same name in the other jobs of one submission.
type CellBudget struct {
	Of      string  `json:"of"`              // what the rows are
	Seconds float64 `json:"seconds"`         // one thread each
	Spent   float64 `json:"spent,omitempty"` // by runs that ended before the submission
}

// CellRow is an algorithm with its settings, resolved.
type CellRow struct {
	Algorithm          string          `json:"algorithm"`
	Params             json.RawMessage `json:"settings"`
	ValidationFraction float64         `json:"validation_fraction,omitempty"`
	ValidationMin      int             `json:"validation_min,omitempty"`
	// TrainFraction is dataset.Split.TrainFraction of the row's runs.
	TrainFraction float64 `json:"train_fraction,omitempty"`
	// Groups is true if the row's runs have dataset.Split.Groups of the job.
	Groups bool `json:"groups,omitempty"`
	// External has, for each fold as Cells.Index counts them, the digest of the predictions of another program that
	// the run evaluates; see package external. Job.Weights has them all. It is empty in a row of an algorithm.
	External []string `json:"external,omitempty"`
	// Enhance is Job.Enhance of the row's runs.
	Enhance *Enhance `json:"enhance,omitempty"`
	// Only lists the folds that the row is run for, ascending, as Cell.Index counts them;
	// empty: all.
	Only []int `json:"only,omitempty"`
	// Budget is the number of the row's budget in Cells.Budgets, from 1 on; 0: it has none. Ended
	// are the runs of the row on the dataset that ended before the submission, and EndedSeconds
	// their computing: so the time of a run is known.
	Budget       int     `json:"budget,omitempty"`
	Ended        int     `json:"ended,omitempty"`
	EndedSeconds float64 `json:"ended_seconds,omitempty"`
}

// Cell is one run: a row, from 0, a repeat and a fold of it.
type Cell struct{ Row, Repeat, Fold int }

// Check returns an error if the runs are none, too many, or not folds of a split with so many
// folds.
func (c *Cells) Check(folds int, overlap bool) error {
	if len(c.Rows) == 0 || len(c.Rows) > MaxCells || c.Repeats < 1 || c.Repeats > MaxCells || c.Folds < 1 ||
		c.Folds > MaxCells {
		return fmt.Errorf("the job has no runs or too many: %d methods, %d repeats and %d folds", len(c.Rows),
			c.Repeats, c.Folds)
	}
	if n := int64(c.Repeats) * int64(c.Folds); n > MaxCells || int64(folds) != int64(c.Folds) &&
		!(overlap && int64(folds) == n) {
		return fmt.Errorf("the job has %d repeats of %d folds, but its split has %d folds", c.Repeats, c.Folds, folds)
	}
	for i := range c.Rows {
		if n := len(c.Rows[i].External); n > 0 && n != c.Repeats*c.Folds {
			return fmt.Errorf("a method has the predictions of another program for %d folds, but there are %d", n,
				c.Repeats*c.Folds)
		}
		for k, at := range c.Rows[i].Only {
			if at < 0 || at >= c.Repeats*c.Folds || k > 0 && c.Rows[i].Only[k-1] >= at {
				return fmt.Errorf("the folds of a method are not valid or not sorted: fold %d, counted from 0, of %d", at,
					c.Repeats*c.Folds)
			}
		}
	}
	if err := c.checkBudgets(); err != nil {
		return err
	}
	if n := c.Count(); n > MaxCells {
		return fmt.Errorf("want at most %[2]d runs, got %[1]d", n, MaxCells)
	} else if c.Again < 0 || c.Again > n {
		return fmt.Errorf("the job has %d runs, but repeats %d runs of an earlier job", n, c.Again)
	}
	if c.PredictedRows < 0 || c.PredictedRows > MaxPredictedRows {
		return fmt.Errorf("want predictions kept for at most %[2]d samples in a run, got %[1]d", c.PredictedRows,
			MaxPredictedRows)
	}
	return nil
}

// maxSeconds bounds times, so that their sums are numbers.
const maxSeconds = 1e12

func (c *Cells) checkBudgets() error {
	for i, b := range c.Budgets {
		if !(b.Seconds >= 0 && b.Seconds <= maxSeconds && b.Spent >= 0 && b.Spent <= maxSeconds) || b.Of == "" {
			return fmt.Errorf("a time budget is not valid: %v s for %.80q, with %v s used", b.Seconds, b.Of, b.Spent)
		}
		if slices.ContainsFunc(c.Budgets[:i], func(other CellBudget) bool { return other.Of == b.Of }) {
			return fmt.Errorf("there are two time budgets for %.80q", b.Of)
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Budget < 0 || r.Budget > len(c.Budgets) || r.Ended < 0 ||
			!(r.EndedSeconds >= 0 && r.EndedSeconds <= maxSeconds) {
			return fmt.Errorf("a method's time budget is not valid: budget %d of %d, and %d ended runs of %v s", r.Budget,
				len(c.Budgets), r.Ended, r.EndedSeconds)
		}
	}
	return nil
}

// RowCount returns the number of runs of a row.
func (c *Cells) RowCount(row int) int { return cmp.Or(len(c.Rows[row].Only), c.Repeats*c.Folds) }

// Count returns the number of runs.
func (c *Cells) Count() (n int) {
	for row := range c.Rows {
		n += c.RowCount(row)
	}
	return n
}

// whole reports whether each row is run for all folds.
func (c *Cells) whole() bool {
	return !slices.ContainsFunc(c.Rows, func(r CellRow) bool { return len(r.Only) > 0 })
}

// At returns the run of a task, and whether there is one. Runs of the first fold come first, in the order of
// rows, so that each row has a result soon.
func (c *Cells) At(task int) (cell Cell, ok bool) {
	if task < 0 {
		return cell, false
	}
	if c.whole() {
		at := task / len(c.Rows)
		return Cell{task % len(c.Rows), at / c.Folds, at % c.Folds}, at < c.Repeats*c.Folds
	}
	// the fold that has the task: up to it there are more than task runs
	at := sort.Search(c.Repeats*c.Folds, func(at int) bool { return c.until(at+1) > task })
	if at == c.Repeats*c.Folds {
		return cell, false
	}
	task -= c.until(at)
	for row := range c.Rows {
		if !c.Rows[row].has(at) {
			continue
		}
		if task == 0 {
			return Cell{row, at / c.Folds, at % c.Folds}, true
		}
		task--
	}
	return cell, false
}

// until returns how many runs the folds below at have.
func (c *Cells) until(at int) (n int) {
	for i := range c.Rows {
		if only := c.Rows[i].Only; len(only) > 0 {
			below, _ := slices.BinarySearch(only, at)
			n += below
		} else {
			n += at
		}
	}
	return n
}

// has reports whether the row is run for a fold.
func (r *CellRow) has(at int) bool {
	if len(r.Only) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(r.Only, at)
	return ok
}

// All lists the runs, by task.
func (c *Cells) All() []Cell {
	list, passed := make([]Cell, 0, c.Count()), make([]int, len(c.Rows)) // of Only
	for at := range c.Repeats * c.Folds {
		for i := range c.Rows {
			if only := c.Rows[i].Only; len(only) > 0 {
				if passed[i] == len(only) || only[passed[i]] != at {
					continue
				}
				passed[i]++
			}
			list = append(list, Cell{i, at / c.Folds, at % c.Folds})
		}
	}
	return list
}

// Index numbers the folds of all repeats.
func (c *Cells) Index(cell Cell) int { return cell.Repeat*c.Folds + cell.Fold }
