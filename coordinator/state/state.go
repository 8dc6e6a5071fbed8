package state

import (
	"cmp"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// State is what the cluster knows after some log entry. It is immutable.
type State struct {
	index      uint64
	epoch      uint64
	leader     string
	nonce      string
	members    []protocol.MemberEntry // by ID
	datasets   []*protocol.Dataset    // by name
	jobs       []*Job                 // by ID
	deleted    []*DeletedJob          // by ID
	condemned  map[string]uint64      // digest -> index of the entry
	distrusted []distrust             // by worker
	replaced   Replaced
}

// New returns the state before the first entry.
func New() *State { return new(State) }

// Index returns the log index of the last entry that the state has seen, accepted
// or refused.
func (s *State) Index() uint64 { return s.index }

// Epoch returns the index of the last Lead entry; 0: nobody ever led.
func (s *State) Epoch() uint64 { return s.epoch }

// Leader returns the node that leads since Epoch; empty before the first.
func (s *State) Leader() string { return s.leader }

// Nonce returns the nonce of the Lead entry of Epoch.
func (s *State) Nonce() string { return s.nonce }

// Members lists the coordinators that made themselves known, by ID.
func (s *State) Members() []protocol.MemberEntry { return s.members }

// Member returns a coordinator's addresses.
func (s *State) Member(id string) (protocol.MemberEntry, bool) {
	i, ok := s.findMember(id)
	if !ok {
		return protocol.MemberEntry{}, false
	}
	return s.members[i], true
}

// Datasets lists the datasets by name.
func (s *State) Datasets() []*protocol.Dataset { return s.datasets }

// Dataset returns the dataset of that name, or nil.
func (s *State) Dataset(name string) *protocol.Dataset {
	i, ok := s.findDataset(name)
	if !ok {
		return nil
	}
	return s.datasets[i]
}

// DatasetByDigest returns the first dataset by name with that content, or nil.
func (s *State) DatasetByDigest(digest string) *protocol.Dataset {
	for _, d := range s.datasets {
		if d.Digest == digest {
			return d
		}
	}
	return nil
}

// Jobs lists the jobs by ID, which is the order of their submission.
func (s *State) Jobs() []*Job { return s.jobs }

// Job returns the job of that ID, or nil.
func (s *State) Job(id uint64) *Job {
	i, ok := s.findJob(id)
	if !ok {
		return nil
	}
	return s.jobs[i]
}

// JobByName returns the newest job of that name, or nil: those before it failed
// or were cancelled.
func (s *State) JobByName(name string) *Job {
	for _, j := range slices.Backward(s.jobs) {
		if j.Name == name {
			return j
		}
	}
	return nil
}

// Condemned returns the blobs marked for deletion, each with the index of the
// entry that marked it. None of them is referenced.
func (s *State) Condemned() map[string]uint64 { return s.condemned }

func (s *State) findMember(id string) (int, bool) {
	return slices.BinarySearchFunc(s.members, id, func(m protocol.MemberEntry, id string) int { return cmp.Compare(m.ID, id) })
}

func (s *State) findDataset(name string) (int, bool) {
	return slices.BinarySearchFunc(s.datasets, name, func(d *protocol.Dataset, name string) int { return cmp.Compare(d.Name, name) })
}

func (s *State) findJob(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.jobs, id, func(j *Job, id uint64) int { return cmp.Compare(j.ID, id) })
}

// replaced returns a copy of v with element i set to x.
func replaced[T any](v []T, i int, x T) []T {
	v = slices.Clone(v)
	v[i] = x
	return v
}

// inserted returns a copy of v with x at i.
func inserted[T any](v []T, i int, x T) []T {
	out := make([]T, 0, len(v)+1)
	out = append(out, v[:i]...)
	out = append(out, x)
	return append(out, v[i:]...)
}

// removed returns a copy of v without element i.
func removed[T any](v []T, i int) []T {
	out := make([]T, 0, len(v)-1)
	out = append(out, v[:i]...)
	return append(out, v[i+1:]...)
}
