package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Reader reads a backup and checks all of it.
type Reader struct {
	Header Header

	r      *bufio.Reader
	sum    hash.Hash // of all bytes so far
	record *Record
	state  bool
	last   string // digest of the blob before
	blobs  uint64
	bytes  uint64
}

// Record is one part of a backup. Reading it to the end checks its digest.
type Record struct {
	Kind   Kind
	Digest string // SHA-256 in hex
	Size   int64

	a    *Reader
	left int64
	own  hash.Hash
	err  error
}

// NewReader reads the header. Errors wrap ErrCorrupt or ErrVersion, or are those
// of r.
func NewReader(r io.Reader) (*Reader, error) {
	a := &Reader{r: bufio.NewReaderSize(r, 256<<10), sum: sha256.New()}
	var err error
	a.Header, err = readHeader(io.TeeReader(a.r, a.sum))
	return a, err
}

// Next returns the next record after reading what is left of the one before: the
// state first, then the blobs by ascending digest. At the end it checks that
// nothing lacks and returns io.EOF.
func (a *Reader) Next() (*Record, error) {
	if a.record != nil {
		if _, err := io.Copy(io.Discard, a.record); err != nil {
			return nil, err
		}
		a.record = nil
	}
	k, err := a.kind()
	if err != nil {
		return nil, err
	}
	switch k {
	case State, Blob:
		return a.open(k)
	case end:
		return nil, a.finish()
	case fail:
		return nil, a.failed()
	}
	return nil, corrupt("a record has the unknown kind %d", k)
}

func (a *Reader) read(b []byte) error {
	if _, err := io.ReadFull(a.r, b); err != nil {
		return short(err)
	}
	a.sum.Write(b)
	return nil
}

func (a *Reader) kind() (Kind, error) {
	var b [1]byte
	err := a.read(b[:])
	return Kind(b[0]), err
}

// open reads the head of a record.
func (a *Reader) open(k Kind) (*Record, error) {
	var b [8 + sha256.Size]byte
	if err := a.read(b[:]); err != nil {
		return nil, err
	}
	size, digest := le.Uint64(b[:8]), hex.EncodeToString(b[8:])
	switch {
	case size > maxSize:
		return nil, corrupt("%s has %d bytes, want at most %d", name(k, digest), size, uint64(maxSize))
	case (k == State) == a.state:
		return nil, corrupt("the state must come once, before the blobs")
	case k == Blob && digest <= a.last:
		return nil, corrupt("blobs are not sorted by digest: %s comes too late", digest)
	}
	if k == State {
		a.state = true
	} else {
		a.blobs, a.last = a.blobs+1, digest
	}
	a.bytes += size
	a.record = &Record{Kind: k, Digest: digest, Size: int64(size), a: a, left: int64(size), own: sha256.New()}
	return a.record, nil
}

// Read implements io.Reader.
func (r *Record) Read(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.left == 0 {
		r.err = io.EOF
		if got := hex.EncodeToString(r.own.Sum(nil)); got != r.Digest {
			r.err = corrupt("%s has other content: its digest is %s", name(r.Kind, r.Digest), got)
		}
		return 0, r.err
	}
	n, err := r.a.r.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	r.own.Write(b[:n])
	r.a.sum.Write(b[:n])
	if err != nil && r.left > 0 {
		r.err = fmt.Errorf("%s: %w", name(r.Kind, r.Digest), short(err))
		return n, r.err
	}
	return n, nil
}

// finish checks the end of a backup.
func (a *Reader) finish() error {
	var counts [16]byte
	if err := a.read(counts[:]); err != nil {
		return err
	}
	want := a.sum.Sum(nil)
	var got [sha256.Size]byte
	if err := a.read(got[:]); err != nil {
		return err
	}
	blobs, size := le.Uint64(counts[:8]), le.Uint64(counts[8:])
	switch {
	case !bytes.Equal(got[:], want):
		return corrupt("the digest at the end does not match the bytes")
	case !a.state:
		return corrupt("the state of the cluster is missing")
	case blobs != a.blobs || size != a.bytes || a.blobs != uint64(a.Header.Blobs) || a.bytes != uint64(a.Header.Bytes):
		return corrupt("the backup holds %d blobs and %d bytes, but the header says %d and %d, and the end says %d and %d",
			a.blobs, a.bytes, a.Header.Blobs, a.Header.Bytes, blobs, size)
	}
	if _, err := a.r.ReadByte(); err == nil {
		return corrupt("more bytes follow the end")
	} else if err != io.EOF {
		return short(err)
	}
	return io.EOF
}

// failed returns why the writer broke off.
func (a *Reader) failed() error {
	var n [4]byte
	if err := a.read(n[:]); err != nil {
		return err
	}
	if le.Uint32(n[:]) > maxReason {
		return corrupt("the reason of the interruption has %d bytes, which is too long", le.Uint32(n[:]))
	}
	text := make([]byte, le.Uint32(n[:]))
	if err := a.read(text); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrBroken, text)
}

// Verify reads a whole backup and returns its header. each, where set, is told
// after every record how many bytes have been read of how many.
func Verify(r io.Reader, each func(h *Header, blobs int, bytes int64)) (Header, error) {
	a, err := NewReader(r)
	if err != nil {
		return Header{}, err
	}
	for {
		record, err := a.Next()
		if err == io.EOF {
			return a.Header, nil
		}
		if err == nil {
			_, err = io.Copy(io.Discard, record)
		}
		if err != nil {
			return a.Header, err
		}
		if each != nil {
			each(&a.Header, int(a.blobs), int64(a.bytes))
		}
	}
}
