package jobs

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of one blob of cells: as many as a request reads, and, with models, few bytes.
const (
	maxBlobCells = protocol.CellsPage
	maxCellBytes = 64 << 20
)

// storeCells stores the outcomes of a job's cells, some of them in each blob, on a majority, and
// those of their models that the job keeps; took are the nanoseconds that each was computed.
func (d *driver) storeCells(ctx context.Context, o *pipeline.Outcome, took []uint64) (refs []protocol.CellsRef, models []protocol.ModelRef, err error) {
	var parts [][]byte
	bytes := 0
	for unit := range o.CellCount {
		part, model, err := d.cell(ctx, o, unit)
		if err != nil {
			return nil, nil, fmt.Errorf("run %d: %w", unit, err)
		}
		if model != nil {
			models = append(models, *model)
		}
		if len(parts) > 0 && (len(parts) == maxBlobCells || bytes+len(part) > maxCellBytes) {
			if refs, err = d.storeSome(ctx, refs, parts, took[unit-len(parts):unit]); err != nil {
				return nil, nil, err
			}
			parts, bytes = nil, 0
		}
		parts, bytes = append(parts, part), bytes+len(part)
	}
	if len(parts) > 0 {
		refs, err = d.storeSome(ctx, refs, parts, took[o.CellCount-len(parts):])
	}
	return refs, models, err
}

// cell returns the encoded outcome of a cell, whose model, where there is one, it stores apart; none: the
// cell was not run.
func (d *driver) cell(ctx context.Context, o *pipeline.Outcome, unit int) (part []byte, model *protocol.ModelRef, err error) {
	if part, err = o.Cell(unit); err != nil || len(part) == 0 || !d.job.Job.Cells.Models {
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
	blob, err := d.m.cfg.Blobs.Put(ctx, c.Model)
	if err != nil {
		return nil, nil, fmt.Errorf("the model could not be stored: %w", err)
	}
	model = &protocol.ModelRef{Digest: of.ModelDigest, Blob: blob, Bytes: uint64(len(c.Model))}
	c.Model = nil
	return c.Encode(), model, nil
}

// storeSome stores one blob of cells.
func (d *driver) storeSome(ctx context.Context, refs []protocol.CellsRef, parts [][]byte, took []uint64) ([]protocol.CellsRef, error) {
	size := 8 + 8*len(took) // in one piece of memory: it is several MB
	for _, p := range parts {
		size += 8 + len(p)
	}
	list := childjob.AppendCells(make([]byte, 0, size), parts, took)
	blob, err := d.m.cfg.Blobs.Put(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("the results of runs could not be stored: %w", err)
	}
	return append(refs, protocol.CellsRef{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(list))}, Count: len(parts)}), nil
}

// times returns how long each cell was computed, as workers said to this leader or to those before.
func (d *driver) times(o *pipeline.Outcome) []uint64 {
	took := make([]uint64, o.CellCount)
	if j := d.m.cfg.Store.State().Job(d.job.ID); j != nil {
		for part := range j.PartsFrom(j.Round+1, 0) {
			if int(part.Unit) < len(took) {
				took[part.Unit] = part.Compute
			}
		}
	}
	for u, ns := range o.CellsTook {
		if ns > 0 {
			took[u] = ns
		}
	}
	return took
}
