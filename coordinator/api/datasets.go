package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

func checkName(what, name string) error {
	if err := state.CheckName(name); err != nil {
		return fmt.Errorf("%w: the %s's name: %w", errBad, what, err)
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
	if _, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetPut, e)); err != nil {
		return nil, err
	}
	return s.findDataset(e.Name)
}

// checkManifest refuses a manifest that no import makes, or whose blobs are not
// here.
func (s *Server) checkManifest(ctx context.Context, m *dataset.Manifest) error {
	if m == nil || m.Labels < 1 {
		return fmt.Errorf("%w: the manifest describes no dataset with labels", errBad)
	}
	if err := m.Check(); err != nil {
		return bad{err}
	}
	for i, shard := range m.Shards {
		if !s.present(ctx, shard.Digest) {
			return fmt.Errorf("%w: shard %d (blob %s) was not sent", errBad, i, shard.Digest)
		}
	}
	return nil
}

func (s *Server) deleteDataset(r *http.Request) (any, error) {
	e := protocol.DatasetDeleteEntry{Name: r.PathValue("name")}
	_, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetDelete, e))
	return nil, err
}
