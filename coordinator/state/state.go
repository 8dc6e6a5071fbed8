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
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wire"
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
		return fmt.Errorf("%s: %w: the sender led in epoch %d, but %s leads since epoch %d", what, ErrStaleEpoch, epoch,
			l.leader, l.epoch)
	}
	return nil
}

func lead(s *State, e *protocol.LeadEntry) (any, error) {
	if e.Node == "" {
		return nil, invalid("the new leader has no name")
	}
	before := s.leader
	s.leadership = leadership{epoch: s.index, leader: e.Node, nonce: e.Nonce}
	s.dropPending() // only the leader that began to send a training state could complete it
	if e.Time > 0 { // entries of earlier builds have no time
		s.noteLeader(before, e)
	}
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

// find returns the element of a list with a key, as search does, or the zero value.
func find[V any, K cmp.Ordered](list []V, key K, of func(V) K) (v V) {
	if i, ok := search(list, key, of); ok {
		return list[i]
	}
	return v
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

// Result is what became of an entry.
type Result struct {
	// Value depends on the kind of the entry:
	//
	//	Lead                                        the epoch (uint64)
	//	DatasetPut                                  the *protocol.Dataset
	//	Submit, JobState, Commit, Result, Withhold,
	//	Finish, Cancel, Pause, Resume, ModelDelete  the *Job after the entry
	//	Experiment, Share                           its jobs ([]*Job), in its order
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

// SnapshotVersion is the version of the snapshot format, its byte after the magic.
const SnapshotVersion = 10

// magic begins a snapshot.
const magic = "coppice-state\x00"

// A snapshot is a list of records, each with a head of nine bytes: its kind, and the length
// of what follows. Records are in the order of their kinds. DESIGN.md has the fields of
// each.
const (
	recordState = iota + 1 // exactly one
	recordMember
	recordQuarantine
	recordDataset
	recordJob
	recordDeleted
	recordMark
	recordRevocation
	recordAudit
	recordToken
	recordEnd // exactly one, the last, and empty
)

const recordHead = 1 + 8

// records has the names of the kinds for errors, and the greatest length of each. A record
// is what entries of at most 16 MiB brought, escaped; a job also has training states and 72
// bytes for each recorded task.
var records = [...]struct {
	name string
	max  uint64
}{
	recordState:      {"head", 1 << 27},
	recordMember:     {"member", 1 << 27},
	recordQuarantine: {"quarantined worker", 1 << 27},
	recordDataset:    {"dataset", 1 << 27},
	recordJob:        {"job", 1 << 32},
	recordDeleted:    {"deleted job", 1 << 27},
	recordMark:       {"marked blob", 1 << 27},
	recordRevocation: {"revoked certificate", 1 << 12},
	recordAudit:      {"audit record", 1 << 12},
	recordToken:      {"token", 1 << 10},
	recordEnd:        {"end", 0},
}

// Encode writes a snapshot of the state, record by record. Equal states have equal
// snapshots.
func (s *State) Encode(dst io.Writer) error {
	w := bufio.NewWriterSize(dst, 64<<10) // it remembers the first error
	_, _ = w.WriteString(magic)
	_ = w.WriteByte(SnapshotVersion)
	var buffer []byte
	record := func(kind byte, fields func(c *wire.Coder)) {
		c := wire.Appender(append(buffer[:0], make([]byte, recordHead)...))
		fields(c)
		buffer = c.Appended()
		buffer[0] = kind
		binary.LittleEndian.PutUint64(buffer[1:], uint64(len(buffer)-recordHead))
		_, _ = w.Write(buffer)
	}
	record(recordState, s.fields)
	for i := range s.members {
		record(recordMember, func(c *wire.Coder) { c.JSON("member", &s.members[i]) })
	}
	for i := range s.workers {
		record(recordQuarantine, s.workers[i].fields)
	}
	for _, d := range s.datasets {
		record(recordDataset, func(c *wire.Coder) { datasetFields(c, d) })
	}
	for _, j := range s.jobs {
		record(recordJob, j.fields)
	}
	for _, d := range s.deleted {
		record(recordDeleted, d.fields)
	}
	for _, digest := range slices.Sorted(maps.Keys(s.condemned)) {
		at := s.condemned[digest]
		record(recordMark, func(c *wire.Coder) { markFields(c, &digest, &at) })
	}
	for _, r := range s.revoked {
		record(recordRevocation, func(c *wire.Coder) { revocationFields(c, r) })
	}
	for _, of := range []*ring{&s.changes, &s.refusals} {
		for i := range of.len() {
			record(recordAudit, func(c *wire.Coder) { auditFields(c, of.at(i)) })
		}
	}
	for _, t := range s.tokens {
		record(recordToken, t.fields)
	}
	record(recordEnd, func(*wire.Coder) {})
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	return nil
}

// fields codes all that is in no table.
func (s *State) fields(c *wire.Coder) {
	wire.Numbers(c, "log index", &s.index)
	wire.Numbers(c, "epoch", &s.epoch)
	c.Text("leader", &s.leader)
	c.Text("nonce", &s.nonce)
}

// Decode reads a snapshot that Encode wrote, record by record. The error names the record,
// and wraps ErrSnapshot if the bytes are damaged.
func Decode(src io.Reader) (*State, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	head := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, short(err)
	}
	if string(head[:len(magic)]) != magic {
		return nil, damaged("the bytes do not begin with the header of a snapshot")
	}
	if v := head[len(magic)]; v != SnapshotVersion {
		return nil, damaged("the snapshot has version %d, but this process reads version %d", v, SnapshotVersion)
	}
	s := New()
	var buffer bytes.Buffer
	for n, before := 1, byte(0); before != recordEnd; n++ {
		kind, err := readRecord(in, &buffer, before, n)
		if err != nil {
			return nil, err
		}
		c := wire.Decoder(buffer.Bytes())
		s.read(kind, c)
		if err := c.End(); err != nil {
			return nil, damaged("record %d (%s): %v", n, records[kind].name, err)
		}
		before = kind
	}
	if _, err := in.ReadByte(); err == nil {
		return nil, damaged("more bytes follow the end of the snapshot")
	} else if !errors.Is(err, io.EOF) {
		return nil, short(err)
	}
	return s, nil
}

// readRecord reads record n, which follows one of kind before, into a buffer. The buffer
// grows with the bytes that are there, whatever the length claims.
func readRecord(in *bufio.Reader, buffer *bytes.Buffer, before byte, n int) (kind byte, err error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, short(err)
	}
	kind, length := head[0], binary.LittleEndian.Uint64(head[1:])
	switch first := before == 0; {
	case kind == 0 || int(kind) >= len(records):
		return 0, damaged("record %d has the kind %d, which does not exist", n, kind)
	case first != (kind == recordState) || kind < before:
		return 0, damaged("record %d (%s) is not in its place", n, records[kind].name)
	case length > records[kind].max:
		return 0, damaged("record %d (%s): want at most %d bytes, got %d", n, records[kind].name, records[kind].max, length)
	}
	if buffer.Reset(); buffer.Cap() > 1<<20 { // one long record is not worth its memory for all others
		*buffer = bytes.Buffer{}
	}
	if _, err := io.CopyN(buffer, in, int64(length)); err != nil {
		return 0, short(err)
	}
	return kind, nil
}

// read adds a record to the state. It checks that records of one kind are in order, except
// marks, and that none is there twice.
func (s *State) read(kind byte, c *wire.Coder) {
	switch kind {
	case recordState:
		s.fields(c)
	case recordMember:
		var m protocol.MemberEntry
		c.JSON("member", &m)
		s.members = appended(c, "members", s.members, m, memberID, math.MaxInt)
	case recordQuarantine:
		var d quarantinedWorker
		d.fields(c)
		if d.index > s.index {
			c.Failf("quarantined worker %.80q comes from a later log entry", d.Worker)
		}
		s.workers = appended(c, "quarantined workers", s.workers, d, quarantinedName, MaxQuarantined)
	case recordDataset:
		d := new(protocol.Dataset)
		datasetFields(c, d)
		if err := checkManifest(d.Manifest); err != nil {
			c.Failf("dataset %.80q: %v", d.Name, err)
			return
		}
		d.Digest = d.Manifest.Digest()
		s.datasets = appended(c, "datasets", s.datasets, d, datasetName, math.MaxInt)
	case recordJob:
		s.readJob(c)
	case recordDeleted:
		d := new(DeletedJob)
		d.fields(c)
		if s.Job(d.ID) != nil {
			c.Failf("deleted job %v still exists", d)
		}
		s.deleted = appended(c, "deleted jobs", s.deleted, d, deletedID, MaxDeleted)
	case recordMark:
		var digest string
		var at uint64
		markFields(c, &digest, &at)
		if _, twice := s.condemned[digest]; twice || !isDigest(digest) || at > s.index {
			c.Failf("the mark of a blob to delete is not valid: %.80q at log index %d", digest, at)
		}
		if s.condemned == nil {
			s.condemned = make(map[string]uint64)
		}
		if s.condemned[digest] = at; len(s.condemned) > MaxCondemned {
			c.Failf("want at most %d marked blobs", MaxCondemned)
		}
	case recordRevocation:
		r := new(protocol.Revocation)
		revocationFields(c, r)
		if !protocol.CheckSerial(r.Serial) {
			c.Failf("the serial number of a revoked certificate is not valid: %.80q", r.Serial)
		}
		s.revoked = appended(c, "revoked certificates", s.revoked, r, revokedSerial, MaxRevoked)
	case recordAudit:
		s.auditLog.readRecord(c)
	case recordToken:
		t := new(Token)
		if t.fields(c); c.Failed() {
			return
		}
		if err := t.check(); err != nil {
			c.Failf("%v", err)
		}
		s.tokens = appended(c, "tokens", s.tokens, t, tokenID, MaxTokens)
	}
}

// readJob adds a job. Its dataset must have been read before, if the job has not ended.
func (s *State) readJob(c *wire.Coder) {
	j := new(Job)
	j.fields(c)
	if j.Job == nil {
		c.Failf("the job is missing")
	}
	if c.Failed() {
		return
	}
	j.summary = summarize(j.Outcome)
	if !j.State.Final() {
		d := s.Dataset(j.Dataset)
		if d == nil || d.Digest != j.Job.Dataset {
			c.Failf("%v: the job's dataset %.80q is missing", j, j.Dataset)
			return
		}
		j.Manifest = d.Manifest
	}
	s.jobs = appended(c, "jobs", s.jobs, j, jobID, math.MaxInt)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
}

// short returns the error of a snapshot that ends too early, or that cannot be read.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("the snapshot ends too early")
	}
	return fmt.Errorf("reading a snapshot: %w", err)
}
