package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/report"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// studySpec is the experiment: runs of some milliseconds to about a second, and one row that
// does not go with the data.
const studySpec = `
name: %%s
datasets: [{dataset: ` + stepsData + `}]
folds: {k: 3, repeats: 2}
measures: [kl, clark]
methods:
  - aa-knn
  - ranking
  - {algorithm: structrf, settings: {trees: 10, max_depth: 6}}
  - {algorithm: ldlf, settings: {trees: 2, depth: 4, batch_size: 128}, grid: {steps: [%d, %d]}}
`

// newStudy plans the experiment on its data and runs it undisturbed, in this process.
func newStudy(ctx context.Context, data *local.Data, steps int) (*study, error) {
	y := &study{task: task{cells: true}, spec: fmt.Sprintf(studySpec, steps, 2*steps)}
	s, err := experiment.Parse(ctx, "study", fmt.Appendf(nil, y.spec, "study"))
	if err != nil {
		return nil, fmt.Errorf("the experiment of the chaos test: %w", err)
	}
	plan, err := experiment.NewPlan(ctx, s, &s.Datasets[0], &experiment.Data{Manifest: data.Manifest})
	if err != nil {
		return nil, err
	}
	if y.layout, err = experiment.NewLayout(s, []*experiment.Plan{plan}, nil); err != nil {
		return nil, err
	}
	if y.cells, err = plan.Runs(); err != nil {
		return nil, err
	}
	o, err := local.Run(ctx, plan.Job, data, local.Options{Lanes: 1})
	if err != nil {
		return nil, fmt.Errorf("the experiment of the chaos test, run without faults: %w", err)
	}
	y.task.digest = o.ModelDigest
	records := make(map[string]*experiment.Record)
	for unit := range o.CellCount {
		b, err := o.Cell(unit)
		if err != nil {
			return nil, err
		}
		of, err := pipeline.DecodeOutcome(b)
		if err != nil {
			return nil, err
		}
		records[y.cells[unit].Key] = &experiment.Record{Key: y.cells[unit].Key, Outcome: of}
	}
	y.report, err = y.reportOf(records)
	return y, err
}

// reportOf writes the report of records, without times.
func (y *study) reportOf(records map[string]*experiment.Record) ([]byte, error) {
	var b bytes.Buffer
	err := report.Write(&b, y.layout.Fill(records), "json", report.Options{NoTimes: true, Level: 0.05})
	return b.Bytes(), err
}

// feedStudies submits one experiment after the other, and checks the report of each.
func (c *clients) feedStudies(ctx context.Context, rng *rand.Rand) error {
	for i := 1; !c.stopped(); i++ {
		if err := c.study(ctx, c.work.study, fmt.Sprintf("study-%d", i)); err != nil {
			return err
		}
		if err := c.rest(ctx, leastPause+time.Duration(rng.Int64N(int64(mostPause-leastPause)))); err != nil {
			return err
		}
	}
	return nil
}

// study submits an experiment twice, as a client that lost an answer would, and waits for its report.
func (c *clients) study(ctx context.Context, y *study, name string) error {
	var id uint64
	for first := range 2 {
		j, err := c.caller.study(ctx, first, name, y.spec)
		if err != nil {
			return fmt.Errorf("submitting the experiment %s: %w", name, err)
		}
		if id != 0 && j.ID != id {
			return fmt.Errorf("%w: the experiment %s was sent twice and made two jobs, %d and %d", ErrFailed, name, id, j.ID)
		}
		id = j.ID
		c.ledger.submitted(j, &y.task)
	}
	end, err := c.client.Jobs().Watch(ctx, strconv.FormatUint(id, 10), func(*protocol.JobInfo) {})
	if err != nil {
		return fmt.Errorf("watching the experiment %s: %w", name, err)
	}
	c.ledger.told(id, func(a *acknowledged) { a.final = end.State })
	if err := y.task.check(end); err != nil {
		return err
	}
	return c.reportOf(ctx, y, end)
}

// reportOf holds the report of an experiment that is done against the undisturbed one.
func (c *clients) reportOf(ctx context.Context, y *study, j *protocol.JobInfo) error {
	records := make(map[string]*experiment.Record)
	err := c.client.Experiments().Outcomes(ctx, j.ID, false, func(o protocol.CellOutcome) error {
		if o.Task < 0 || o.Task >= len(y.cells) {
			return fmt.Errorf("%w: there is no run %d, counted from 0, among the %d runs of %s", ErrFailed, o.Task, len(y.cells), j.Name)
		}
		r := &experiment.Record{Key: y.cells[o.Task].Key, Outcome: new(pipeline.Outcome)}
		records[r.Key] = r
		return json.Unmarshal(o.Outcome, r.Outcome)
	})
	if err != nil {
		return fmt.Errorf("the runs of %s: %w", j.Name, err)
	}
	got, err := y.reportOf(records)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, y.report) {
		return fmt.Errorf("%w: the report of the experiment %s differs from the report without faults:\n%s\nwithout faults:\n%s", ErrFailed, j.Name, got, y.report)
	}
	return nil
}

// study sends the submission of an experiment. Its name is also its token.
func (c *caller) study(ctx context.Context, first int, name, spec string) (*protocol.JobInfo, error) {
	var made protocol.ExperimentPlan
	r := protocol.ExperimentRequest{Token: name, File: "study", Spec: fmt.Sprintf(spec, name)}
	if err := c.do(ctx, first, http.MethodPost, "/v1/experiments", r, &made); err != nil {
		return nil, err
	}
	if len(made.Jobs) != 1 {
		return nil, fmt.Errorf("%w: want one job in the experiment %s, got %d", ErrFailed, name, len(made.Jobs))
	}
	return &made.Jobs[0], nil
}
