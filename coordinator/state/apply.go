package state

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// Result is what became of an entry.
type Result struct {
	// Value is, by kind: Lead the epoch (uint64); DatasetPut the
	// *protocol.Dataset; Submit, JobState, Commit, Collected, Withhold, Finish, Cancel,
	// Pause, Resume and ModelDelete the *Job as it is now; JobsDelete the jobs that
	// it deleted ([]*Job, by ID); Experiment its jobs ([]*Job, in its order); Condemn the digests that were marked ([]string);
	// otherwise, and with Err, nil.
	Value any
	// Err says why the entry was refused. It wraps ErrUnknownEntry where the
	// caller must not apply any further entry.
	Err error
}

// Apply returns the state after the log entry at index, and what became of the
// entry. A refused entry changes nothing but Index; one that is not known not even
// that. Nothing returned keeps a hold on entry. Indices grow: anything else is a
// programmer's error and panics.
func (s *State) Apply(index uint64, entry []byte) (*State, Result) {
	if index <= s.index {
		panic(fmt.Sprintf("state: entry %d applied after entry %d", index, s.index))
	}
	if len(entry) < 2 {
		return s.at(index), Result{Err: invalid("the entry has %d bytes, want at least 2", len(entry))}
	}
	kind := protocol.EntryKind(entry[1])
	apply := appliers[kind]
	if entry[0] != protocol.Version || apply == nil {
		return s, Result{Err: s.unknown(index, entry[0], kind)}
	}
	next := s.at(index)
	value, err := apply(next, entry)
	if err != nil {
		return s.at(index), Result{Err: err}
	}
	return next, Result{Value: value}
}

// at returns a copy of s that has seen index.
func (s *State) at(index uint64) *State {
	next := *s
	next.index = index
	return &next
}

func (s *State) unknown(index uint64, format uint8, kind protocol.EntryKind) error {
	leader, _ := s.Member(s.leader)
	return &UnknownEntryError{Index: index, Format: format, Kind: kind, Written: leader.Version}
}

// An applier changes the fields of s, which is a fresh copy whose slices, maps and
// records are shared, and must be replaced rather than written to. What it changed
// before it returns an error is thrown away.
type applier func(s *State, entry []byte) (any, error)

var appliers = map[protocol.EntryKind]applier{
	protocol.EntryLead:          body((*State).lead),
	protocol.EntryMember:        body((*State).member),
	protocol.EntryDatasetPut:    body((*State).datasetPut),
	protocol.EntryDatasetDelete: body((*State).datasetDelete),
	protocol.EntrySubmit:        body((*State).submit),
	protocol.EntryJobState:      body((*State).jobState),
	protocol.EntryCommit:        commit,
	protocol.EntryCollected:     body((*State).collected),
	protocol.EntryFinish:        body((*State).finish),
	protocol.EntryCancel:        body((*State).cancel),
	protocol.EntryCondemn:       body((*State).condemn),
	protocol.EntryPause:         body((*State).pause),
	protocol.EntryResume:        body((*State).resume),
	protocol.EntrySuspect:       body((*State).suspect),
	protocol.EntryTrust:         body((*State).trust),
	protocol.EntryMemberRemove:  body((*State).memberRemove),
	protocol.EntryJobsDelete:    body((*State).jobsDelete),
	protocol.EntryModelDelete:   body((*State).modelDelete),
	protocol.EntryExperiment:    body((*State).experiment),
	protocol.EntryWithhold:      body((*State).withhold),
}

// body makes an applier of a rule for an entry with a JSON body.
func body[E any](rule func(*State, *E) (any, error)) applier {
	return func(s *State, entry []byte) (any, error) {
		e := new(E)
		if err := protocol.DecodeEntry(entry, e); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return rule(s, e)
	}
}

// commit applies the one entry whose body is not JSON.
func commit(s *State, entry []byte) (any, error) {
	var e protocol.CommitEntry
	if err := e.Decode(entry); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return s.commit(&e)
}

func (s *State) lead(e *protocol.LeadEntry) (any, error) {
	if e.Node == "" {
		return nil, invalid("the new leader has no name")
	}
	s.epoch, s.leader, s.nonce = s.index, e.Node, e.Nonce
	s.dropPending()
	return s.epoch, nil
}

// dropPending forgets pieces of earlier epochs, which can no longer be completed.
func (s *State) dropPending() {
	for i, j := range s.jobs {
		if j.pending != nil {
			next := *j
			next.pending = nil
			s.jobs = replaced(s.jobs, i, &next)
		}
	}
}

func (s *State) member(e *protocol.MemberEntry) (any, error) {
	if e.ID == "" {
		return nil, invalid("the member has no ID")
	}
	i, ok := s.findMember(e.ID)
	if ok {
		s.members = replaced(s.members, i, *e)
	} else {
		s.members = inserted(s.members, i, *e)
	}
	return nil, nil
}

func (s *State) memberRemove(e *protocol.MemberRemoveEntry) (any, error) {
	if i, ok := s.findMember(e.ID); ok {
		s.members = removed(s.members, i)
	}
	return nil, nil
}

// fenced returns the running job that an entry of epoch is about.
func (s *State) fenced(epoch, id uint64) (*Job, error) {
	if epoch != s.epoch || epoch == 0 {
		return nil, fmt.Errorf("job %d: %w: the sender led in epoch %d, but %s leads since epoch %d", id, ErrStaleEpoch, epoch, s.leader, s.epoch)
	}
	return s.live(id)
}

// live returns a job that has not ended.
func (s *State) live(id uint64) (*Job, error) {
	j, err := s.known(id)
	if err != nil {
		return nil, err
	}
	if j.State.Final() {
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrFinal, j.State)
	}
	return j, nil
}

// known returns a job, or why there is none.
func (s *State) known(id uint64) (*Job, error) {
	if j := s.Job(id); j != nil {
		return j, nil
	}
	if d := s.Deleted(id); d != nil {
		return nil, fmt.Errorf("%v %w", d, ErrDeleted)
	}
	return nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
}

// running is fenced for entries that only a running job can have.
func (s *State) running(epoch, id uint64) (*Job, error) {
	j, err := s.fenced(epoch, id)
	if err == nil && j.State != protocol.Running {
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrNotRunning, j.State)
	}
	return j, err
}

// put replaces the record of a job that exists.
func (s *State) put(j *Job) *Job {
	i, _ := s.findJob(j.ID)
	s.jobs = replaced(s.jobs, i, j)
	return j
}

// sortedKeys lists a map's keys in order, so that nothing depends on a map's own.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
