package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// clusterPlan is what is planned on a dataset of the cluster.
type clusterPlan struct {
	plan *experiment.Plan
	on   string // name of the dataset there
}

// planThere puts the datasets on the cluster and plans their cells.
func (s *specArg) planThere(a *app, cl *client.Client, of *experiment.Spec) (plans []*clusterPlan, skipped []string, err error) {
	var mistakes experiment.Errors
	for i := range of.Datasets {
		d := &of.Datasets[i]
		there, err := true, error(nil)
		if d.File != "" {
			there, err = s.isThere(of, d)
		}
		if err == nil && !there {
			a.note("skipped: dataset %s, because %s does not exist", d.Name, s.path(d.File))
			skipped = append(skipped, d.Name)
			continue
		}
		var p *clusterPlan
		if err == nil {
			p, err = s.planOne(a, cl, of, d)
		}
		if err != nil && !a.collect(&mistakes, err) {
			return nil, nil, err
		}
		plans = append(plans, p)
	}
	if err := mistakes.Sorted(); err != nil {
		return nil, nil, err
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("%s: the files of all datasets are missing", s.Spec)
	}
	return plans, skipped, nil
}

func (s *specArg) planOne(a *app, cl *client.Client, of *experiment.Spec, d *experiment.Dataset) (*clusterPlan, error) {
	set, err := s.send(a, cl, of, d)
	if err != nil {
		return nil, err
	}
	data := &experiment.Data{Manifest: set.Manifest}
	if g := set.Manifest.Groups; g != nil && d.Folds.Way == folds.Groups {
		b, err := cl.Blob(a.ctx, g.Digest)
		if err != nil {
			return nil, err
		}
		if data.Groups, err = dataset.DecodeFolds(b, set.Manifest.Rows); err != nil {
			return nil, err
		}
	}
	if data.Splits, err = s.splits(of, d, set.Manifest); err != nil {
		return nil, err
	}
	p, err := experiment.NewPlan(of, d, data)
	return &clusterPlan{p, set.Name}, err
}

// send returns the dataset on the cluster, importing a file.
func (s *specArg) send(a *app, cl *client.Client, of *experiment.Spec, d *experiment.Dataset) (*protocol.Dataset, error) {
	if d.On != "" {
		set, err := cl.Dataset(a.ctx, d.On)
		if client.IsNotFound(err) {
			return nil, of.Error(d.At, "the cluster has no dataset %q", d.On)
		}
		return set, err
	}
	src, checks, err := s.source(a, of, d)
	if err != nil {
		return nil, err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	set, err := importAs(a.ctx, cl, d.Name, src, importOptions(a.ctx, checks, m))
	if client.IsConflict(err) {
		return nil, of.Error(d.At, "%v; give this experiment another name with the key name", err)
	}
	return set, located(of, d, err)
}

// noExperiment says that a cluster has no experiment of that name.
func noExperiment(name string) error {
	return absent{fmt.Errorf("the cluster has no experiment %q; coppice experiment list shows its experiments", name)}
}

// onCluster is an experiment as a cluster has it.
type onCluster struct {
	cl   *client.Client
	name string
	jobs []*experiment.ClusterJob // by submission
	// layout is that of the spec, where it is known; else that of the outline, which was
	// submitted last.
	layout *experiment.Layout
}

// readJobs reads the jobs of an experiment.
func readJobs(ctx context.Context, cl *client.Client, name string) (*onCluster, error) {
	list, err := cl.ListJobs(ctx, protocol.JobQuery{Experiment: name, Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	e := &onCluster{cl: cl, name: name}
	for i := range list.Jobs {
		j := &experiment.ClusterJob{JobInfo: &list.Jobs[i]}
		if j.Spec, err = experiment.DecodeJobSpec(j.JobInfo.Spec); err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		e.jobs = append(e.jobs, j)
	}
	slices.SortFunc(e.jobs, func(a, b *experiment.ClusterJob) int { return cmp.Compare(a.ID, b.ID) })
	return e, nil
}

// readLayout reads the layout that the last submission has, where that of a spec is not known.
func (e *onCluster) readLayout(ctx context.Context) (*experiment.Layout, error) {
	if e.layout != nil {
		return e.layout, nil
	}
	digest := e.jobs[len(e.jobs)-1].Outline
	if digest == "" {
		return nil, fmt.Errorf("the jobs of experiment %s do not have its list of runs; coppice experiment run SPEC records the list again", e.name)
	}
	b, err := e.cl.Blob(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("the list of runs of experiment %s: %w", e.name, err)
	}
	o, err := experiment.DecodeOutline(b)
	if err != nil {
		return nil, err
	}
	return o.Layout()
}

// state returns the state of an experiment that has jobs.
func (e *onCluster) state() string {
	var jobs []state.Job
	for _, j := range slices.Backward(e.jobs) {
		jobs = append(jobs, state.Job{JobInfo: j.JobInfo})
	}
	return string(state.Of(jobs).State)
}

// live reports whether a job has results of all of its cells, or will have them.
func live(j *experiment.ClusterJob) bool {
	return j.State != protocol.Failed && j.State != protocol.Cancelled
}

// endedCells are the cells of an experiment that have ended.
type endedCells struct {
	records map[string]*experiment.Record // by key
	names   map[string]tables.Name        // by key
	jobs    map[string]uint64             // the job that a record is of, by key
}

// read reads the cells that have ended in jobs that of chooses, with what is recorded beside their
// outcomes or without. Of a cell that failed, or has less, and was run again the later outcome counts.
func (e *onCluster) read(ctx context.Context, records bool, of func(*experiment.ClusterJob) bool) (*endedCells, error) {
	all := &endedCells{make(map[string]*experiment.Record), make(map[string]tables.Name), make(map[string]uint64)}
	for _, j := range e.jobs {
		if !of(j) {
			continue
		}
		cells, err := j.Cells()
		if err != nil {
			return nil, err
		}
		err = e.cl.Cells(ctx, strconv.FormatUint(j.ID, 10), records, func(c protocol.CellOutcome) error {
			if c.Task < 0 || c.Task >= len(cells) {
				return fmt.Errorf("job %s: run %d of %d", j.Name, c.Task, len(cells))
			}
			return all.add(j, &cells[c.Task], &c)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *endedCells) add(j *experiment.ClusterJob, cell *experiment.Cell, c *protocol.CellOutcome) error {
	r := &experiment.Record{Key: cell.Key, Seconds: max(0, c.Seconds), Outcome: new(pipeline.Outcome)}
	if err := json.Unmarshal(c.Outcome, r.Outcome); err != nil {
		return fmt.Errorf("job %s, run %d: %w", j.Name, c.Task, err)
	}
	if err := r.SetRecorded(c.Curve, c.Predictions); err != nil {
		return fmt.Errorf("job %s, run %d: %w", j.Name, c.Task, err)
	}
	if r.BetterThan(a.records[r.Key]) {
		a.records[r.Key], a.names[r.Key], a.jobs[r.Key] = r, j.NameOf(cell), j.ID
	}
	return nil
}

// leftOut lists the cells that ended and are none of the layout's, by name.
func (a *endedCells) leftOut(l *experiment.Layout) (list []tables.Name) {
	known := l.Has()
	for key, name := range a.names {
		if !known[key] {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, tables.Name.Compare)
	return list
}

// clusterTable is the table of an experiment so far.
type clusterTable struct {
	*tables.Table
	layout  *experiment.Layout
	skipped []string
	leftOut []tables.Name // cells that ended and that the last submission does not name
}

// table returns the table of the experiment so far.
func (e *onCluster) table(ctx context.Context) (*clusterTable, error) {
	if len(e.jobs) == 0 {
		return nil, noExperiment(e.name)
	}
	l, err := e.readLayout(ctx)
	if err != nil {
		return nil, err
	}
	all, err := e.read(ctx, l.Record.Any(), func(*experiment.ClusterJob) bool { return true })
	if err != nil {
		return nil, err
	}
	return &clusterTable{l.Fill(all.records, nil), l, l.Skipped, all.leftOut(l)}, nil
}

// noteLeftOut says which cells a report does not have.
func (t *clusterTable) noteLeftOut(a *app) {
	if n := len(t.leftOut); n > 0 {
		a.note("%s left out, because the last submission of the experiment does not contain them: %s", ofCells(n), someOf(t.leftOut))
	}
}

// ofCells counts cells at the beginning of a sentence.
func ofCells(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return count(n) + " runs are"
}

// maxNamedCells bounds the cells that a note names.
const maxNamedCells = 10

// someOf names the first cells of a list.
func someOf(list []tables.Name) string {
	var text []string
	for _, name := range list[:min(len(list), maxNamedCells)] {
		text = append(text, name.String())
	}
	if n := len(list) - maxNamedCells; n > 0 {
		text = append(text, fmt.Sprintf("and %s more", count(n)))
	}
	return strings.Join(text, "; ")
}

// knownCells says of the keys of an experiment's cells which need not be submitted.
type knownCells struct {
	// records are those of cells that have ended, as far as they were read: all of them where the
	// spec has budgets.
	records map[string]*experiment.Record
	has     map[string]bool // the cells that jobs have, or will have
	again   map[string]bool // of the others those that have ended and are run again
	lacking map[string]bool // of those in has the ones without what is recorded
	// names has the keys of all cells of jobs by name, of two jobs those of the later one, and
	// numerics the numerics of the oldest job.
	names    map[tables.Name]string
	numerics int
}

// leavesOut reports whether a job is done and may have cells that were not run, for their budget.
func leavesOut(j *experiment.ClusterJob) bool { return j.State == protocol.Done && j.CellsNotRun > 0 }

// known returns the cells that jobs have, or will have; without those that failed, or lack what is
// recorded, where these are to be run again, unless a job is about to. every: the records of all
// cells are read.
func (e *onCluster) known(ctx context.Context, flags *cellFlags, of *experiment.Recorded, every bool) (*knownCells, error) {
	retry := flags.RetryFailed
	all, err := e.read(ctx, false, func(j *experiment.ClusterJob) bool { return every || retry || !live(j) || leavesOut(j) })
	if err != nil {
		return nil, err
	}
	k := &knownCells{records: all.records, has: make(map[string]bool), again: make(map[string]bool), lacking: make(map[string]bool), names: make(map[tables.Name]string)}
	for key, r := range all.records {
		k.has[key] = r.Outcome.Error == "" || !retry
		k.again[key] = !k.has[key]
	}
	for _, j := range e.jobs {
		if !live(j) {
			continue
		}
		cells, err := j.Cells()
		if err != nil {
			return nil, err
		}
		if k.numerics == 0 {
			k.numerics = j.Job.Numerics
		}
		for i := range cells {
			c := &cells[i]
			if leavesOut(j) && all.records[c.Key] == nil {
				continue
			}
			k.names[j.NameOf(c)] = c.Key
			if !k.again[c.Key] || j.State != protocol.Done && all.jobs[c.Key] != j.ID {
				k.has[c.Key] = true
			}
		}
	}
	return k, k.lack(e.jobs, all, of, flags.RecordAgain)
}

// ended counts those of the cells that have ended and are not run again, by row.
func (k *knownCells) ended(cells []experiment.Cell) map[int]experiment.Ended {
	ended := make(map[int]experiment.Ended)
	for i := range cells {
		c := &cells[i]
		if r := k.records[c.Key]; r != nil && k.has[c.Key] {
			ended[c.Row] = ended[c.Row].Plus(r)
		}
	}
	return ended
}

// request lists the jobs of the cells that no job of the experiment has, beside its outline; spent is what cells
// of each row of the spec have taken.
func (e *onCluster) request(ctx context.Context, s *experiment.Spec, plans []*clusterPlan, outline *experiment.Outline, spent []float64, known *knownCells) (*protocol.ExperimentRequest, int, error) {
	b, err := json.Marshal(outline)
	if err != nil {
		return nil, 0, err
	}
	r, n := &protocol.ExperimentRequest{Name: s.Name}, 0
	for _, j := range e.jobs {
		r.After = max(r.After, j.Index)
	}
	if r.Outline, err = e.cl.PutBlob(ctx, b); err != nil {
		return nil, 0, err
	}
	for _, p := range plans {
		cells, err := p.plan.Cells()
		if err != nil {
			return nil, 0, err
		}
		j, rows := p.plan.Only(cells, func(c *experiment.Cell) bool { return !known.has[c.Key] })
		if j == nil {
			continue
		}
		for i := range cells {
			if c := &cells[i]; !known.has[c.Key] && known.again[c.Key] {
				j.Cells.Again++
			}
		}
		s.Bound(j, rows, spent, known.ended(cells))
		if p.plan.Assigned != nil {
			if _, err := e.cl.PutBlob(ctx, dataset.EncodeFolds(p.plan.Assigned)); err != nil {
				return nil, 0, err
			}
		}
		kept := experiment.JobSpec{Dataset: p.plan.Dataset.Name, Tested: p.plan.Tested}
		for _, row := range rows {
			kept.Rows = append(kept.Rows, s.Rows[row].Name)
		}
		spec, err := json.Marshal(kept)
		if err != nil {
			return nil, 0, err
		}
		r.Jobs = append(r.Jobs, protocol.ExperimentJob{Name: e.freeName(s.Name + "." + p.plan.Dataset.Name), Dataset: p.on, Job: j, Spec: spec})
		n += j.Cells.Count()
	}
	return r, n, nil
}

// freeName returns name, or name with a number where a job of the experiment has it.
func (e *onCluster) freeName(name string) string {
	taken := make(map[string]bool)
	for _, j := range e.jobs {
		taken[j.Name] = true
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s.%d", name, n)
	}
	return free
}

// submit submits the cells of a spec that no job of its experiment has, and returns how many
// there are; flags: also those that are run again; models: their models are kept. The experiment has the
// layout of the spec then.
func (s *specArg) submit(a *app, cl *client.Client, of *experiment.Spec, flags *cellFlags, models bool) (*onCluster, int, error) {
	e, err := readJobs(a.ctx, cl, of.Name)
	if err != nil {
		return nil, 0, err
	}
	plans, skipped, err := s.planThere(a, cl, of)
	if err != nil {
		return nil, 0, err
	}
	known, err := e.known(a.ctx, flags, &of.Record, of.HasBudgets())
	if err != nil {
		return nil, 0, err
	}
	var all []*experiment.Plan
	for _, p := range plans {
		all = append(all, p.plan)
		if p.plan.Job != nil {
			p.plan.Job.Cells.Models = models
		}
	}
	if err := of.CheckRecorded(all); err != nil {
		return nil, 0, err
	}
	outline := experiment.NewOutline(of, all, skipped)
	layout, err := outline.Layout()
	if err != nil {
		return nil, 0, err
	}
	if len(e.jobs) > 0 {
		if before, err := e.readLayout(a.ctx); err == nil { // else this submission brings the outline
			noteOther(a, of, before, "experiment "+of.Name)
		}
	}
	noteSame(a, layout.Table)
	noteLacking(a, known.lackingOf(layout))
	noteAgain(a, layout.Again(known.names, func(key string) bool { return known.has[key] }), known.numerics)
	r, n, err := e.request(a.ctx, of, plans, outline, layout.Spent(known.records), known)
	if err != nil {
		return nil, 0, err
	}
	if last := len(e.jobs) - 1; len(r.Jobs) == 0 && (last < 0 || e.jobs[last].Outline == r.Outline) {
		e.layout = layout
		return e, 0, nil
	}
	if _, err := cl.SubmitExperiment(a.ctx, *r); err != nil {
		if errors.Is(err, context.Canceled) {
			err = interrupted{"interrupted; the experiment may have been submitted: see coppice experiment list"}
		}
		return nil, 0, err
	}
	if e, err = readJobs(a.ctx, cl, of.Name); err == nil {
		e.layout = layout
	}
	return e, n, err
}
