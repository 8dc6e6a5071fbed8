package state

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// The reasons for which Apply refuses an entry; the state stays as it was.
var (
	// ErrInvalid: the entry's body is malformed or breaks a bound.
	ErrInvalid = errors.New("invalid request")
	// ErrStaleEpoch: the sender no longer leads.
	ErrStaleEpoch = errors.New("the leader has changed")
	// ErrStaleRound: the round is not above the committed one.
	ErrStaleRound = errors.New("the round is already committed")
	// ErrGap: a piece of a trainer state does not follow the one before.
	ErrGap = errors.New("a chunk is missing in the training state")
	// ErrExists: the name is taken by something else.
	ErrExists = errors.New("already exists")
	// ErrNotFound: there is no such job or dataset.
	ErrNotFound = errors.New("not found")
	// ErrInUse: a job that is queued or running needs the dataset.
	ErrInUse = errors.New("in use")
	// ErrNotRunning: the job is still queued, or is paused.
	ErrNotRunning = errors.New("not running")
	// ErrQueue: as many jobs wait, run or are paused as the cluster is to keep.
	ErrQueue = errors.New("the queue is full")
	// ErrFinal: the job has ended.
	ErrFinal = errors.New("has ended")
	// ErrNotEnded: only a job that has ended can be deleted.
	ErrNotEnded = errors.New("has not ended")
	// ErrDeleted: the job was deleted.
	ErrDeleted = errors.New("was deleted")
	// ErrNoModel: the job has no model.
	ErrNoModel = errors.New("has no model")
	// ErrSnapshot: the bytes are not a whole snapshot of this version. Decode
	// returns it, not Apply.
	ErrSnapshot = errors.New("the snapshot of the state is damaged")
	// ErrUnknownEntry is wrapped by every *UnknownEntryError.
	ErrUnknownEntry = errors.New("unknown log entry")
)

// UnknownEntryError says that an entry was written by a newer version. It is not
// a refusal: whoever applies entries must stop there, since later entries may
// build on this one.
type UnknownEntryError struct {
	Index   uint64
	Format  uint8              // the entry's version byte
	Kind    protocol.EntryKind // meaningful where Format is protocol.Version
	Written string             // version of the current leader, where members tell
}

// Error names what is needed to go on.
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

// invalid says what is wrong with an entry.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
