package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

// Options says which runs that have ended are repeated, and what is kept.
type Options struct {
	RetryFailed bool // repeat the runs that failed
	RecordAgain bool // repeat the runs that ended without the data that the spec records
	OnlyFailed  bool // add only runs that have ended and are repeated
	Models      bool // keep the model of each new run
}

// Plan is what a spec runs on a dataset of the cluster.
type Plan struct {
	*experiment.Plan
	On string // name of the dataset on the cluster
}

// Submission is what a spec adds to an experiment: a job for each dataset with new runs.
type Submission struct {
	Name    string
	Plan    protocol.ExperimentPlan // without jobs
	Empty   bool                    // true if there is nothing new
	Jobs    []Job
	Outline string   // digest of the outline
	After   uint64   // the index of the log at which the experiment was read
	Blobs   [][]byte // the outline and the lists of folds that Jobs name
	Layout  *experiment.Layout

	jobs    []string          // of the experiment, as they were read
	digests map[string]string // of the datasets that were planned on, by name on the cluster
}

// Job is a job of runs on one dataset.
type Job struct {
	Name    string
	Dataset string // name
	Job     *round.Job
	Spec    json.RawMessage // an experiment.JobSpec
	// Manifest is of the dataset that the job was planned on; nil: a job is repeated.
	Manifest *dataset.Manifest
}

// Add decides which runs of a spec are added to an experiment: the runs that no job has or will have, and runs to
// repeat. skipped are the datasets of the spec without a plan.
func (e *Experiment) Add(ctx context.Context, s *experiment.Spec, plans []Plan, skipped []string,
	o Options) (*Submission, error) {
	var list []*experiment.Plan
	for _, p := range plans {
		list = append(list, p.Plan)
		if p.Job != nil {
			p.Job.Cells.Models = o.Models
		}
	}
	if err := s.CheckPlans(list); err != nil {
		return nil, err
	}
	outline := experiment.NewOutline(s, list, skipped)
	layout, err := outline.Layout()
	if err != nil {
		return nil, err
	}
	known, err := e.known(ctx, s, o)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(outline)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	before, err := e.Layout(ctx)
	if errors.Is(err, errUnread) {
		return nil, err // no user can agree to what is orphaned
	}
	if err != nil { // there is no layout, or it is lost: this submission brings it
		before = nil
	}
	sub := &Submission{Name: s.Name, Plan: *layout.Plan(s, before, known.Known), Outline: hex.EncodeToString(sum[:]),
		Blobs: [][]byte{text}, Layout: layout, jobs: e.states()}
	last := ""
	for _, j := range e.Jobs {
		sub.After, last = max(sub.After, j.Index), j.Outline
	}
	spent := layout.Spent(known.records)
	for _, p := range plans {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := e.addJob(sub, s, p, known, spent); err != nil {
			return nil, err
		}
	}
	sub.Empty = len(sub.Jobs) == 0 && (len(e.Jobs) == 0 || last == sub.Outline)
	return sub, nil
}

// Retry decides which runs of the last submission are repeated: the runs that failed and, unless only failed runs are
// wanted, the runs without a result that no job will have. Budgets do not count. The outline stays as it is.
func (e *Experiment) Retry(ctx context.Context, o Options) (*Submission, error) {
	outline, err := e.outline(ctx)
	if err != nil {
		return nil, err
	}
	layout, err := outline.Layout()
	if err != nil {
		return nil, err
	}
	s, err := experiment.SpecOf(layout)
	if err != nil {
		return nil, fmt.Errorf("the spec of experiment %s: %w", e.Name, err)
	}
	s.Record = outline.Record
	s.NoBudgets()
	known, err := e.known(ctx, s, o)
	if err != nil {
		return nil, err
	}
	on := e.datasets()
	sub := &Submission{Name: e.Name, Plan: *layout.Plan(s, nil, known.Known), Outline: e.Jobs[len(e.Jobs)-1].Outline,
		Layout: layout, jobs: e.states()}
	sub.Plan.Notes = nil
	spent := make([]float64, len(s.Methods)) // of budgets, which there are not
	for i := range outline.Sets {
		set, d := &outline.Sets[i], &outline.Table.Datasets[i]
		p := &experiment.Plan{Dataset: experiment.Dataset{Name: d.Name}, Job: set.Job, Methods: set.Methods,
			Tested: set.Tested, Repeats: set.Repeats, Folds: d.Folds}
		before := len(sub.Jobs)
		if err := e.addJob(sub, s, Plan{p, on[d.Name]}, known, spent); err != nil {
			return nil, err
		}
		if len(sub.Jobs) > before && on[d.Name] == "" {
			return nil, requestErrorf("experiment %s has no job on dataset %s; coppice experiment run SPEC submits its runs",
				e.Name, d.Name)
		}
	}
	sub.Empty = len(sub.Jobs) == 0
	return sub, nil
}

// addJob adds a job for the new runs of a dataset, if there are any. spent are the seconds that the runs of each method
// have taken.
func (e *Experiment) addJob(sub *Submission, s *experiment.Spec, p Plan, known *knownRuns, spent []float64) error {
	runs, err := p.Runs()
	if err != nil {
		return err
	}
	planned := make(map[string]bool)
	runs = slices.DeleteFunc(runs, func(c experiment.Run) bool { // an equal method has the run
		again := planned[c.Key]
		planned[c.Key] = true
		return again
	})
	j, methods := p.Only(runs, func(c *experiment.Run) bool { return known.isNew(c.Key) })
	if j == nil {
		return nil
	}
	ended := make(map[int]experiment.Ended) // of the dataset, and not repeated, by method
	for i := range runs {
		c := &runs[i]
		switch r := known.records[c.Key]; {
		case known.Kept[c.Key] && r != nil:
			ended[c.Method] = ended[c.Method].Plus(r)
		case known.isNew(c.Key) && known.Again[c.Key]:
			j.Cells.Again++
		}
	}
	s.Bound(j, methods, spent, ended)
	if p.Assigned != nil {
		sub.Blobs = append(sub.Blobs, dataset.EncodeFolds(p.Assigned))
	}
	kept := experiment.JobSpec{Dataset: p.Dataset.Name, Tested: p.Tested}
	for _, method := range methods {
		kept.Methods = append(kept.Methods, s.Methods[method].Name)
	}
	spec, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	base := s.Name + "." + p.Dataset.Name
	name, taken := base, make(map[string]bool)
	for _, other := range e.Jobs {
		taken[other.Name] = true
	}
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	sub.Jobs = append(sub.Jobs, Job{Name: name, Dataset: p.On, Job: j, Spec: spec, Manifest: p.Manifest})
	sub.Plan.Runs += j.Cells.Count()
	return nil
}

// knownRuns is what the jobs of an experiment have, by the keys of runs.
type knownRuns struct {
	// records are of runs that have ended, if they were read: all of them if the spec has budgets.
	records           map[string]*experiment.Record
	*experiment.Known      // of several jobs with a run of one name, Names has the key of the last job
	onlyAgain         bool // true if only runs that have ended are repeated
}

// isNew reports whether a submission has the run.
func (k *knownRuns) isNew(key string) bool { return !k.Kept[key] && (k.Again[key] || !k.onlyAgain) }

// live reports whether a job has outcomes of all of its runs, or will have them.
func live(j *experiment.ClusterJob) bool {
	return j.State != protocol.Failed && j.State != protocol.Cancelled
}

// leavesOut reports whether a job is done and may have runs that were not run, because their budget was used up.
func leavesOut(j *experiment.ClusterJob) bool { return j.State == protocol.Done && j.CellsNotRun > 0 }

// known says which runs the jobs have. A run that is to be repeated counts only if a job is about to repeat it.
func (e *Experiment) known(ctx context.Context, s *experiment.Spec, o Options) (*knownRuns, error) {
	every := s.HasBudgets() || o.RetryFailed // otherwise the log tells which runs have ended
	all, err := e.ended(ctx, false, func(j *experiment.ClusterJob) bool { return every || !live(j) || leavesOut(j) })
	if err != nil {
		return nil, err
	}
	k := &knownRuns{Known: experiment.NewKnown("experiment " + e.Name), onlyAgain: o.OnlyFailed}
	k.records, k.Names = make(map[string]*experiment.Record), make(map[result.Name]string)
	for key, r := range all {
		k.records[key] = r.Record
		k.Kept[key] = r.Outcome.Error == "" || !o.RetryFailed
		k.Again[key] = !k.Kept[key]
	}
	recorded := make(map[string]bool) // runs with the data that the spec records
	for _, j := range e.Jobs {
		runs, err := j.Runs()
		if err != nil {
			return nil, err
		}
		records := s.Record.In(j.Job.Cells)
		for i := range runs {
			c := &runs[i]
			recorded[c.Key] = recorded[c.Key] || records && (live(j) || all[c.Key].job == j.ID)
			if !live(j) || leavesOut(j) && all[c.Key].Record == nil {
				continue
			}
			k.Names[j.NameOf(c)] = c.Key
			if !k.Again[c.Key] || j.State != protocol.Done && all[c.Key].job != j.ID {
				k.Kept[c.Key] = true
			}
		}
		if live(j) && k.Numerics == 0 {
			k.Numerics = j.Job.Numerics
		}
	}
	if !s.Record.Any() {
		return k, nil
	}
	for key, has := range k.Kept {
		switch {
		case !has || recorded[key]:
		case o.RecordAgain:
			k.Kept[key], k.Again[key] = false, true
		default:
			k.Lacking[key] = true
		}
	}
	return k, nil
}
