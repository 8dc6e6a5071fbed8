package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-ldl/coppice/internal/files"
)

// stable keeps Raft's term and vote in the file VOTE: two copies of one record,
// each in a place of its own that is never extended, so that writing it needs no
// room on the disk. A record is written to one place, synced, then to the other:
// a crash leaves one of them whole, and a flipped bit is found by the checksum and
// made up for by the other.
//
//	 0      4      8            16           24           32    34     36
//	| magic | crc32c | sequence   | term       | vote's term| ID  | vote | ID, vote |
//
// The checksum is of all that follows it in the place. ID is the node's own; vote
// is the candidate's address. Integers are little endian.
type stable struct {
	path string
	id   string

	mu     sync.Mutex
	file   *os.File
	record vote
	seq    uint64
	fault  func(op string) error // of tests
}

// vote is what a stable store remembers.
type vote struct {
	term, votedTerm uint64
	voted           string
}

const (
	stableName  = "VOTE"
	stablePlace = 4096 // bytes between the two places
	stableMagic = 0x45544f56
	stableHead  = 36
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errNoPlace says that neither place of a file holds a record.
var errNoPlace = errors.New("both copies of the record are damaged: their checksums do not match")

// openStable opens the file of node id, made anew where it does not exist and
// fresh is set.
func openStable(folder, id string, fresh bool) (*stable, error) {
	s := &stable{path: filepath.Join(folder, stableName), id: id}
	_, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) && fresh {
		return s, s.create()
	}
	if err != nil {
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

// create writes a file with the record twice, whole or not at all.
func (s *stable) create() error {
	b := make([]byte, 2*stablePlace)
	copy(b, s.encode())
	copy(b[stablePlace:], s.encode())
	if err := replaceFile(s.path, string(b)); err != nil {
		return err
	}
	var err error
	if s.file, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// load reads the later of the two records, and mends the other where it is broken.
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

// encode returns a place's bytes.
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

// decode reads a place; ok is false where it has not its checksum or is of another
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

// write brings the record to both places, one after the other. A file that is not at its
// path any longer is an error that wraps files.ErrGone.
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

// change changes the record and writes it; where that fails nothing has changed.
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

// SetUint64 implements raft.StableStore. Raft writes a vote in two steps, its term
// first: the candidate of the term before goes with it, since a crash between the
// steps would leave a vote for that one, which Raft would confirm without a look at
// its log.
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
