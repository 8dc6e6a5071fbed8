package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/digests"
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
	return find(t.datasets, name, datasetName)
}

func datasetName(d *protocol.Dataset) string { return d.Name }

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
		return invalid("a dataset needs samples, features, labels and shards, got %d samples, %d features, %d labels and "+
			"%d shards", m.Rows, m.Features, m.Labels, len(m.Shards))
	}
	if g := m.Groups; g != nil && !isDigest(g.Digest) {
		return invalid("the digest of the groups in the manifest is not valid: %.80q", g.Digest)
	}
	for i, sh := range m.Shards {
		if !isDigest(sh.Digest) || sh.Rows < 0 || sh.Bytes < 0 {
			return invalid("shard %d in the manifest is not valid: %d samples, %d bytes, digest %.80q", i, sh.Rows,
				sh.Bytes, sh.Digest)
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
	d := &protocol.Dataset{Name: e.Name, Digest: e.Manifest.Digest(), Manifest: e.Manifest,
		Ownership: protocol.Ownership{Owner: e.Owner, Private: e.Private}, Time: e.Time}
	i, ok := search(s.datasets, e.Name, datasetName)
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
		return fmt.Errorf("dataset %q %w with other content: %d samples, %d features, %d labels, digest %s; the new "+
			"dataset has digest %s",
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
		{d.Manifest.SameGroups(m), "with other groups", errtext.Sprintf("use the same groups ({groups}, or the key groups " +
			"of a spec), choose another name, or delete the old dataset first")},
	} {
		if check.err != nil {
			return errtext.Errorf(errtext.WrongRequest, "dataset %q %w %s: %w; %s", old.Name, ErrExists, check.how, check.err,
				check.remedy)
		}
	}
	return nil
}

// deleteDataset deletes a dataset that no job needs: only jobs that have not ended do.
func deleteDataset(s *State, e *protocol.DatasetDeleteEntry) (any, error) {
	i, ok := search(s.datasets, e.Name, datasetName)
	if !ok {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Name, ErrNotFound)
	}
	if owner := s.datasets[i].Owner; e.Owner != "" && owner != e.Owner {
		return nil, fmt.Errorf("dataset %.80q of %.80q: %w: another user has made a dataset with this name", e.Name, e.Owner,
			ErrNotFound)
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

// MaxCondemned bounds the blobs that are marked for deletion. Beyond it the oldest marks
// are forgotten: they matter only to a coordinator that was away while that many others
// were marked.
const MaxCondemned = 1 << 16

// blobMarks has the blobs that are marked for deletion. None of them is referenced.
type blobMarks struct {
	condemned map[string]uint64 // the index of the entry that marked a digest
}

// Condemned returns the blobs that are marked for deletion, each with the index of the
// entry that marked it. None of them is referenced.
func (m *blobMarks) Condemned() map[string]uint64 { return m.condemned }

// keep removes the marks of blobs that are referenced now.
func (m *blobMarks) keep(digests ...string) {
	cloned := false
	for _, d := range digests {
		if _, ok := m.condemned[d]; !ok {
			continue
		}
		if !cloned {
			m.condemned, cloned = maps.Clone(m.condemned), true
		}
		delete(m.condemned, d)
	}
}

// condemn marks the blobs that nothing references. A blob that was marked before keeps its
// mark.
func condemn(s *State, e *protocol.CondemnEntry) (any, error) {
	for _, d := range e.Digests {
		if !isDigest(d) {
			return nil, invalid("%.80q is not a digest", d)
		}
	}
	refs := s.References()
	next := make(map[string]uint64, len(s.condemned)+len(e.Digests))
	maps.Copy(next, s.condemned)
	var marked []string
	for _, d := range e.Digests {
		if _, ok := next[d]; ok || refs.Has(d) {
			continue
		}
		next[d] = s.index
		marked = append(marked, d)
	}
	if over := len(next) - MaxCondemned; over > 0 {
		oldest := slices.SortedFunc(maps.Keys(next), func(a, b string) int {
			return cmp.Or(cmp.Compare(next[a], next[b]), cmp.Compare(a, b))
		})
		for _, d := range oldest[:over] {
			delete(next, d)
		}
	}
	s.condemned = next
	return marked, nil
}

func markFields(c *wire.Coder, digest *string, index *uint64) {
	c.Text("digest", digest)
	wire.Numbers(c, "log index", index)
}

// References returns the digests of all blobs that must be kept, which datasets and jobs
// have. The set is the caller's.
func (s *State) References() digests.Set {
	parts := 0
	for _, j := range s.jobs {
		parts += j.gathered.n
	}
	refs := make(digests.Set, parts)
	for _, d := range s.datasets {
		for _, digest := range DatasetBlobs(d) {
			refs.Add(digest)
		}
	}
	for _, j := range s.jobs {
		j.references(refs)
	}
	return refs
}

// RemoveReadable removes from a set the blobs of the datasets and jobs that readable accepts: what stays may not be
// read. A job that failed or was
// cancelled still refers to its split and weights. If samples is false, the blobs of datasets stay in the set.
func (s *State) RemoveReadable(blobs digests.Set, samples bool, readable func(protocol.Ownership) bool) {
	texts := make(map[string]digests.Digest, len(blobs)) // to read a text takes longer than to find it
	for d := range blobs {
		texts[d.String()] = d
	}
	remove := func(text string) {
		if d, ok := texts[text]; ok {
			delete(blobs, d)
		}
	}
	for _, d := range s.datasets {
		if len(blobs) == 0 {
			return
		}
		if samples && readable(d.Ownership) {
			for _, digest := range DatasetBlobs(d) {
				remove(digest)
			}
		}
	}
	for _, j := range s.jobs {
		if len(blobs) == 0 {
			return
		}
		if readable(j.Ownership) {
			j.blobs(remove, func(d digests.Digest) { delete(blobs, d) })
			remove(j.Job.Split.Assigned)
			remove(j.Job.Split.Groups)
			remove(j.Job.Weights)
		}
	}
}

// References returns the digests of the blobs of one job.
func (j *Job) References() digests.Set {
	refs := make(digests.Set)
	j.references(refs)
	return refs
}

func (j *Job) references(refs digests.Set) {
	j.blobs(refs.Add, func(d digests.Digest) { refs[d] = struct{}{} })
}

// blobs lists the blobs of one job, each as a text or as a digest. The shards of its dataset
// are the dataset's, which stays while the job needs it. A job that failed or was cancelled
// needs neither its split, its groups nor its weights.
func (j *Job) blobs(text func(string), digest func(digests.Digest)) {
	if j.State == protocol.Done || !j.State.Final() {
		text(j.Job.Split.Assigned)
		text(j.Job.Split.Groups)
		text(j.Job.Weights)
	}
	text(j.TrainerBlob)
	text(j.Outline)
	for p := range j.gathered.all {
		if p.WasRun() {
			digest(p.Digest)
		}
	}
	for i := range j.Models {
		text(j.Models[i].Blob)
	}
	for i := range j.Cells {
		text(j.Cells[i].Blob)
	}
	if j.Predictions != nil {
		text(j.Predictions.Blob)
	}
}

// Replaced lists blobs that were the training state of a job until its next one was
// committed. It has the newest ones that this process has seen. Snapshots do not have them,
// and no entry depends on them: they only say which blobs need not be kept for long.
type Replaced struct {
	last  []string // digests, the newest last
	count uint64   // of all there ever were
}

// maxReplaced bounds Replaced.last.
const maxReplaced = 1024

// Replaced returns the blobs of training states that were replaced.
func (s *State) Replaced() Replaced { return s.replaced }

// with returns the list with one more digest.
func (r Replaced) with(digest string) Replaced {
	from := max(0, len(r.last)+1-maxReplaced)
	return Replaced{slices.Concat(r.last[from:], []string{digest}), r.count + 1}
}

// Since lists the blobs that an earlier list does not count, if they are still known. It
// lists all if the earlier list is from before a snapshot was read.
func (r Replaced) Since(earlier Replaced) []string {
	n := r.count
	if r.count >= earlier.count {
		n -= earlier.count
	}
	return r.last[len(r.last)-int(min(n, uint64(len(r.last)))):]
}

// appended adds a record of a snapshot to a list that is sorted by key and has at most most elements.
func appended[V any, K cmp.Ordered](c *wire.Coder, what string, list []V, v V, key func(V) K, most int) []V {
	if n := len(list); n > 0 && key(list[n-1]) >= key(v) {
		c.Failf("%s are not sorted: %.80q comes too late", what, fmt.Sprint(key(v)))
	}
	if list = append(list, v); len(list) > most {
		c.Failf("want at most %d %s", most, what)
	}
	return list
}
