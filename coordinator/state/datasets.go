package state

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// checkName refuses a name that no job or dataset can have.
func checkName(name string) error {
	if err := protocol.CheckName(name); err != nil {
		return invalid("the name %.120q: %v", name, err)
	}
	return nil
}

func (s *State) datasetPut(e *protocol.DatasetPutEntry) (any, error) {
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	if err := checkManifest(e.Manifest); err != nil {
		return nil, err
	}
	d := &protocol.Dataset{Name: e.Name, Digest: e.Manifest.Digest(), Manifest: e.Manifest, Time: e.Time}
	i, ok := s.findDataset(e.Name)
	if ok {
		return same(s.datasets[i], d)
	}
	s.datasets = inserted(s.datasets, i, d)
	for k := range d.Manifest.Shards {
		s.keep(d.Manifest.Shards[k].Digest)
	}
	if g := d.Manifest.Groups; g != nil {
		s.keep(g.Digest)
	}
	return d, nil
}

// same returns the dataset that exists if the new one has its content, names, row numbers,
// type of labels, shape and groups.
func same(old, d *protocol.Dataset) (any, error) {
	m := old.Manifest
	if old.Digest == d.Digest {
		if err := d.Manifest.SameNames(m); err != nil {
			return nil, fmt.Errorf("dataset %q %w with other column names: %w; choose another name for the new dataset, or delete the old one first", old.Name, ErrExists, err)
		}
		if err := d.Manifest.SameRows(m); err != nil {
			return nil, fmt.Errorf("dataset %q %w from another file: %w; choose another name for the new dataset, or delete the old one first", old.Name, ErrExists, err)
		}
		if err := d.Manifest.SameLabels(m); err != nil {
			return nil, fmt.Errorf("dataset %q %w with labels of another type: %w; choose another name for the new dataset, or delete the old one first", old.Name, ErrExists, err)
		}
		if err := d.Manifest.SameShape(m); err != nil {
			return nil, fmt.Errorf("dataset %q %w with another shape: %w; choose another name for the new dataset, or delete the old one first", old.Name, ErrExists, err)
		}
		if err := d.Manifest.SameGroups(m); err != nil {
			return nil, fmt.Errorf("dataset %q %w with other groups: %w; use the same groups (--groups, or the key groups of a spec), choose another name, or delete the old dataset first", old.Name, ErrExists, err)
		}
		return old, nil
	}
	return nil, fmt.Errorf("dataset %q %w with other content: %d samples, %d features, %d labels, digest %s; the new dataset has digest %s",
		old.Name, ErrExists, m.Rows, m.Features, m.Labels, old.Digest, d.Digest)
}

func checkManifest(m *dataset.Manifest) error {
	if m == nil {
		return invalid("the dataset has no manifest")
	}
	if m.Format != dataset.ManifestFormat {
		return invalid("the manifest has format %d, but this version reads format %d", m.Format, dataset.ManifestFormat)
	}
	if m.Rows < 1 || m.Features < 1 || m.Labels < 1 || len(m.Shards) == 0 {
		return invalid("a dataset needs samples, features, labels and shards, got %d samples, %d features, %d labels and %d shards", m.Rows, m.Features, m.Labels, len(m.Shards))
	}
	if g := m.Groups; g != nil && !isDigest(g.Digest) {
		return invalid("the digest of the groups in the manifest is not valid: %.80q", g.Digest)
	}
	for i, sh := range m.Shards {
		if !isDigest(sh.Digest) || sh.Rows < 0 || sh.Bytes < 0 {
			return invalid("shard %d in the manifest is not valid: %d samples, %d bytes, digest %.80q", i, sh.Rows, sh.Bytes, sh.Digest)
		}
	}
	return nil
}

func (s *State) datasetDelete(e *protocol.DatasetDeleteEntry) (any, error) {
	i, ok := s.findDataset(e.Name)
	if !ok {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Name, ErrNotFound)
	}
	if users := s.users(e.Name); len(users) > 0 {
		return nil, fmt.Errorf("dataset %q is %w by %s", e.Name, ErrInUse, strings.Join(users, ", "))
	}
	s.datasets = removed(s.datasets, i)
	return nil, nil
}

// users names the jobs that need a dataset.
func (s *State) users(name string) []string {
	var users []string
	for _, j := range s.jobs {
		if j.Dataset == name && !j.State.Final() {
			users = append(users, j.String())
		}
	}
	return users
}
