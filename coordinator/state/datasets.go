package state

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// datasetTable has the datasets, by name.
type datasetTable struct{ datasets []*protocol.Dataset }

// Datasets lists the datasets by name.
func (t *datasetTable) Datasets() []*protocol.Dataset { return t.datasets }

// Dataset returns the dataset with a name, or nil.
func (t *datasetTable) Dataset(name string) *protocol.Dataset {
	if i, ok := t.findDataset(name); ok {
		return t.datasets[i]
	}
	return nil
}

func (t *datasetTable) findDataset(name string) (int, bool) {
	return search(t.datasets, name, func(d *protocol.Dataset) string { return d.Name })
}

// DatasetBlobs lists the digests of the blobs of a dataset.
func DatasetBlobs(d *protocol.Dataset) (list []string) {
	for i := range d.Manifest.Shards {
		list = append(list, d.Manifest.Shards[i].Digest)
	}
	if g := d.Manifest.Groups; g != nil {
		list = append(list, g.Digest)
	}
	return list
}

// checkName refuses a name that no job or dataset can have.
func checkName(name string) error {
	if err := protocol.CheckName(name); err != nil {
		return invalid("the name %.120q: %v", name, err)
	}
	return nil
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

// putDataset adds a dataset. An equal one with the same name stays.
func putDataset(s *State, e *protocol.DatasetPutEntry) (any, error) {
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	if err := checkManifest(e.Manifest); err != nil {
		return nil, err
	}
	d := &protocol.Dataset{Name: e.Name, Digest: e.Manifest.Digest(), Manifest: e.Manifest, Ownership: protocol.Ownership{Owner: e.Owner, Private: e.Private}, Time: e.Time}
	i, ok := s.findDataset(e.Name)
	if ok {
		if err := differs(s.datasets[i], d); err != nil {
			return nil, err
		}
		return s.datasets[i], nil
	}
	s.datasets = inserted(s.datasets, i, d)
	s.keep(DatasetBlobs(d)...)
	return d, nil
}

// differs says how a dataset differs from the dataset that has its name: content, names,
// row numbers, type of labels, shape or groups.
func differs(old, d *protocol.Dataset) error {
	m := old.Manifest
	if old.Digest != d.Digest {
		return fmt.Errorf("dataset %q %w with other content: %d samples, %d features, %d labels, digest %s; the new dataset has digest %s",
			old.Name, ErrExists, m.Rows, m.Features, m.Labels, old.Digest, d.Digest)
	}
	const remedy = "choose another name for the new dataset, or delete the old one first"
	for _, check := range []struct {
		err    error
		how    string
		remedy errtext.Text
	}{
		{d.Manifest.SameNames(m), "with other column names", remedy},
		{d.Manifest.SameRows(m), "from another file", remedy},
		{d.Manifest.SameLabels(m), "with labels of another type", remedy},
		{d.Manifest.SameShape(m), "with another shape", remedy},
		{d.Manifest.SameGroups(m), "with other groups", errtext.Sprintf("use the same groups ({groups}, or the key groups of a spec), choose another name, or delete the old dataset first")},
	} {
		if check.err != nil {
			return errtext.Errorf(errtext.WrongRequest, "dataset %q %w %s: %w; %s", old.Name, ErrExists, check.how, check.err, check.remedy)
		}
	}
	return nil
}

// deleteDataset deletes a dataset that no job needs: only jobs that have not ended do.
func deleteDataset(s *State, e *protocol.DatasetDeleteEntry) (any, error) {
	i, ok := s.findDataset(e.Name)
	if !ok {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Name, ErrNotFound)
	}
	if owner := s.datasets[i].Owner; e.Owner != "" && owner != e.Owner {
		return nil, fmt.Errorf("dataset %.80q of %.80q: %w: another user has made a dataset with this name", e.Name, e.Owner, ErrNotFound)
	}
	var users []string
	for _, j := range s.jobs {
		if j.Dataset == e.Name && !j.State.Final() {
			users = append(users, j.String())
		}
	}
	if len(users) > 0 {
		return nil, fmt.Errorf("dataset %q is %w by %s", e.Name, ErrInUse, strings.Join(users, ", "))
	}
	s.datasets = removed(s.datasets, i)
	return nil, nil
}

func datasetFields(c *wire.Coder, d *protocol.Dataset) {
	c.Text("name", &d.Name)
	c.Text("owner", &d.Owner)
	wire.Numbers(c, "time", &d.Time)
	c.JSON("manifest", &d.Manifest)
	if private := c.LastFlag("private", d.Private); c.Reads() { // readers share a dataset that is written
		d.Private = private
	}
}
