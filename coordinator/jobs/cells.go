package jobs

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/childjob"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of one blob of cells: as many as a request reads, and, with models, few bytes.
const (
	maxBlobCells = protocol.CellsPage
	maxCellBytes = 64 << 20
)

// storeCells stores the outcomes of cells, some of them in each blob, on a majority.
func (d *driver) storeCells(ctx context.Context, parts [][]byte) (refs []protocol.CellsRef, err error) {
	for len(parts) > 0 {
		n, bytes := 0, 0
		for n < len(parts) && n < maxBlobCells && (n == 0 || bytes+len(parts[n]) <= maxCellBytes) {
			bytes += len(parts[n])
			n++
		}
		list := childjob.AppendList(nil, parts[:n])
		blob, err := d.m.cfg.Blobs.Put(ctx, list)
		if err != nil {
			return nil, fmt.Errorf("the results of cells: %w", err)
		}
		refs = append(refs, protocol.CellsRef{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(list))}, Count: n})
		parts = parts[n:]
	}
	return refs, nil
}
