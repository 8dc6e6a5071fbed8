package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

func checkName(what, name string) error {
	if err := protocol.CheckName(name); err != nil {
		return fmt.Errorf("%w: the %s's name %.120q: %w", errBad, what, name, err)
	}
	return nil
}

func (s *Server) datasets(*http.Request) (any, error) {
	return append([]*protocol.Dataset{}, s.cfg.Store.State().Datasets()...), nil
}

func (s *Server) dataset(r *http.Request) (any, error) {
	return s.findDataset(r.PathValue("name"))
}

func (s *Server) findDataset(name string) (*protocol.Dataset, error) {
	d := s.cfg.Store.State().Dataset(name)
	if d == nil {
		return nil, fmt.Errorf("%w: there is no dataset %q", state.ErrNotFound, name)
	}
	return d, nil
}

func (s *Server) putDataset(r *http.Request) (any, error) {
	var e protocol.DatasetPutEntry
	if err := body(r, &e); err != nil {
		return nil, err
	}
	if err := checkName("dataset", e.Name); err != nil {
		return nil, err
	}
	if err := s.checkManifest(r.Context(), e.Manifest); err != nil {
		return nil, err
	}
	e.Time = time.Now().Unix()
	_, put, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetPut, e))
	return put, err
}

// checkDataset says, before anything is sent, why an import would be refused: by its
// name, its manifest or the quota of blobs. It answers with the blobs that are to be sent:
// those that this leader lacks, or whose file it finds damaged. putDataset has a majority keep
// all of them.
func (s *Server) checkDataset(r *http.Request) (any, error) {
	var e protocol.DatasetPutEntry
	if err := body(r, &e); err != nil {
		return nil, err
	}
	if err := checkName("dataset", e.Name); err != nil {
		return nil, err
	}
	if err := describes(e.Manifest); err != nil {
		return nil, err
	}
	if d := s.cfg.Store.State().Dataset(e.Name); d != nil && d.Digest != e.Manifest.Digest() {
		return nil, fmt.Errorf("dataset %q %w with other content (digest %.12s, not %.12s): choose another name or delete the dataset first",
			e.Name, state.ErrExists, d.Digest, e.Manifest.Digest())
	}
	answer := protocol.DatasetCheck{Lacking: []string{}}
	var bytes int64
	for _, shard := range e.Manifest.Shards {
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		if !s.cfg.Blobs.Has(shard.Digest) {
			answer.Lacking, bytes = append(answer.Lacking, shard.Digest), bytes+shard.Bytes
		}
	}
	if g := e.Manifest.Groups; g != nil && !s.cfg.Blobs.Has(g.Digest) {
		answer.Lacking = append(answer.Lacking, g.Digest)
	}
	if bytes == 0 {
		return answer, nil
	}
	done, err := s.meter.reserve(bytes)
	if err == nil {
		done(false)
	}
	return answer, err
}

// describes refuses a manifest that no import makes.
func describes(m *dataset.Manifest) error {
	if m == nil || m.Labels < 1 {
		return fmt.Errorf("%w: the manifest describes a dataset without labels", errBad)
	}
	if err := m.Check(); err != nil {
		return bad{err}
	}
	return nil
}

// parallelShards is how many shards of an import are looked after at a time.
const parallelShards = 8

// checkManifest refuses a manifest that no import makes, or whose blobs no majority
// has.
func (s *Server) checkManifest(ctx context.Context, m *dataset.Manifest) error {
	if err := describes(m); err != nil {
		return err
	}
	for i, shard := range m.Shards {
		if err := s.present(ctx, shard.Digest); err != nil {
			return notSent(fmt.Sprintf("shard %d", i), shard.Digest, err)
		}
	}
	if m.Groups != nil {
		if err := s.checkGroups(ctx, m.Groups, m.Rows); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelShards)
	for _, shard := range m.Shards {
		g.Go(func() error { return s.secure(ctx, shard.Digest) })
	}
	return g.Wait()
}

// checkGroups refuses a list of groups that was not sent, or that is none of so many rows, and
// returns once a majority has it.
func (s *Server) checkGroups(ctx context.Context, g *dataset.Groups, rows int) error {
	const what = "the list of groups"
	if err := s.present(ctx, g.Digest); err != nil {
		return notSent(what, g.Digest, err)
	}
	size, err := s.cfg.Blobs.Folder.Size(g.Digest)
	if err != nil {
		return err
	}
	if size != 2*int64(rows) {
		return fmt.Errorf("%w: %s has %d bytes, want 2 bytes for each of %d samples", errBad, what, size, rows)
	}
	b, err := s.cfg.Blobs.Folder.Get(g.Digest)
	if err != nil {
		return err
	}
	if err := g.Check(b, rows); err != nil {
		return fmt.Errorf("%w: %s: %w", errBad, what, err)
	}
	return s.secure(ctx, g.Digest)
}

func (s *Server) deleteDataset(r *http.Request) (any, error) {
	e := protocol.DatasetDeleteEntry{Name: r.PathValue("name")}
	_, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetDelete, e))
	return nil, err
}
