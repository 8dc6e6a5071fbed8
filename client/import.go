package client

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/protocol"
)

// parallelBlobs is how many blobs travel at a time.
const parallelBlobs = 4

// Import cuts src into shards in a temporary folder, stores them and gives them
// the name. Doing it again sends what the cluster has lost of it, and changes nothing else; a name that exists with other
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

// uploadRounds is how often Upload asks what is to be sent: another leader may lack blobs that the one before had.
const uploadRounds = 3

// Upload stores the shards of m, and its groups, which are files of dir named by their digests,
// and gives them the name. It sends what the leader lacks, so doing it again repairs a dataset
// whose blobs were lost.
func (c *Client) Upload(ctx context.Context, name string, m *dataset.Manifest, dir string, report func(dataset.Progress)) (*protocol.Dataset, error) {
	for n := 1; ; n++ {
		var check protocol.DatasetCheck
		if err := c.json(ctx, http.MethodPost, at("datasets", "check"), protocol.DatasetPutEntry{Name: name, Manifest: m}, &check); err != nil {
			return nil, err
		}
		if err := c.putFiles(ctx, ofDataset(m, check.Lacking), dir, report); err != nil {
			return nil, err
		}
		d, err := c.putDataset(ctx, name, m)
		if err == nil || n == uploadRounds || len(check.Lacking) == 0 {
			return d, err
		}
	}
}

// ofDataset filters digests: it keeps the blobs of a dataset, so no server makes a client send other files.
func ofDataset(m *dataset.Manifest, digests []string) []string {
	of := make(map[string]bool, len(m.Shards))
	for _, s := range m.Shards {
		of[s.Digest] = true
	}
	if m.Groups != nil {
		of[m.Groups.Digest] = true
	}
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(digests))), func(d string) bool { return !of[d] })
}

// putFiles stores files of dir that are named by their digests.
func (c *Client) putFiles(ctx context.Context, digests []string, dir string, report func(dataset.Progress)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	var done atomic.Int64
	progress := make(chan struct{}, 1) // guards report
	for _, digest := range digests {
		g.Go(func() error {
			if err := c.PutFile(ctx, digest, filepath.Join(dir, digest)); err != nil {
				return err
			}
			n := done.Add(1)
			if report != nil {
				progress <- struct{}{}
				report(dataset.Progress{Phase: "upload", Done: int(n), Of: len(digests), Part: float64(n) / float64(len(digests))})
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
