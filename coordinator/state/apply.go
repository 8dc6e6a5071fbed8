package state

import (
	"fmt"

	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// Result is what became of an entry.
type Result struct {
	// Value depends on the kind of the entry:
	//
	//	Lead                                        the epoch (uint64)
	//	DatasetPut                                  the *protocol.Dataset
	//	Submit, JobState, Commit, Result, Withhold,
	//	Finish, Cancel, Pause, Resume, ModelDelete  the *Job after the entry
	//	Experiment                                  its jobs ([]*Job), in its order
	//	JobsDelete                                  the jobs that it deleted ([]*Job), by ID
	//	Condemn                                     the digests that it marked ([]string)
	//
	// It is nil for other kinds, and if Err is not nil.
	Value any
	// Err says why the entry was refused. If it wraps ErrUnknownEntry, no further entry may
	// be applied.
	Err error
}

// Apply returns the state after the log entry at index, and the result of the entry. A
// refused entry changes nothing but Index; an unknown one not even that. The results share
// no memory with entry. Apply panics if index is not above Index.
func (s *State) Apply(index uint64, entry []byte) (*State, Result) {
	if index <= s.index {
		panic(fmt.Sprintf("state: entry %d applied after entry %d", index, s.index))
	}
	if len(entry) < 2 {
		return s.at(index), Result{Err: invalid("the entry has %d bytes, want at least 2", len(entry))}
	}
	kind := protocol.EntryKind(entry[1])
	apply := rules[kind]
	if entry[0] != protocol.Version || apply == nil {
		leader, _ := s.Member(s.leader)
		return s, Result{Err: &UnknownEntryError{Index: index, Format: entry[0], Kind: kind, Written: leader.Version}}
	}
	next := s.at(index)
	value, err := apply(next, entry)
	if err != nil {
		return s.at(index), Result{Err: err}
	}
	return next, Result{Value: value}
}

// A rule applies an entry to s, a copy with slices, maps and records that are shared: a
// rule replaces them and never writes to them. If it returns an error, s is thrown away.
type rule func(s *State, entry []byte) (any, error)

var rules = map[protocol.EntryKind]rule{
	protocol.EntryLead:          body(lead),
	protocol.EntryMember:        body(putMember),
	protocol.EntryMemberRemove:  body(removeMember),
	protocol.EntrySuspect:       body(suspect),
	protocol.EntryTrust:         body(trust),
	protocol.EntryDatasetPut:    body(putDataset),
	protocol.EntryDatasetDelete: body(deleteDataset),
	protocol.EntrySubmit:        body(submit),
	protocol.EntryExperiment:    body(submitExperiment),
	protocol.EntryJobState:      body(setJobState),
	protocol.EntryCommit:        commit,
	protocol.EntryResult:        body(gather),
	protocol.EntryWithhold:      body(withhold),
	protocol.EntryFinish:        body(finish),
	protocol.EntryCancel:        body(cancel),
	protocol.EntryPause:         body(pause),
	protocol.EntryResume:        body(resume),
	protocol.EntryJobsDelete:    body(deleteJobs),
	protocol.EntryModelDelete:   body(deleteModel),
	protocol.EntryCondemn:       body(condemn),
}

// body returns a rule for entries with a JSON body.
func body[E any](apply func(*State, *E) (any, error)) rule {
	return func(s *State, entry []byte) (any, error) {
		e := new(E)
		if err := protocol.DecodeEntry(entry, e); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return apply(s, e)
	}
}

// UnknownEntryError says that a newer version wrote an entry. It is not a refusal: no
// further entry may be applied, since later ones may build on this one.
type UnknownEntryError struct {
	Index   uint64
	Format  uint8              // the version byte of the entry
	Kind    protocol.EntryKind // meaningful if Format is protocol.Version
	Written string             // the version of the current leader; empty if unknown
}

// Error says which version knows the entry.
func (e *UnknownEntryError) Error() string {
	what := fmt.Sprintf("is of kind %d", e.Kind)
	if e.Format != protocol.Version {
		what = fmt.Sprintf("has format %d", e.Format)
	}
	need := "run the version that wrote it"
	if e.Written != "" {
		need = "run " + e.Written + ", the version of the current leader"
	}
	return fmt.Sprintf("log entry %d %s, which this version (%s, log format %d) does not know: %s",
		e.Index, what, version.String, protocol.Version, need)
}

// Unwrap returns ErrUnknownEntry.
func (e *UnknownEntryError) Unwrap() error { return ErrUnknownEntry }
