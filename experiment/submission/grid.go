package submission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/protocol"
)

// End says how a run of a job has ended.
type End uint8

// The ends of runs. A later one counts if several jobs have a run.
const (
	Open    End = iota // it has not ended
	LeftOut            // it is not run, because its budget is used up
	Failed
	Well
)

// Ends is what is known of the runs of a job.
type Ends struct {
	By      []End // by task
	Running []int // tasks that are computed now
	Live    bool  // true if the job has not ended
}

// Grid counts the runs of the last submission of an experiment. It keeps some ten bytes for each run, and no outcome.
type Grid struct {
	head     protocol.ExperimentGrid // without counts
	elements [][]gridRuns            // by method, then by dataset
	jobs     []gridJob               // the oldest comes first
	numbers  int                     // of different runs of the submission
}

// gridRuns is the runs of a method on a dataset.
type gridRuns struct {
	all     int
	numbers []int32 // of the runs; a run that is refused, or that no job can have, has none
	refused string  // why all runs have failed; empty: they are not refused
}

// gridJob is the runs of a job.
type gridJob struct {
	id      uint64
	cells   *round.Cells
	numbers []int32 // by task
}

// Grid returns the grid of the last submission.
func (e *Experiment) Grid(ctx context.Context) (*Grid, error) {
	o, err := e.outline(ctx)
	if err != nil {
		return nil, err
	}
	return newGrid(o, e.Jobs)
}

// newGrid returns the grid of an outline for the jobs of its experiment.
func newGrid(o *experiment.Outline, jobs []*experiment.ClusterJob) (*Grid, error) {
	if _, err := o.Runs(); err != nil {
		return nil, err
	}
	g := &Grid{head: protocol.ExperimentGrid{Name: o.Table.Name, Datasets: []string{}, Methods: []protocol.GridMethod{}}}
	for i := range o.Table.Methods {
		g.head.Methods = append(g.head.Methods, protocol.GridMethod{Name: o.Table.Methods[i].Name})
		g.elements = append(g.elements, make([]gridRuns, len(o.Table.Datasets)))
	}
	all := experiment.NewNumbers()
	for d := range o.Sets {
		g.head.Datasets = append(g.head.Datasets, o.Table.Datasets[d].Name)
		if err := g.addSet(all, o, d); err != nil {
			return nil, fmt.Errorf("dataset %s: %w", o.Table.Datasets[d].Name, err)
		}
	}
	g.head.Total, g.numbers = len(g.head.Methods), all.Different()
	for _, j := range jobs {
		if j.Job == nil || j.Job.Cells == nil {
			continue
		}
		numbers, err := all.Add(j.Job, j.Spec.Tested)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		g.jobs = append(g.jobs, gridJob{j.ID, j.Job.Cells, numbers})
	}
	slices.SortFunc(g.jobs, func(a, b gridJob) int { return cmp.Compare(a.id, b.id) })
	return g, nil
}

// addSet adds the runs on a dataset.
func (g *Grid) addSet(all *experiment.Numbers, o *experiment.Outline, d int) error {
	set := &o.Sets[d]
	folds := o.Table.Datasets[d].Folds
	if len(set.Only) > 0 {
		folds = len(set.Only)
	}
	for method := range g.elements {
		g.elements[method][d] = gridRuns{all: max(0, set.Repeats) * max(0, folds), refused: set.Refused[method]}
	}
	if set.Job == nil {
		return nil
	}
	numbers, err := all.Add(set.Job, set.Tested)
	if err != nil {
		return err
	}
	for unit, at := range set.Job.Cells.All() {
		if at.Row >= len(set.Methods) || set.Methods[at.Row] < 0 || set.Methods[at.Row] >= len(g.elements) {
			return fmt.Errorf("%w: the outline has no method for row %d of the job", experiment.ErrFolder, at.Row)
		}
		e := &g.elements[set.Methods[at.Row]][d]
		if e.numbers == nil {
			e.numbers = make([]int32, 0, e.all)
		}
		if len(e.numbers) < e.all {
			e.numbers = append(e.numbers, numbers[unit])
		}
	}
	return nil
}

// Size returns how many runs the grid keeps something of.
func (g *Grid) Size() (n int) {
	for i := range g.jobs {
		n += len(g.jobs[i].numbers)
	}
	return n + g.numbers
}

// running is the state of a run that is computed now, after the states of End.
const running = Well + 1

// runAt is a run of a job.
type runAt struct{ job, task int32 } // job is a place in Grid.jobs

// Counted counts the runs for a query. of says what is known of a job. why returns why a run of a job failed, or an
// empty text.
func (g *Grid) Counted(q protocol.GridQuery, of func(job uint64) Ends,
	why func(job uint64, task int) string) *protocol.ExperimentGrid {
	states, failed := g.states(of)
	part := g.head.Part(q)
	part.Methods = slices.Clone(part.Methods)
	described := 0
	for method, datasets := range g.elements {
		at := method - q.From
		asked := at >= 0 && at < len(part.Methods)
		if asked {
			part.Methods[at].Runs = make([]protocol.GridElement, 0, len(datasets))
		}
		for d := range datasets {
			e := protocol.GridElement{RunCounts: datasets[d].count(states)}
			part.Runs = part.Runs.Plus(e.RunCounts)
			if !asked {
				continue
			}
			if most := protocol.MaxGridFailures - described; e.Failed > 0 && most > 0 {
				e.Failures = g.failures(&datasets[d], states, failed, most, why)
				described += len(e.Failures)
			}
			part.Methods[at].Runs = append(part.Methods[at].Runs, e)
		}
	}
	return &part
}

// states returns the state of each run by its number, and which run of a job has failed. A run that failed counts as
// failed until it is computed again. A run that was left out waits if a later job has it.
func (g *Grid) states(of func(job uint64) Ends) (states []End, failed []runAt) {
	states, failed = make([]End, g.numbers), make([]runAt, g.numbers)
	var computed []int32
	for i := range g.jobs {
		j := &g.jobs[i]
		ends := of(j.id)
		for task, number := range j.numbers[:min(len(j.numbers), len(ends.By))] {
			if int(number) >= g.numbers { // the submission does not have the run
				continue
			}
			now, end := &states[number], ends.By[task]
			switch {
			case end == Open && *now == LeftOut && ends.Live:
				*now = Open
			case end >= *now && end > Open:
				*now, failed[number] = end, runAt{int32(i), int32(task)}
			}
		}
		for _, task := range ends.Running {
			if task >= 0 && task < len(j.numbers) && int(j.numbers[task]) < g.numbers {
				computed = append(computed, j.numbers[task])
			}
		}
	}
	for _, number := range computed {
		if states[number] < Well {
			states[number] = running
		}
	}
	return states, failed
}

// count counts the runs of an element.
func (r *gridRuns) count(states []End) protocol.RunCounts {
	if r.refused != "" {
		return protocol.RunCounts{All: r.all, Failed: r.all}
	}
	var n [running + 1]int
	for _, number := range r.numbers {
		n[states[number]]++
	}
	return protocol.RunCounts{All: r.all, Done: n[Well], Failed: n[Failed], Running: n[running], NotRun: n[LeftOut]}
}

// failures describes at most so many failed runs of an element.
func (g *Grid) failures(r *gridRuns, states []End, failed []runAt, most int,
	why func(job uint64, task int) string) (list []protocol.FailedRun) {
	if r.refused != "" {
		return []protocol.FailedRun{{Error: r.refused}}
	}
	for _, number := range r.numbers {
		if len(list) == min(most, protocol.MaxElementFailures) {
			break
		}
		if states[number] != Failed {
			continue
		}
		at := failed[number]
		j, task := &g.jobs[at.job], int(at.task)
		cell, _ := j.cells.At(task)
		list = append(list, protocol.FailedRun{Repeat: cell.Repeat, Fold: cell.Fold, Job: j.id, Task: task,
			Error: why(j.id, task)})
	}
	return list
}
