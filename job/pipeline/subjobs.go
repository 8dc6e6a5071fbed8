package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/enhance"
)

// folds runs the job once for each fold, as sub-jobs, in one gather round.
// Each sub-job has the digest of the same job run alone.
type folds struct {
	job      *round.Job
	samples  int      // of the dataset
	encoded  [][]byte // the sub-jobs' encoded outcomes, once they are known
	outcomes []*Outcome
}

// SubJob returns the job of one fold of a job of folds. Only the first fold is screened.
func SubJob(j *round.Job, fold int) *round.Job {
	child := *j
	child.Folds = 0
	child.Split.Fold = fold
	child.Screen = j.Screen && fold == 0
	return &child
}

// NameFold says which fold, or which group that is tested, an error of a sub-job of parent is of.
func NameFold(parent, child *round.Job, m *dataset.Manifest, err error) error {
	if err == nil || parent.Folds == 0 {
		return err
	}
	if group := testedGroup(child, m); group != "" {
		return fmt.Errorf("without the group %q: %w", group, err)
	}
	return fmt.Errorf("fold %d: %w", child.Split.Fold, err)
}

// SubJobOf returns the job of a task of a round of sub-jobs: a fold, a run, a small model of the screening, or what the
// job's algorithm says. Errors are the algorithm's, or say that there is no such run.
func SubJobOf(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error) {
	switch {
	case j.Cells != nil:
		return Cell(j, unit)
	case j.Folds > 0:
		return SubJob(j, unit), nil
	case j.Screen:
		return screenJob(j, m, unit)
	}
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	p, ok := a.(algorithms.Parent)
	if !ok {
		return nil, fmt.Errorf("%s has no sub-jobs", j.Algorithm)
	}
	return p.SubJob(j, m, unit)
}

// Next implements round.Trainer.
func (t *folds) Next() (*round.Round, error) {
	if t.outcomes != nil {
		return nil, nil
	}
	how := &round.Gather{SubJob: func(fold int) *round.Job { return SubJob(t.job, fold) }}
	return &round.Round{Kind: "fold", Tasks: t.job.Folds, Scope: round.Whole, How: how}, nil
}

// Fold implements round.Trainer.
func (t *folds) Fold(res *round.Result) error {
	return t.decode(res.Gathered)
}

func (t *folds) decode(encoded [][]byte) error {
	if len(encoded) != t.job.Folds {
		return fmt.Errorf("got %d results for %d folds", len(encoded), t.job.Folds)
	}
	var outcomes []*Outcome
	for f, b := range encoded {
		o, err := DecodeOutcome(b)
		if err != nil {
			return fmt.Errorf("fold %d: %w", f, err)
		}
		outcomes = append(outcomes, o)
	}
	t.encoded, t.outcomes = encoded, outcomes
	return nil
}

// Progress implements round.Trainer: it sums over the folds.
func (t *folds) Progress() round.Progress {
	units := make([]round.TaskProgress, t.job.Folds)
	for f, o := range t.outcomes {
		units[f] = round.TaskProgress{Progress: o.progress(), Known: true, Done: true}
	}
	return SumFolds(units)
}

// ResultProgress implements algorithms.TaskReporter.
func (t *folds) ResultProgress(encoded []byte) (round.Progress, error) {
	o, err := DecodeOutcome(encoded)
	if err != nil {
		return round.Progress{Loss: -1}, err
	}
	return o.progress(), nil
}

// SumFolds returns the progress of a job of folds from the progress of each fold.
func SumFolds(folds []round.TaskProgress) round.Progress {
	sum, done := childjob.Sum(folds)
	sum.Phase = fmt.Sprintf("%d of %d folds done", done, len(folds))
	return sum
}

// RoundProgress implements algorithms.TaskReporter.
func (t *folds) RoundProgress(units []round.TaskProgress) round.Progress {
	return SumFolds(units)
}

// Outcome implements Finisher.
func (t *folds) Outcome() (*Outcome, error) {
	if t.outcomes == nil {
		return nil, errors.New("the job is not finished yet")
	}
	o := &Outcome{EvaluatedOn: t.outcomes[0].EvaluatedOn, Rows: t.outcomes[0].Rows, Added: addedOverFolds(t.outcomes)}
	var reports, meanPredictors []measures.Report
	var against []*measures.AgainstBaseline
	digest, lossKnown, counters := sha256.New(), true, make(map[string]uint64)
	digest.Write([]byte("coppice-folds\x00"))
	for _, f := range t.outcomes {
		digest.Write([]byte(f.ModelDigest))
		o.Folds = append(o.Folds, withoutConfusion(f))
		o.Steps += f.Steps
		o.RefitSteps += f.RefitSteps
		o.Samples += f.Samples
		o.Loss += f.Loss / float64(len(t.outcomes))
		lossKnown = lossKnown && f.Loss >= 0
		reports = append(reports, f.Measures)
		meanPredictors = append(meanPredictors, f.MeanPredictor)
		against = append(against, f.Against)
		for name, n := range f.Counters {
			counters[name] += n
		}
	}
	if !lossKnown {
		o.Loss = -1
	}
	if len(counters) > 0 {
		o.Counters = counters
	}
	o.ModelDigest = hex.EncodeToString(digest.Sum(nil))
	o.Measures, o.MeanPredictor = measures.OverFolds(reports), measures.OverFolds(meanPredictors)
	o.Against, o.Screening = measures.PooledWithBaseline(against, t.samples), t.outcomes[0].Screening
	var err error
	o.Predictions, err = mergePredictions(t.outcomes)
	return o, err
}

// AppendState implements round.Trainer.
func (t *folds) AppendState(dst []byte) ([]byte, error) { return appendOutcomes(dst, t.encoded) }

// appendOutcomes appends the state of a job of sub-jobs: their encoded outcomes, once they are known.
func appendOutcomes(dst []byte, encoded [][]byte) ([]byte, error) {
	return fields.Append(dst, stateVersion, func(l *fields.List) { outcomesOf(l, &encoded, len(encoded)) })
}

// restoreOutcomes gives decode what appendOutcomes wrote of so many sub-jobs, if the outcomes were known.
func restoreOutcomes(state []byte, count int, decode func(encoded [][]byte) error) error {
	if state == nil {
		return nil
	}
	var encoded [][]byte
	err := fields.Read(state, stateVersion, func(l *fields.List) { outcomesOf(l, &encoded, count) })
	if err != nil || encoded == nil {
		return err
	}
	return decode(encoded)
}

func outcomesOf(l *fields.List, encoded *[][]byte, count int) {
	n := l.Count(len(*encoded), count)
	if l.Reading() && n > 0 {
		*encoded = make([][]byte, n)
	}
	for i := range *encoded {
		l.Bytes(&(*encoded)[i])
	}
}

// cells runs the runs of an experiment on one dataset, as sub-jobs, in one gather round.
// Each has the digest of the same job run alone. A run that fails has an outcome with the
// error, and the others go on.
type cells struct {
	job      *round.Job
	tasks    int
	done     bool
	part     func(unit int) ([]byte, error) // the runs' encoded outcomes, once done
	ends     []CellEnd                      // by task
	failures []int                          // the tasks that failed
	notRun   []int                          // the tasks that were not run
	digest   string
}

// phaseFailed is the phase of a run that failed.
const phaseFailed = "failed"

func checkCells(j *round.Job) error {
	if j.Folds > 0 {
		return errors.New("a job of runs cannot have folds of its own")
	}
	return j.Cells.Check(j.Split.Folds, j.Split.Overlap)
}

// Cell returns the job of one run of a job of runs that New or NewKernel took: what training on
// that fold alone, with the row's algorithm and settings, would be.
func Cell(j *round.Job, unit int) (*round.Job, error) {
	cell, ok := j.Cells.At(unit)
	if !ok {
		return nil, fmt.Errorf("run %d does not exist; the job has %d runs", unit, j.Cells.Count())
	}
	return cellJob(j, cell), nil
}

// Cells calls do with each run of a job of runs, by task, and the job that Cell returns, until
// do returns an error. It takes a time that grows with the number of runs.
func Cells(j *round.Job, do func(unit int, at round.Cell, child *round.Job) error) error {
	if err := checkCells(j); err != nil {
		return err
	}
	for unit, at := range j.Cells.All() {
		if err := do(unit, at, cellJob(j, at)); err != nil {
			return err
		}
	}
	return nil
}

func cellJob(j *round.Job, cell round.Cell) *round.Job {
	child, row := *j, &j.Cells.Rows[cell.Row]
	child.Cells, child.NoModel, child.PredictedRows = nil, !j.Cells.Models, j.Cells.PredictedRows
	child.Algorithm, child.Params, child.Enhance = row.Algorithm, row.Params, row.Enhance
	child.Seed += uint64(cell.Repeat)
	child.Split.Seed += uint64(cell.Repeat)
	child.Split.Fold = j.Cells.Index(cell) % j.Split.Folds
	child.Split.ValidationFraction, child.Split.ValidationMin = row.ValidationFraction, row.ValidationMin
	child.Split.TrainFraction = row.TrainFraction
	if !row.Groups {
		child.Split.Groups = ""
	}
	child.Weights = "" // of the predictions of all rows: a run has the digest of its own
	if at := j.Cells.Index(cell); at < len(row.External) {
		child.NoModel, child.Params = true, external.Params(row.External[at])
	}
	return &child
}

// Next implements round.Trainer.
func (t *cells) Next() (*round.Round, error) {
	if t.done {
		return nil, nil
	}
	how := &round.Gather{Apart: true, SubJob: func(unit int) *round.Job {
		cell, _ := t.job.Cells.At(unit)
		return cellJob(t.job, cell)
	}}
	for _, cell := range t.job.Cells.All() {
		how.Groups = append(how.Groups, int32(cell.Row))
	}
	return &round.Round{Kind: "cell", Tasks: t.tasks, Scope: round.Whole, How: how}, nil
}

// Fold implements round.Trainer.
func (t *cells) Fold(res *round.Result) error {
	err := error(nil)
	if res.Load != nil {
		err = t.read(res.Load)
	} else {
		err = t.decode(slices.Clone(res.Gathered))
	}
	if err == nil {
		for unit := range min(len(res.Took), t.tasks) {
			t.ends[unit].Took = res.Took[unit]
		}
	}
	return err
}

// decode reads the results that are in memory.
func (t *cells) decode(encoded [][]byte) error {
	if len(encoded) != t.tasks {
		return fmt.Errorf("got %d results for %d runs", len(encoded), t.tasks)
	}
	return t.read(func(unit int) ([]byte, error) { return encoded[unit], nil })
}

// read reads the results, one at a time: all together may be large. A run that was not run has no
// bytes.
func (t *cells) read(part func(unit int) ([]byte, error)) error {
	h, ends, failures, notRun := sha256.New(), make([]CellEnd, t.tasks), []int(nil), []int(nil)
	h.Write([]byte("coppice-cells\x00"))
	for unit := range t.tasks {
		b, err := part(unit)
		if err != nil {
			return fmt.Errorf("run %d: %w", unit, err)
		}
		if len(b) == 0 {
			notRun = append(notRun, unit)
			h.Write([]byte{0})
			continue
		}
		e, err := decodeEnding(b)
		if err != nil {
			return fmt.Errorf("run %d: %w", unit, err)
		}
		if ends[unit].Well = e.Error == ""; !ends[unit].Well {
			failures = append(failures, unit)
		}
		fmt.Fprintf(h, "%s\x00", e.ModelDigest)
	}
	t.done, t.part, t.ends, t.failures, t.notRun, t.digest = true, part, ends, failures, notRun,
		hex.EncodeToString(h.Sum(nil))
	return nil
}

// Progress implements round.Trainer: its steps are runs.
func (t *cells) Progress() round.Progress {
	p := round.Progress{Steps: uint64(t.tasks), Loss: -1}
	if t.done {
		p.Step = p.Steps
	}
	p.Phase = cellsPhase(int(p.Step), 0, len(t.failures), len(t.notRun))
	return p
}

// cellsPhase describes ended runs, some of them failed or not run, and running ones.
func cellsPhase(ended, running, failed, notRun int) string {
	text := fmt.Sprintf("runs: %d done", ended-failed-notRun)
	if running > 0 {
		text += fmt.Sprintf(", %d running", running)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if notRun > 0 {
		text += fmt.Sprintf(", %d not run", notRun)
	}
	return text
}

// ResultProgress implements algorithms.TaskReporter.
func (t *cells) ResultProgress(encoded []byte) (round.Progress, error) {
	e, err := decodeEnding(encoded)
	if err != nil {
		return round.Progress{Loss: -1}, err
	}
	p := round.Progress{Step: e.Steps, Steps: e.Steps, Samples: e.Samples, Loss: e.Loss}
	if e.Error != "" {
		p.Phase = phaseFailed
	}
	return p, nil
}

// RoundProgress implements algorithms.TaskReporter.
func (t *cells) RoundProgress(units []round.TaskProgress) round.Progress {
	n := round.TaskCounts{Tasks: len(units)}
	for i := range units {
		u := &units[i]
		n.Samples += u.Samples
		switch {
		case u.Done:
			n.Done++
			if t.HasFailed(u.Progress) {
				n.Failed++
			}
			if u.NotRun {
				n.NotRun++
			}
		case u.Known:
			n.Running++
		}
	}
	return t.CountedProgress(n)
}

// HasFailed implements round.TaskCounter.
func (t *cells) HasFailed(p round.Progress) bool { return p.Phase == phaseFailed }

// CountedProgress implements round.TaskCounter.
func (t *cells) CountedProgress(n round.TaskCounts) round.Progress {
	return round.Progress{Step: uint64(n.Done), Steps: uint64(n.Tasks), Samples: n.Samples, Loss: -1,
		Phase: cellsPhase(n.Done, n.Running, n.Failed, n.NotRun)}
}

// Outcome implements Finisher. It has no measures: rows differ in algorithm and settings.
func (t *cells) Outcome() (*Outcome, error) {
	if !t.done {
		return nil, errors.New("the job is not finished yet")
	}
	o := &Outcome{ModelDigest: t.digest, Steps: uint64(t.tasks), Loss: -1, EvaluatedOn: "test samples", CellCount: t.tasks,
		Cell: t.part, CellEnds: t.ends}
	o.CellsFailed, o.CellsNotRun = len(t.failures), len(t.notRun)
	if len(t.failures)+len(t.notRun) <= maxListed {
		o.Failed, o.NotRun = t.failures, t.notRun
	}
	for i := range o.Measures {
		o.Measures[i] = measures.Stat{Mean: math.NaN(), Std: math.NaN()}
	}
	o.MeanPredictor = o.Measures
	return o, nil
}

// maxListed bounds the runs that the outcome of a job of runs lists: the log has it.
const maxListed = 10_000

// AppendState implements round.Trainer.
func (t *cells) AppendState(dst []byte) ([]byte, error) {
	var encoded [][]byte
	for unit := 0; t.done && unit < t.tasks; unit++ {
		b, err := t.part(unit)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, b)
	}
	return appendOutcomes(dst, encoded)
}

// SubJobsMayFail reports whether a job goes on if one of its sub-jobs fails: a run, or a small model of the screening.
func SubJobsMayFail(j *round.Job) bool { return j.Cells != nil || j.Folds == 0 && j.Screen }

// FailedOutcome is what a sub-job ends with that failed.
func FailedOutcome(err error) *Outcome {
	text := err.Error()
	return &Outcome{Error: strings.ToValidUTF8(text[:min(len(text), maxError)], ""), Loss: -1}
}

// maxError bounds the text of a run's error, in bytes.
const maxError = 256

// cellsKernel is the kernel of a job of runs, which computes nothing: each run has a kernel
// of its own.
type cellsKernel struct {
	bytes int64
	what  string
}

// newCellsKernel knows what the runs take. A row without a kernel takes nothing:
// each of its runs says why.
func newCellsKernel(j *round.Job, m *dataset.Manifest) (*cellsKernel, error) {
	if err := checkCells(j); err != nil {
		return nil, err
	}
	k := new(cellsKernel)
	for row := range j.Cells.Rows {
		child := cellJob(j, round.Cell{Row: row})
		a, err := registry.Find(child.Algorithm)
		if err != nil {
			continue
		}
		if e := child.Enhance; e != nil {
			if bytes, what := enhance.Demand(e, m); bytes > k.bytes {
				k.bytes, k.what = bytes, what
			}
		}
		inner, err := a.NewKernel(child, m)
		if err != nil {
			continue
		}
		if d, ok := inner.(round.Demanding); ok {
			if bytes, what := d.Demand(); bytes > k.bytes {
				k.bytes, k.what = bytes, what
			}
		}
	}
	return k, nil
}

// NewScratch implements round.Kernel.
func (k *cellsKernel) NewScratch() any { return nil }

// Demand implements round.Demanding: what the most demanding row takes.
func (k *cellsKernel) Demand() (bytes int64, what string) { return k.bytes, k.what }
