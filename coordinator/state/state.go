// Package state is the coordinators' replicated state machine: what the cluster remembers.
// It is pure: the same entries at the same indices give the same state and the same
// snapshot bytes on every machine. It has no clock, randomness, goroutine or floating-point
// arithmetic, and knows neither Raft nor NATS. Times and measures come in with the entries
// and are only carried.
//
// A State never changes. Apply returns the next one, which shares with its predecessor all
// that the entry left alone. So a pointer is a snapshot, and readers see a consistent,
// committed view without a lock. In return nobody may write to what the methods return.
//
// A State consists of tables. Each has a file, with its look-ups and the rules of the
// entries that change it. The entries are declared in package protocol.
package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// State is what the cluster knows after some log entry. It is immutable. The methods of its
// tables are its own.
type State struct {
	index uint64
	leadership
	memberTable
	quarantine
	datasetTable
	jobTable
	blobMarks
	revocations
	auditLog
	tokenTable
	replaced Replaced
}

// New returns the state before the first entry.
func New() *State { return new(State) }

// Index returns the log index of the last entry that the state has seen, accepted or
// refused.
func (s *State) Index() uint64 { return s.index }

// at returns a copy of s that has seen index.
func (s *State) at(index uint64) *State {
	next := *s
	next.index = index
	return &next
}

// Reborn returns the state with which a new cluster begins that is restored from a backup:
// everything but the members, as if at a later index. Log indices, job numbers and epochs
// of the new cluster are above index. Reborn panics if index is below Index.
func (s *State) Reborn(index uint64) *State {
	if index < s.index {
		panic(fmt.Sprintf("state: reborn at index %d, which is before %d", index, s.index))
	}
	next := s.at(index)
	next.members = nil
	next.dropPending()
	return next
}

// leadership says which coordinator leads. Entries of the leader carry its epoch, so
// entries of earlier leaders are refused.
type leadership struct {
	epoch  uint64
	leader string
	nonce  string
}

// Epoch returns the index of the last Lead entry, or 0 before the first.
func (l *leadership) Epoch() uint64 { return l.epoch }

// Leader returns the coordinator that leads since Epoch, or "" before the first.
func (l *leadership) Leader() string { return l.leader }

// Nonce returns the nonce of the Lead entry of Epoch.
func (l *leadership) Nonce() string { return l.nonce }

// fence refuses an entry that another leader than the current one sent. what is the subject
// of the entry.
func (l *leadership) fence(epoch uint64, what string) error {
	if epoch != l.epoch || epoch == 0 {
		return fmt.Errorf("%s: %w: the sender led in epoch %d, but %s leads since epoch %d", what, ErrStaleEpoch, epoch, l.leader, l.epoch)
	}
	return nil
}

func lead(s *State, e *protocol.LeadEntry) (any, error) {
	if e.Node == "" {
		return nil, invalid("the new leader has no name")
	}
	s.leadership = leadership{epoch: s.index, leader: e.Node, nonce: e.Nonce}
	s.dropPending() // only the leader that began to send a training state could complete it
	return s.epoch, nil
}

// Apply refuses an entry with one of these errors, and the state stays as it was.
var (
	// ErrInvalid says that the body of the entry is malformed or breaks a bound.
	ErrInvalid = errors.New("invalid request")
	// ErrStaleEpoch says that the sender no longer leads.
	ErrStaleEpoch = errors.New("the leader has changed")
	// ErrStaleRound says that the round is not above the committed one.
	ErrStaleRound = errors.New("the round is already committed")
	// ErrGap says that a chunk of a training state does not follow the chunk before it.
	ErrGap = errors.New("a chunk is missing in the training state")
	// ErrExists says that something else has the name.
	ErrExists = errors.New("already exists")
	// ErrNotFound says that there is no such job or dataset.
	ErrNotFound = errors.New("not found")
	// ErrInUse says that a job that has not ended needs the dataset.
	ErrInUse = errors.New("in use")
	// ErrNotRunning says that the job is queued or paused.
	ErrNotRunning = errors.New("not running")
	// ErrQueue says that the cluster has as many jobs that have not ended as it may have.
	ErrQueue = errors.New("the queue is full")
	// ErrFinal says that the job has ended.
	ErrFinal = errors.New("has ended")
	// ErrNotEnded says that the job cannot be deleted before it has ended.
	ErrNotEnded = errors.New("has not ended")
	// ErrDeleted says that the job was deleted.
	ErrDeleted = errors.New("was deleted")
	// ErrNoModel says that the job has no model.
	ErrNoModel = errors.New("has no model")
	// ErrUnknownEntry is wrapped by every *UnknownEntryError.
	ErrUnknownEntry = errors.New("unknown log entry")
)

// ErrSnapshot says that bytes are not a complete snapshot of this version. Decode returns
// it.
var ErrSnapshot = errors.New("the snapshot of the state is damaged")

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

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// isDigest reports whether text is a SHA-256 in lower-case hexadecimal digits.
func isDigest(text string) bool {
	_, ok := digests.Parse(text)
	return ok
}

// search finds a key in a list. The function of returns the key of an element, by which the
// list is sorted.
func search[V any, K cmp.Ordered](list []V, key K, of func(V) K) (int, bool) {
	return slices.BinarySearchFunc(list, key, func(v V, key K) int { return cmp.Compare(of(v), key) })
}

// replaced returns a copy of v with element i set to x.
func replaced[T any](v []T, i int, x T) []T {
	v = slices.Clone(v)
	v[i] = x
	return v
}

// inserted returns a copy of v with x at i.
func inserted[T any](v []T, i int, x T) []T { return slices.Concat(v[:i], []T{x}, v[i:]) }

// removed returns a copy of v without element i.
func removed[T any](v []T, i int) []T { return slices.Concat(v[:i], v[i+1:]) }
