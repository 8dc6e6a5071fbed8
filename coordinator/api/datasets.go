package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// datasetHandlers answer requests about datasets.
type datasetHandlers struct {
	store *store.Store
	blobs *blobHandlers
}

// checkName refuses a name that the log must not have; what says of what it is the name.
func checkName(what, name string) error {
	if err := protocol.CheckName(name); err != nil {
		return fmt.Errorf("%w: the %s's name %.120q: %w", errBad, what, name, err)
	}
	return nil
}

func (h *datasetHandlers) list(*http.Request) (any, error) {
	return append([]*protocol.Dataset{}, h.store.State().Datasets()...), nil
}

func (h *datasetHandlers) get(r *http.Request) (any, error) {
	return findDataset(h.store.State(), r.PathValue("name"))
}

func findDataset(st *state.State, name string) (*protocol.Dataset, error) {
	d := st.Dataset(name)
	if d == nil {
		return nil, fmt.Errorf("%w: there is no dataset %q", state.ErrNotFound, name)
	}
	return d, nil
}

// readManifest reads the name and the manifest of an import, and refuses manifests that
// no import makes.
func readManifest(r *http.Request) (e protocol.DatasetPutEntry, err error) {
	if err := body(r, &e); err != nil {
		return e, err
	}
	if err := checkName("dataset", e.Name); err != nil {
		return e, err
	}
	if e.Manifest == nil || e.Manifest.Labels < 1 {
		return e, fmt.Errorf("%w: the manifest describes a dataset without labels", errBad)
	}
	if err := e.Manifest.Check(); err != nil {
		return e, bad{err}
	}
	return e, nil
}

// check says, before the client sends a blob, why an import would be refused: for its
// name, its manifest or the quota. It answers with the blobs to send: this leader lacks
// them, or finds them damaged. put then has a quorum keep all blobs.
func (h *datasetHandlers) check(r *http.Request) (any, error) {
	e, err := readManifest(r)
	if err != nil {
		return nil, err
	}
	if d := h.store.State().Dataset(e.Name); d != nil && d.Digest != e.Manifest.Digest() {
		return nil, fmt.Errorf("dataset %q %w with other content (digest %.12s, not %.12s): choose another name or delete the dataset first",
			e.Name, state.ErrExists, d.Digest, e.Manifest.Digest())
	}
	answer := protocol.DatasetCheck{Lacking: []string{}}
	var bytes int64
	for _, shard := range e.Manifest.Shards {
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		if !h.blobs.blobs.Has(shard.Digest) {
			answer.Lacking, bytes = append(answer.Lacking, shard.Digest), bytes+shard.Bytes
		}
	}
	if g := e.Manifest.Groups; g != nil && !h.blobs.blobs.Has(g.Digest) {
		answer.Lacking = append(answer.Lacking, g.Digest)
	}
	if bytes == 0 {
		return answer, nil
	}
	return answer, h.blobs.quota.fits(bytes)
}

// parallelShards is how many shards of an import are replicated at once.
const parallelShards = 8

// put commits a dataset once a quorum has all of its blobs: the log never refers to a
// blob that may be lost. Shards that were not sent are found before the first one is
// replicated, so that the error is quick.
func (h *datasetHandlers) put(r *http.Request) (any, error) {
	e, err := readManifest(r)
	if err != nil {
		return nil, err
	}
	m := e.Manifest
	for i, shard := range m.Shards {
		if err := h.blobs.present(r.Context(), shard.Digest); err != nil {
			return nil, notSent(fmt.Sprintf("shard %d", i), shard.Digest, err)
		}
	}
	if m.Groups != nil {
		if err := h.needGroups(r.Context(), m.Groups, m.Rows); err != nil {
			return nil, err
		}
	}
	g, ctx := errgroup.WithContext(r.Context())
	g.SetLimit(parallelShards)
	for _, shard := range m.Shards {
		g.Go(func() error { return h.blobs.replicate(ctx, shard.Digest) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	e.Time = time.Now().Unix()
	_, put, err := commit(r, h.store, protocol.EntryDatasetPut, e)
	return put, err
}

// needGroups returns once a quorum has a list of groups. It refuses a list that was not
// sent, or that does not have a group for each of so many samples.
func (h *datasetHandlers) needGroups(ctx context.Context, g *dataset.Groups, samples int) error {
	const what = "the list of groups"
	if err := h.blobs.present(ctx, g.Digest); err != nil {
		return notSent(what, g.Digest, err)
	}
	folder := h.blobs.blobs.Folder
	size, err := folder.Size(g.Digest)
	if err != nil {
		return err
	}
	if size != 2*int64(samples) {
		return fmt.Errorf("%w: %s has %d bytes, want 2 bytes for each of %d samples", errBad, what, size, samples)
	}
	b, err := folder.Get(g.Digest)
	if err != nil {
		return err
	}
	if err := g.Check(b, samples); err != nil {
		return fmt.Errorf("%w: %s: %w", errBad, what, err)
	}
	return h.blobs.replicate(ctx, g.Digest)
}

func (h *datasetHandlers) delete(r *http.Request) (any, error) {
	_, _, err := commit(r, h.store, protocol.EntryDatasetDelete, protocol.DatasetDeleteEntry{Name: r.PathValue("name")})
	return nil, err
}
