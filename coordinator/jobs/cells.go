package jobs

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/childjob"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of one blob of cells: as many as a request reads, and, with models, few bytes.
const (
	maxBlobCells = protocol.CellsPage
	maxCellBytes = 64 << 20
)

// storeCells stores the outcomes of cells, some of them in each blob, on a majority; took are the
// nanoseconds of each.
func (d *driver) storeCells(ctx context.Context, parts [][]byte, took []uint64) (refs []protocol.CellsRef, err error) {
	for len(parts) > 0 {
		n, bytes := 0, 0
		for n < len(parts) && n < maxBlobCells && (n == 0 || bytes+len(parts[n]) <= maxCellBytes) {
			bytes += len(parts[n])
			n++
		}
		list := childjob.AppendCells(nil, parts[:n], took[:n])
		blob, err := d.m.cfg.Blobs.Put(ctx, list)
		if err != nil {
			return nil, fmt.Errorf("the results of cells: %w", err)
		}
		refs = append(refs, protocol.CellsRef{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(list))}, Count: n})
		parts, took = parts[n:], took[n:]
	}
	return refs, nil
}

// times returns how long each cell was computed, as workers said to this leader or to those before.
func (d *driver) times(o *pipeline.Outcome) []uint64 {
	took := make([]uint64, len(o.Cells))
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
