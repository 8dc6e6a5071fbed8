package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

// clusterPlan is what is planned on a dataset of the cluster.
type clusterPlan struct {
	plan *experiment.Plan
	on   string // name of the dataset there
}

// planThere puts the datasets on the cluster and plans their cells.
func (s *specArg) planThere(a *app, cl *client.Client, of *experiment.Spec) (plans []*clusterPlan, skipped []string, err error) {
	for i := range of.Datasets {
		d := &of.Datasets[i]
		if d.File != "" {
			there, err := s.isThere(of, d)
			if err != nil {
				return nil, nil, err
			}
			if !there {
				a.note("skipped: dataset %s, since %s is not there", d.Name, s.path(d.File))
				skipped = append(skipped, d.Name)
				continue
			}
		}
		p, err := s.planOne(a, cl, of, d)
		if err != nil {
			return nil, nil, err
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("%s: none of its datasets is there", s.Spec)
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
	if data.Splits, err = s.splits(d, set.Manifest); err != nil {
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
	return importAs(a.ctx, cl, d.Name, src, importOptions(a.ctx, checks, m))
}

// onCluster is an experiment as a cluster has it.
type onCluster struct {
	cl   *client.Client
	name string
	jobs []*experiment.ClusterJob // by submission
	// layout is that of the spec, where it is known; else the jobs say what it was at the last
	// submission of cells.
	layout *experiment.Layout
}

// readJobs reads the jobs of an experiment.
func readJobs(ctx context.Context, cl *client.Client, name string) (*onCluster, error) {
	list, err := cl.ListJobs(ctx, protocol.JobQuery{Experiment: name, Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	e := &onCluster{cl: cl, name: name}
	lists := make(map[string][]uint16) // of splits, by digest
	for i := range list.Jobs {
		j := &experiment.ClusterJob{JobInfo: &list.Jobs[i]}
		if j.Spec, err = experiment.DecodeJobSpec(j.JobInfo.Spec); err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		if digest := j.Job.Split.Assigned; j.Job.Split.Overlap {
			if lists[digest] == nil {
				if lists[digest], err = e.splits(ctx, j); err != nil {
					return nil, err
				}
			}
			j.Assigned = lists[digest]
		}
		e.jobs = append(e.jobs, j)
	}
	return e, nil
}

// splits reads the list that a job's split names.
func (e *onCluster) splits(ctx context.Context, j *experiment.ClusterJob) ([]uint16, error) {
	b, err := e.cl.Blob(ctx, j.Job.Split.Assigned)
	if err != nil {
		return nil, fmt.Errorf("job %s: its folds: %w", j.Name, err)
	}
	return j.Job.Split.Decode(b, j.Spec.Outline.Table.Datasets[j.Spec.Dataset].Rows)
}

// live reports whether a job runs, or has results.
func live(j *experiment.ClusterJob) bool {
	return j.State != protocol.Failed && j.State != protocol.Cancelled
}

// read returns the layout of the experiment and the records of cells that have ended.
func (e *onCluster) read(ctx context.Context) (*experiment.Layout, map[string]*experiment.Record, error) {
	l, keys, err := experiment.FromJobs(e.jobs)
	if err != nil {
		return nil, nil, err
	}
	records := make(map[string]*experiment.Record)
	for _, j := range e.jobs {
		if !live(j) {
			continue
		}
		err := e.cl.Cells(ctx, strconv.FormatUint(j.ID, 10), func(c protocol.CellOutcome) error {
			if c.Unit < 0 || c.Unit >= len(keys[j.ID]) {
				return fmt.Errorf("job %s: cell %d of %d", j.Name, c.Unit, len(keys[j.ID]))
			}
			r := &experiment.Record{Key: keys[j.ID][c.Unit]}
			if err := json.Unmarshal(c.Outcome, &r.Outcome); err != nil {
				return fmt.Errorf("job %s, cell %d: %w", j.Name, c.Unit, err)
			}
			if before := records[r.Key]; before == nil || before.Outcome.Error != "" {
				records[r.Key] = r
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return l, records, nil
}

// table returns the table of the experiment so far.
func (e *onCluster) table(ctx context.Context) (*tables.Table, []string, error) {
	if len(e.jobs) == 0 {
		return nil, nil, fmt.Errorf("the cluster has no experiment %q; coppice experiment list names those that are there", e.name)
	}
	l, records, err := e.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if e.layout != nil {
		l = e.layout
	}
	return l.Fill(records, nil), l.Skipped, nil
}

// known returns the keys of the cells that jobs have, or will have; without those that failed
// where these are to be run again.
func (e *onCluster) known(ctx context.Context, retry bool) (map[string]bool, error) {
	known := make(map[string]bool)
	for _, j := range e.jobs {
		if !live(j) {
			continue
		}
		cells, err := j.Cells()
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			known[c.Key] = true
		}
	}
	if !retry || len(e.jobs) == 0 {
		return known, nil
	}
	_, records, err := e.read(ctx)
	for key, r := range records {
		if r.Outcome.Error != "" {
			delete(known, key)
		}
	}
	return known, err
}

// request lists the jobs of the cells that no job of the experiment has.
func (e *onCluster) request(ctx context.Context, s *experiment.Spec, plans []*clusterPlan, skipped []string, known map[string]bool) (*protocol.ExperimentRequest, int, error) {
	var all []*experiment.Plan
	for _, p := range plans {
		all = append(all, p.plan)
	}
	outline := experiment.NewOutline(s, all, skipped)
	if err := outline.Table.Validate(); err != nil {
		return nil, 0, err
	}
	r, n := &protocol.ExperimentRequest{Name: s.Name}, 0
	for i, p := range plans {
		cells, err := p.plan.Cells()
		if err != nil {
			return nil, 0, err
		}
		j, rows := p.plan.Only(cells, func(c *experiment.Cell) bool { return !known[c.Key] })
		if j == nil {
			continue
		}
		if p.plan.Assigned != nil {
			if _, err := e.cl.PutBlob(ctx, dataset.EncodeFolds(p.plan.Assigned)); err != nil {
				return nil, 0, err
			}
		}
		spec, err := json.Marshal(experiment.JobSpec{Outline: outline, Dataset: i, Rows: rows})
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
// there are. The experiment has the layout of the spec then.
func (s *specArg) submit(a *app, cl *client.Client, of *experiment.Spec, retry bool) (*onCluster, int, error) {
	e, err := readJobs(a.ctx, cl, of.Name)
	if err != nil {
		return nil, 0, err
	}
	plans, skipped, err := s.planThere(a, cl, of)
	if err != nil {
		return nil, 0, err
	}
	known, err := e.known(a.ctx, retry)
	if err != nil {
		return nil, 0, err
	}
	r, n, err := e.request(a.ctx, of, plans, skipped, known)
	if err != nil {
		return nil, 0, err
	}
	layout, err := layoutThere(of, plans, skipped)
	if err != nil {
		return nil, 0, err
	}
	if len(r.Jobs) == 0 {
		e.layout = layout
		return e, 0, nil
	}
	if _, err := cl.SubmitExperiment(a.ctx, *r); err != nil {
		if errors.Is(err, context.Canceled) {
			err = interrupted{"interrupted; the experiment may have been submitted: coppice experiment list"}
		}
		return nil, 0, err
	}
	if e, err = readJobs(a.ctx, cl, of.Name); err == nil {
		e.layout = layout
	}
	return e, n, err
}

// layoutThere returns the layout of a spec.
func layoutThere(of *experiment.Spec, plans []*clusterPlan, skipped []string) (*experiment.Layout, error) {
	var all []*experiment.Plan
	for _, p := range plans {
		all = append(all, p.plan)
	}
	return experiment.NewLayout(of, all, skipped)
}
