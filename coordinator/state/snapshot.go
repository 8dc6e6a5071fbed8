package state

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

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
		if n := len(s.members); n > 0 && s.members[n-1].ID >= m.ID {
			c.Failf("members are not sorted by ID: %.80q comes too late", m.ID)
		}
		s.members = append(s.members, m)
	case recordQuarantine:
		var d quarantinedWorker
		d.fields(c)
		if n := len(s.workers); n > 0 && s.workers[n-1].Worker >= d.Worker || d.index > s.index {
			c.Failf("quarantined workers are not sorted by name, or come from a later log entry: %.80q", d.Worker)
		}
		if s.workers = append(s.workers, d); len(s.workers) > MaxQuarantined {
			c.Failf("want at most %d quarantined workers", MaxQuarantined)
		}
	case recordDataset:
		d := new(protocol.Dataset)
		datasetFields(c, d)
		if n := len(s.datasets); n > 0 && s.datasets[n-1].Name >= d.Name {
			c.Failf("datasets are not sorted by name: %.80q comes too late", d.Name)
		}
		if err := checkManifest(d.Manifest); err != nil {
			c.Failf("dataset %.80q: %v", d.Name, err)
			return
		}
		d.Digest = d.Manifest.Digest()
		s.datasets = append(s.datasets, d)
	case recordJob:
		s.readJob(c)
	case recordDeleted:
		d := new(DeletedJob)
		d.fields(c)
		if n := len(s.deleted); n > 0 && s.deleted[n-1].ID >= d.ID || s.Job(d.ID) != nil {
			c.Failf("deleted jobs are not sorted by number, or still exist: %v", d)
		}
		if s.deleted = append(s.deleted, d); len(s.deleted) > MaxDeleted {
			c.Failf("want at most %d deleted jobs", MaxDeleted)
		}
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
		if n := len(s.revoked); !protocol.CheckSerial(r.Serial) || n > 0 && s.revoked[n-1].Serial >= r.Serial {
			c.Failf("revoked certificates are not sorted by serial number, or one is not valid: %.80q", r.Serial)
		}
		if s.revoked = append(s.revoked, r); len(s.revoked) > MaxRevoked {
			c.Failf("want at most %d revoked certificates", MaxRevoked)
		}
	case recordAudit:
		s.auditLog.readRecord(c)
	case recordToken:
		s.readToken(c)
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
	if n := len(s.jobs); n > 0 && s.jobs[n-1].ID >= j.ID {
		c.Failf("%v: jobs are not sorted by number", j)
	}
	if !j.State.Final() {
		d := s.Dataset(j.Dataset)
		if d == nil || d.Digest != j.Job.Dataset {
			c.Failf("%v: the job's dataset %.80q is missing", j, j.Dataset)
			return
		}
		j.Manifest = d.Manifest
	}
	s.jobs = append(s.jobs, j)
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
