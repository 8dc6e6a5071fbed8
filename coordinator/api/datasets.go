package api

import (
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// nameRule is what names of datasets and jobs look like.
var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func checkName(what, name string) error {
	if !nameRule.MatchString(name) {
		return fmt.Errorf("%w: the %s name %q: use up to 100 letters, digits, dots, dashes and underscores, a letter or digit first", errBad, what, name)
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
	if err := s.checkManifest(e.Manifest); err != nil {
		return nil, err
	}
	e.Time = time.Now().Unix()
	if _, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetPut, e)); err != nil {
		return nil, err
	}
	return s.findDataset(e.Name)
}

// checkManifest refuses a manifest that does not describe blobs that are here.
func (s *Server) checkManifest(m *dataset.Manifest) error {
	if m == nil || m.Rows <= 0 || m.Features <= 0 || m.Labels <= 0 || len(m.Shards) == 0 || len(m.Shards)&(len(m.Shards)-1) != 0 {
		return fmt.Errorf("%w: the manifest describes no dataset", errBad)
	}
	rows := 0
	for i, shard := range m.Shards {
		rows += shard.Rows
		if !s.cfg.Blobs.Folder.Has(shard.Digest) {
			return fmt.Errorf("%w: shard %d (blob %s) was not sent", errBad, i, shard.Digest)
		}
	}
	if rows != m.Rows {
		return fmt.Errorf("%w: the shards have %d rows, the manifest %d", errBad, rows, m.Rows)
	}
	return nil
}

func (s *Server) deleteDataset(r *http.Request) (any, error) {
	e := protocol.DatasetDeleteEntry{Name: r.PathValue("name")}
	_, _, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryDatasetDelete, e))
	return nil, err
}
