package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/files"
)

// stable keeps Raft's term and vote in the file VOTE: two copies of one record, each in a
// place of its own that is never extended, so that no write needs room on the disk. A
// record is written to one place, synced, then written to the other place. So a crash
// leaves one of them intact; a checksum finds a flipped bit, and the other copy replaces
// it.
//
//	 0      4      8            16           24           32    34     36
//	| magic | crc32c | sequence   | term       | vote's term| ID  | vote | ID, vote |
//
// The checksum is over everything after it in the place. ID is the node's own; vote is the
// candidate's address. Integers are little-endian.
type stable struct {
	path  string
	id    string
	file  *os.File
	fault func(op string) error // for tests

	mu     sync.Mutex // guards what follows
	record vote       // as in the file
	seq    uint64     // of the last write
}

// vote is the content of a stable store.
type vote struct {
	term, votedTerm uint64
	voted           string
}

const (
	stablePlace = 4096 // bytes between the two places
	stableMagic = 0x45544f56
	stableHead  = 36
)

// errNoPlace says that neither place of a file has a record.
var errNoPlace = errors.New("both copies of the record are damaged: their checksums do not match")

// openStable opens the file of node id. If fresh is true, it makes a file that does not
// exist.
func openStable(folder, id string, fresh bool) (*stable, error) {
	s := &stable{path: filepath.Join(folder, stableName), id: id}
	_, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && fresh:
		b := make([]byte, 2*stablePlace)
		copy(b, s.encode())
		copy(b[stablePlace:], s.encode())
		if err := replaceFile(s.path, string(b)); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, corrupted(s.path, err)
	}
	if s.file, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// load reads the later record, and writes both places again if they differ.
func (s *stable) load() error {
	b := make([]byte, 2*stablePlace)
	n, err := s.file.ReadAt(b, 0)
	if err != nil && n == 0 {
		return corrupted(s.path, err)
	}
	one, seq1, ok1 := s.decode(b[:stablePlace])
	two, seq2, ok2 := s.decode(b[stablePlace:])
	switch {
	case !ok1 && !ok2:
		return corrupted(s.path, errNoPlace)
	case ok1 && (!ok2 || seq1 >= seq2):
		s.record, s.seq = one, seq1
	default:
		s.record, s.seq = two, seq2
	}
	if ok1 && ok2 && seq1 == seq2 {
		return nil
	}
	return s.write()
}

// encode returns the bytes of a place.
func (s *stable) encode() []byte {
	b := make([]byte, stableHead, stableHead+len(s.id)+len(s.record.voted))
	binary.LittleEndian.PutUint32(b, stableMagic)
	binary.LittleEndian.PutUint64(b[8:], s.seq)
	binary.LittleEndian.PutUint64(b[16:], s.record.term)
	binary.LittleEndian.PutUint64(b[24:], s.record.votedTerm)
	binary.LittleEndian.PutUint16(b[32:], uint16(len(s.id)))
	binary.LittleEndian.PutUint16(b[34:], uint16(len(s.record.voted)))
	b = append(append(b, s.id...), s.record.voted...)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

// decode reads a place. ok is false if its checksum does not match, or if it is of another
// node.
func (s *stable) decode(b []byte) (v vote, seq uint64, ok bool) {
	id, voted := int(binary.LittleEndian.Uint16(b[32:])), int(binary.LittleEndian.Uint16(b[34:]))
	end := stableHead + id + voted
	if binary.LittleEndian.Uint32(b) != stableMagic || end > len(b) ||
		binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:end], castagnoli) {
		return v, 0, false
	}
	v.term, v.votedTerm = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	v.voted = string(b[stableHead+id : end])
	return v, binary.LittleEndian.Uint64(b[8:]), string(b[stableHead:stableHead+id]) == s.id
}

// write writes the record to both places, one after the other. The error wraps
// files.ErrGone if the file is no longer at its path.
func (s *stable) write() error {
	if s.fault != nil {
		if err := s.fault("vote"); err != nil {
			return fmt.Errorf("store: %s: %w", s.path, err)
		}
	}
	b := s.encode()
	if len(b) > stablePlace {
		return fmt.Errorf("store: %s: the record has %d bytes, want at most %d", s.path, len(b), stablePlace)
	}
	for _, at := range []int64{0, stablePlace} {
		if _, err := s.file.WriteAt(b, at); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	info, err := s.file.Stat()
	if err == nil {
		err = files.Check(s.path, info)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// change changes the record and writes it. If it cannot be written, nothing has changed.
func (s *stable) change(f func(*vote)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.record
	if f(&s.record); s.record == before {
		return nil
	}
	s.seq++
	if err := s.write(); err != nil {
		s.record = before
		return err
	}
	return nil
}

// The keys that Raft uses.
const (
	keyTerm      = "CurrentTerm"
	keyVotedTerm = "LastVoteTerm"
	keyVoted     = "LastVoteCand"
)

// Set implements raft.StableStore.
func (s *stable) Set(key, value []byte) error {
	if string(key) != keyVoted {
		return fmt.Errorf("store: Raft wants to save %q, which this version does not know", key)
	}
	return s.change(func(v *vote) { v.voted = string(value) })
}

// Get implements raft.StableStore.
func (s *stable) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(key) != keyVoted || s.record.voted == "" {
		return nil, nil
	}
	return []byte(s.record.voted), nil
}

// SetUint64 implements raft.StableStore. Raft writes a vote in two steps, the term first.
// This step also deletes the candidate of the term before: a crash between the steps would
// leave a vote for it, which Raft would confirm without a look at its log.
func (s *stable) SetUint64(key []byte, n uint64) error {
	switch string(key) {
	case keyTerm:
		return s.change(func(v *vote) { v.term = n })
	case keyVotedTerm:
		return s.change(func(v *vote) {
			if n != v.votedTerm {
				v.votedTerm, v.voted = n, ""
			}
		})
	}
	return fmt.Errorf("store: Raft wants to save %q, which this version does not know", key)
}

// GetUint64 implements raft.StableStore.
func (s *stable) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyTerm:
		return s.record.term, nil
	case keyVotedTerm:
		return s.record.votedTerm, nil
	}
	return 0, nil
}

func (s *stable) close() error { return s.file.Close() }

// raftStable is the stable store as Raft has it. Raft panics if its term cannot be written.
// Here the node is told of the error, and the goroutine of Raft that asked ends: nothing
// follows from what failed, and Raft can still be shut down. The deferred calls of the
// goroutine answer "no" to the peer that waits.
type raftStable struct {
	*stable
	fatal func(error)
}

// Set implements raft.StableStore.
func (s raftStable) Set(key, value []byte) error { return s.check(s.stable.Set(key, value)) }

// SetUint64 implements raft.StableStore.
func (s raftStable) SetUint64(key []byte, n uint64) error {
	return s.check(s.stable.SetUint64(key, n))
}

// check returns only if the record is on the disk.
func (s raftStable) check(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, files.ErrGone) {
		err = fmt.Errorf("%w; the coordinator stops, because it cannot save its term and vote: repair the disk with %s, "+
			"then start it again with the same flags", err, s.path)
	}
	s.fatal(err)
	runtime.Goexit()
	return nil
}

// snapshots is a snapshot store that also has a checksum of the description of each
// snapshot, since Raft's checksum is of the state only. A snapshot that fails leaves
// nothing behind.
type snapshots struct {
	*raft.FileSnapshotStore
	folder string // of the node

	mu   sync.Mutex      // guards what follows, and the unfinished snapshots in the folder
	last time.Time       // when the last name was made
	open map[string]bool // snapshots that are being written, by their final path
}

// The names in the folder of a snapshot.
const (
	describesName = "meta.json"
	sumName       = "SUM"
	unfinished    = ".tmp" // ends the name of the folder until the snapshot is complete
)

// openSnapshots opens the snapshots of a node, and deletes the unfinished ones of an
// earlier process.
func openSnapshots(folder string, log hclog.Logger) (*snapshots, error) {
	store, err := raft.NewFileSnapshotStoreWithLogger(folder, retainSnapshots, log)
	if err != nil {
		return nil, fmt.Errorf("store: cannot read the snapshots in %s: %w", folder, err)
	}
	s := &snapshots{FileSnapshotStore: store, folder: folder, open: make(map[string]bool)}
	if err := s.sweep(""); err != nil {
		return nil, err
	}
	return s, syncFolder(folder) // the snapshots' folder may be new
}

// Create implements raft.SnapshotStore. Two snapshots of one index have different names,
// even if the second follows in the same millisecond.
func (s *snapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64,
	t raft.Transport) (raft.SnapshotSink, error) {
	if err := s.sweep(""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	// so that no name is taken: Raft's names of snapshots end in milliseconds
	time.Sleep(time.Millisecond - time.Since(s.last))
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, at, t)
	var made *snapshotSink
	if err == nil {
		file := sink.(*raft.FileSnapshotSink)
		made = &snapshotSink{file, filepath.Join(s.folder, snapshotsName, file.ID()), s}
		s.last, s.open[made.path] = time.Now(), true
	}
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, s.sweep("")) // a full disk may take the folder and not its files
	}
	return made, nil
}

// sweep deletes unfinished snapshots that are not being written. Of these it first forgets
// the one with the path ended.
func (s *snapshots) sweep(ended string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ended)
	left, err := filepath.Glob(filepath.Join(s.folder, snapshotsName, "*"+unfinished))
	for _, path := range left {
		if !s.open[strings.TrimSuffix(path, unfinished)] {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return fmt.Errorf("store: unfinished snapshots cannot be deleted: %w", err)
	}
	return nil
}

// snapshotSink adds the checksum after the snapshot is in its place. A crash in between
// leaves a snapshot without one, which is accepted.
type snapshotSink struct {
	*raft.FileSnapshotSink
	path  string // after Close
	store *snapshots
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	return errors.Join(s.FileSnapshotSink.Cancel(), s.store.sweep(s.path))
}

// Close implements raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	if err := errors.Join(s.FileSnapshotSink.Close(), s.store.sweep(s.path)); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.path, describesName))
	if err == nil { // the file is replaced as a whole: half a checksum would condemn the snapshot
		err = replaceFile(filepath.Join(s.path, sumName), checksum(string(b))+"\n")
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// check returns the index of the latest intact snapshot, or 0, and an error by path for
// each damaged one.
func (s *snapshots) check() (base uint64, bad map[string]error, err error) {
	entries, err := os.ReadDir(filepath.Join(s.folder, snapshotsName))
	if err != nil {
		return 0, nil, fmt.Errorf("store: %w", err)
	}
	bad = make(map[string]error)
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), unfinished) {
			continue
		}
		path := filepath.Join(s.folder, snapshotsName, e.Name())
		index, err := s.checkOne(path)
		switch {
		case errors.Is(err, ErrCorrupt):
			bad[path] = err
		case err != nil: // it may be intact
			return 0, nil, err
		}
		base = max(base, index)
	}
	return base, bad, nil
}

// checkOne returns the index of a snapshot. If it is damaged, the error wraps ErrCorrupt
// and names the file.
func (s *snapshots) checkOne(path string) (index uint64, err error) {
	describes := filepath.Join(path, describesName)
	b, err := os.ReadFile(describes)
	if err != nil {
		return 0, corrupted(describes, err)
	}
	sum, err := os.ReadFile(filepath.Join(path, sumName))
	if err == nil && strings.TrimSpace(string(sum)) != checksum(string(b)) {
		return 0, corrupted(describes, fmt.Errorf("the checksum is %s, but the file says %.8q", checksum(string(b)), sum))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, corrupted(describes, err)
	}
	meta, r, err := s.Open(filepath.Base(path)) // it compares the checksum of the state
	if err != nil {
		return 0, corrupted(filepath.Join(path, "state.bin"), err)
	}
	defer r.Close()
	if meta.ID != filepath.Base(path) || !strings.HasPrefix(meta.ID, fmt.Sprintf("%d-%d-", meta.Term, meta.Index)) {
		return 0, corrupted(describes, fmt.Errorf("the file describes another snapshot: %.80q, term %d, index %d", meta.ID,
			meta.Term, meta.Index))
	}
	return meta.Index, nil
}
