package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// maxFoldPoints bounds the points of all folds' curves together, which one log entry has. Very many folds have fewer than
	// curve.FoldPoints each.
	maxFoldPoints = 1 << 16
	// maxBlobRuns and maxBlobBytes bound a blob of runs: a request reads one blob, and runs may have models.
	maxBlobRuns  = protocol.CellsPage
	maxBlobBytes = 64 << 20
)

// finish stores the models and predictions on a quorum and commits the outcome.
func (d *driver) finish(ctx context.Context) error {
	if d.large {
		runtime.GC() // the memory of the evaluation makes room for the model's file
	}
	o, err := d.trainer.Outcome()
	if err != nil {
		return err
	}
	e := protocol.FinishEntry{Epoch: d.m.cfg.Epoch, Job: d.job.ID, Progress: progressJSON(d.trainer.Progress()), FoldCurves: foldCurves(o)}
	if d.job.Job.Cells != nil {
		took := d.runTimes(o)
		if e.Cells, e.Models, err = d.storeRuns(ctx, o, took); err != nil {
			return err
		}
		o.CellsSpent = spentBy(d.job.Job.Cells, took)
	} else {
		of := o.Folds
		if len(of) == 0 {
			of = []*pipeline.Outcome{o}
		}
		for _, o := range of {
			model, err := d.storeModel(ctx, o.Model, o.ModelDigest)
			if err != nil {
				return err
			}
			e.Models = append(e.Models, *model)
		}
	}
	if b := o.Predictions; len(b) > 0 {
		blob, err := d.m.cfg.Blobs.Put(ctx, b)
		if err != nil {
			return fmt.Errorf("the predictions could not be stored: %w", err)
		}
		e.Predictions = &protocol.BlobRef{Blob: blob, Bytes: uint64(len(b))}
	}
	o.SetSpent(d.spent.Seconds(), time.Since(d.driven).Seconds())
	if e.Outcome, err = json.Marshal(o); err != nil {
		return fmt.Errorf("the job's result could not be stored: %w", err)
	}
	d.curve.End()
	rest, _ := d.curve.Uncommitted() // a commit may be in flight: what it has is sent again
	e.Curve = rest.Checked()
	now := time.Now()
	e.Seconds, e.Time, e.Millis = d.time().Seconds(), now.Unix(), protocol.Millis(now)
	_, _, err = d.m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryFinish, e))
	return err
}

// foldCurves lists the encoded curves of an outcome's folds.
func foldCurves(o *pipeline.Outcome) (list [][]byte) {
	for _, f := range o.Folds {
		c := f.Curve
		if len(o.Folds)*curve.FoldPoints > maxFoldPoints && c != nil {
			c = c.Coarsened(max(4, maxFoldPoints/len(o.Folds)))
		}
		if c == nil {
			c = curve.New()
		}
		list = append(list, c.Checked())
	}
	return list
}

func (d *driver) storeModel(ctx context.Context, model []byte, digest string) (*protocol.ModelRef, error) {
	blob, err := d.m.cfg.Blobs.Put(ctx, model)
	if err != nil {
		return nil, fmt.Errorf("the model could not be stored: %w", err)
	}
	return &protocol.ModelRef{Digest: digest, Blob: blob, Bytes: uint64(len(model))}, nil
}

// storeRuns stores the outcomes of a job's runs, several in each blob, and the models of runs that the job keeps. took has the
// nanoseconds of computing, by run.
func (d *driver) storeRuns(ctx context.Context, o *pipeline.Outcome, took []uint64) (refs []protocol.CellsRef, models []protocol.ModelRef, err error) {
	var parts [][]byte // of the next blob
	bytes := 0
	store := func(end int) error {
		size := 8 + 8*len(parts) // allocated at once: it is several MB
		for _, p := range parts {
			size += 8 + len(p)
		}
		list := childjob.AppendCells(make([]byte, 0, size), parts, took[end-len(parts):end])
		blob, err := d.m.cfg.Blobs.Put(ctx, list)
		if err != nil {
			return fmt.Errorf("the results of runs could not be stored: %w", err)
		}
		refs = append(refs, protocol.CellsRef{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(list))}, Count: len(parts)})
		parts, bytes = nil, 0
		return nil
	}
	for run := range o.CellCount {
		part, model, err := d.runOutcome(ctx, o, run)
		if err != nil {
			return nil, nil, fmt.Errorf("run %d: %w", run, err)
		}
		if model != nil {
			models = append(models, *model)
		}
		if len(parts) > 0 && (len(parts) == maxBlobRuns || bytes+len(part) > maxBlobBytes) {
			if err := store(run); err != nil {
				return nil, nil, err
			}
		}
		parts, bytes = append(parts, part), bytes+len(part)
	}
	if len(parts) > 0 {
		err = store(o.CellCount)
	}
	return refs, models, err
}

// runOutcome returns the encoded outcome of a run, empty if it was not run. If the job keeps models, the model is stored apart.
func (d *driver) runOutcome(ctx context.Context, o *pipeline.Outcome, run int) (part []byte, model *protocol.ModelRef, err error) {
	if part, err = o.Cell(run); err != nil || len(part) == 0 || !d.job.Job.Cells.Models {
		return part, nil, err
	}
	c, err := childjob.Decode(part)
	if err != nil || len(c.Model) == 0 {
		return part, nil, err
	}
	of, err := pipeline.EndingOf(c)
	if err != nil {
		return nil, nil, err
	}
	if model, err = d.storeModel(ctx, c.Model, of.ModelDigest); err != nil {
		return nil, nil, err
	}
	c.Model = nil
	return c.Encode(), model, nil
}

// runTimes returns the nanoseconds of computing of each run, as workers said to this leader or to earlier ones.
func (d *driver) runTimes(o *pipeline.Outcome) []uint64 {
	took := make([]uint64, o.CellCount)
	if j := d.m.cfg.Store.State().Job(d.job.ID); j != nil {
		for part := range j.RecordedFrom(j.Round+1, 0) {
			if int(part.Task) < len(took) {
				took[part.Task] = part.Compute
			}
		}
	}
	for run, ns := range o.CellsTook {
		if ns > 0 {
			took[run] = ns
		}
	}
	return took
}
