package client

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/protocol"
)

// parallelBlobs is how many blobs travel at a time.
const parallelBlobs = 4

// Import cuts src into shards in a temporary folder, stores them and gives them
// the name. Doing it again changes nothing; a name that exists with other
// content is refused. o.Progress is told of the upload as phase "upload".
func (c *Client) Import(ctx context.Context, name string, src dataset.Source, o dataset.ImportOptions) (*protocol.Dataset, error) {
	dir, err := tempdir.Make("import")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	o.Context = ctx
	m, err := dataset.Import(src, dir.Path, o)
	if err != nil {
		return nil, err
	}
	return c.Upload(ctx, name, m, dir.Path, o.Progress)
}

// Upload stores the shards of m, which are files of dir named by their digests,
// and gives them the name. Where the cluster has the dataset, nothing travels.
func (c *Client) Upload(ctx context.Context, name string, m *dataset.Manifest, dir string, report func(dataset.Progress)) (*protocol.Dataset, error) {
	have, err := c.Datasets(ctx)
	if err != nil {
		return nil, err
	}
	digest, stored := m.Digest(), false
	for _, d := range have {
		if d.Name == name && d.Digest != digest {
			return nil, &Error{Status: http.StatusConflict, Message: fmt.Sprintf(
				"a dataset %q exists with other content (%.12s, not %.12s): choose another name or delete it first", name, d.Digest, digest)}
		}
		stored = stored || d.Digest == digest
	}
	if !stored {
		if err := c.json(ctx, http.MethodPost, at("datasets", "check"), protocol.DatasetPutEntry{Name: name, Manifest: m}, nil); err != nil {
			return nil, err
		}
		if err := c.putShards(ctx, m, dir, report); err != nil {
			return nil, err
		}
	}
	if m.Groups != nil { // a dataset of the same digest may have others
		if err := c.PutFile(ctx, m.Groups.Digest, filepath.Join(dir, m.Groups.Digest)); err != nil {
			return nil, err
		}
	}
	return c.putDataset(ctx, name, m)
}

func (c *Client) putShards(ctx context.Context, m *dataset.Manifest, dir string, report func(dataset.Progress)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	var done atomic.Int64
	progress := make(chan struct{}, 1) // guards report
	for _, s := range m.Shards {
		g.Go(func() error {
			if err := c.PutFile(ctx, s.Digest, filepath.Join(dir, s.Digest)); err != nil {
				return err
			}
			n := done.Add(1)
			if report != nil {
				progress <- struct{}{}
				report(dataset.Progress{Phase: "upload", Done: int(n), Of: len(m.Shards), Part: float64(n) / float64(len(m.Shards))})
				<-progress
			}
			return nil
		})
	}
	return g.Wait()
}

// Shards fetches the shards of an imported dataset into memory.
func (c *Client) Shards(ctx context.Context, m *dataset.Manifest) ([]*dataset.Rows, error) {
	shards := make([]*dataset.Rows, len(m.Shards))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	for i, s := range m.Shards {
		g.Go(func() error {
			b, err := c.Blob(ctx, s.Digest)
			if err != nil {
				return err
			}
			rows, _, err := dataset.DecodeShard(b)
			if err != nil {
				return err
			}
			shards[i] = rows
			return m.CheckShard(i, rows)
		})
	}
	return shards, g.Wait()
}
