package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

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
	_ = a.write(append(le.AppendUint32([]byte{byte(fail)}, uint32(len(text))), text...)) // the reader misses the end anyway
}

func name(k Kind, digest string) string {
	if k == State {
		return "the state"
	}
	return "blob " + digest
}
