// Package archive reads and writes backups of a cluster: the replicated state at
// one index and the blobs that it refers to, in one stream. BACKUP.md draws the
// bytes.
package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Version is that of the format.
const Version = 1

// magic begins a backup; the version follows.
const magic = "coppice-backup\x00"

// The bounds of a backup; what exceeds them is damaged.
const (
	maxHeader = 64 << 10
	maxReason = 4 << 10
	maxSize   = 1 << 40 // bytes of one record
	maxBlobs  = 1 << 24
)

// Kind says what a record is.
type Kind byte

// The kinds of records: the state, then blobs, then the end.
const (
	State Kind = 'S'
	Blob  Kind = 'B'
	end   Kind = 'E'
	fail  Kind = 'X'
)

// Errors of this package; test with errors.Is.
var (
	// ErrCorrupt: the bytes are the backup is damaged or incomplete.
	ErrCorrupt = errors.New("the backup is damaged or incomplete")
	// ErrVersion: the backup has a format that this process does not read.
	ErrVersion = errors.New("the backup has another format")
	// ErrBroken: the coordinator that wrote the backup could not go on.
	ErrBroken = errors.New("the backup was interrupted")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// Header describes a backup.
type Header struct {
	Cluster  string `json:"cluster"` // id of the cluster that it is of
	Index    uint64 `json:"index"`   // the log entry up to which the state goes
	Epoch    uint64 `json:"epoch"`
	Created  int64  `json:"created"` // Unix seconds, for display
	Version  string `json:"version"` // of the program
	Protocol int    `json:"protocol"`
	Numerics int    `json:"numerics"`
	Blobs    int    `json:"blobs"` // how many there are
	Bytes    int64  `json:"bytes"` // of the blobs and the state
}

func (h *Header) check() error {
	if h.Blobs < 0 || h.Blobs > maxBlobs || h.Bytes < 0 || h.Index == 0 {
		return corrupt("the header has impossible numbers: %d blobs, %d bytes, log index %d", h.Blobs, h.Bytes, h.Index)
	}
	return nil
}

var le = binary.LittleEndian

// appendHeader encodes what comes before the records.
func appendHeader(dst []byte, h *Header) []byte {
	b, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("archive: a header does not marshal: %v", err))
	}
	dst = append(dst, magic...)
	dst = append(dst, Version)
	dst = le.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// readHeader reads what comes before the records.
func readHeader(r io.Reader) (h Header, err error) {
	var head [len(magic) + 1 + 4]byte
	if _, err := io.ReadFull(r, head[:len(magic)+1]); err != nil {
		return h, short(err)
	}
	if string(head[:len(magic)]) != magic {
		return h, corrupt("the file does not begin with the header of a backup")
	}
	if v := head[len(magic)]; v != Version {
		return h, fmt.Errorf("%w: got format %d, want format %d", ErrVersion, v, Version)
	}
	if _, err := io.ReadFull(r, head[len(magic)+1:]); err != nil {
		return h, short(err)
	}
	n := le.Uint32(head[len(magic)+1:])
	if n > maxHeader {
		return h, corrupt("the header has %d bytes, want at most %d", n, maxHeader)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, short(err)
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, corrupt("the header cannot be read: %v", err)
	}
	return h, h.check()
}

// short turns the end of the bytes into the error that says so.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("the file ends too early")
	}
	return fmt.Errorf("archive: %w", err)
}

// Writer writes a backup. After an error it must not be used but for Fail.
type Writer struct {
	w     io.Writer
	sum   hash.Hash // of all bytes so far
	blobs uint64
	bytes uint64
}

// NewWriter begins a backup.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	a := &Writer{w: w, sum: sha256.New()}
	return a, a.write(appendHeader(nil, &h))
}

func (a *Writer) write(b []byte) error {
	a.sum.Write(b)
	if _, err := a.w.Write(b); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// Record writes a record of size bytes from r, which must have the digest, a
// SHA-256 in hex. Other bytes are an error that wraps ErrCorrupt.
func (a *Writer) Record(k Kind, digest string, size int64, r io.Reader) error {
	want, err := hex.DecodeString(digest)
	if err != nil || len(want) != sha256.Size || size < 0 || size > maxSize {
		panic(fmt.Sprintf("archive: a record of %d bytes with the digest %q", size, digest))
	}
	head := le.AppendUint64([]byte{byte(k)}, uint64(size))
	if err := a.write(append(head, want...)); err != nil {
		return err
	}
	own := sha256.New()
	n, err := io.Copy(io.MultiWriter(a.w, a.sum, own), io.LimitReader(r, size))
	if err != nil {
		return fmt.Errorf("archive: %s: %w", name(k, digest), err)
	}
	if got := hex.EncodeToString(own.Sum(nil)); n != size || got != digest {
		return corrupt("%s: got %d of %d bytes, with the digest %s", name(k, digest), n, size, got)
	}
	if k == Blob {
		a.blobs++
	}
	a.bytes += uint64(size)
	return nil
}

// Close ends the backup. It does not close what is written to.
func (a *Writer) Close() error {
	tail := le.AppendUint64(le.AppendUint64([]byte{byte(end)}, a.blobs), a.bytes)
	if err := a.write(tail); err != nil {
		return err
	}
	return a.write(a.sum.Sum(nil))
}

// Fail tells the reader why the backup ends before its end, where it is between
// two records; within one, the reader finds it cut short.
func (a *Writer) Fail(why error) {
	text := why.Error()
	text = text[:min(len(text), maxReason)]
	// the reader misses the end anyway
	_ = a.write(append(le.AppendUint32([]byte{byte(fail)}, uint32(len(text))), text...))
}

func name(k Kind, digest string) string {
	if k == State {
		return "the state"
	}
	return "blob " + digest
}
