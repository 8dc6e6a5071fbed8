package state

import (
	"errors"
	"fmt"

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
	//	Revoke                                      the *protocol.Revocation
	//	Request                                     the value of its inner entry
	//	TokenPut, TokenRevoke                       the *Token after the entry
	//
	// It is nil for other kinds, and if Err is not nil.
	Value any
	// Err says why the entry was refused. If it wraps ErrUnknownEntry, no further entry may
	// be applied.
	Err error
}

// Apply returns the state after the log entry at index, and the result of the entry. A
// refused entry changes nothing but Index and the audit records; an unknown one not even that. The results share
// no memory with entry. Apply panics if index is not above Index.
func (s *State) Apply(index uint64, entry []byte) (*State, Result) {
	if index <= s.index {
		panic(fmt.Sprintf("state: entry %d applied after entry %d", index, s.index))
	}
	if len(entry) < 2 {
		return s.at(index), Result{Err: invalid("the entry has %d bytes, want at least 2", len(entry))}
	}
	kind := protocol.EntryKind(entry[1])
	if entry[0] == protocol.Version && kind == protocol.EntryRequest {
		return s.applyRequest(index, entry)
	}
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

// applyRequest applies the entry in a RequestEntry, and records what became of it.
func (s *State) applyRequest(index uint64, entry []byte) (*State, Result) {
	var e protocol.RequestEntry
	if err := e.Decode(entry); err != nil {
		return s.at(index), Result{Err: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	next, result := s.Apply(index, e.Inner)
	if errors.Is(result.Err, ErrUnknownEntry) {
		return next, result
	}
	r := e.Record
	if j, ok := result.Value.(*Job); ok {
		r.About = j.String()
	}
	if r.Refused, r.Count = "", 0; result.Err != nil {
		r.Refused = result.Err.Error()
		next.noteConflict(r)
		return next, result
	}
	next.note(r)
	return next, result
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
	protocol.EntryRecord:        body(addRecords),
	protocol.EntryRevoke:        body(revoke),
	protocol.EntryTokenPut:      body(putToken),
	protocol.EntryTokenRevoke:   body(revokeToken),
	protocol.EntryShare:         body(share),
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
