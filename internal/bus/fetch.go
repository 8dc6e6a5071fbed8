package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxBlob is the greatest blob that FetchBlob takes, in bytes.
	MaxBlob = 64 << 30
	// window is the number of requests for pieces of a blob in flight.
	window = 8
	// pieceTimeout is how long one request waits for its piece.
	pieceTimeout = protocol.BlobPieceWait
	// pieceTries is how often a piece is asked for before nobody has the blob.
	pieceTries = 5
	// retryWait is the pause before a piece is asked for again.
	retryWait = 50 * time.Millisecond
)

// FetchBlob pulls a blob from who serves subject (see ServeBlobs) and writes it
// to w in order; size is its size in bytes, or 0 where it is not known. Pieces
// that get lost are asked for again, and a lost connection is waited for until
// ctx is done. It returns ErrNoBlob when nobody has the blob or nobody answers,
// and ErrBlob when the bytes are not those of the digest: only after nil may
// what was written be used.
func (c *Conn) FetchBlob(ctx context.Context, subject, digest string, size int64, w io.Writer) error {
	f := &fetch{c: c, subject: subject, digest: digest}
	if err := f.run(ctx, size, w); err != nil {
		return fmt.Errorf("fetch blob %s from %s: %w", digest, subject, err)
	}
	return nil
}

// fetch is one pull of a blob.
type fetch struct {
	c               *Conn
	subject, digest string
}

// outcome is a piece that was asked for.
type outcome struct {
	p   protocol.BlobPiece
	err error
}

func (f *fetch) run(ctx context.Context, size int64, w io.Writer) error {
	first := f.piece(ctx, 0, protocol.BlobChunk)
	if first.err != nil {
		return first.err
	}
	total := first.p.Total
	if total > MaxBlob || size > 0 && total != uint64(size) {
		return fmt.Errorf("%w: it has %d bytes, %d are expected, %d are possible", ErrBlob, total, size, int64(MaxBlob))
	}
	sum := sha256.New()
	if err := f.pull(ctx, first, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.digest {
		return fmt.Errorf("%w: their digest is %s", ErrBlob, got)
	}
	return nil
}

// pull writes all pieces in order, with a window of requests ahead of the
// writing.
func (f *fetch) pull(ctx context.Context, first outcome, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := first.p.Total
	var due []chan outcome // in the order of offsets
	defer func() {
		cancel()
		for _, ch := range due {
			<-ch
		}
	}()
	at, next := uint64(0), uint64(len(first.p.Data))
	for o := first; ; {
		if err := f.write(o, at, total, w); err != nil {
			return err
		}
		at += uint64(len(o.p.Data))
		for ; next < total && len(due) < window; next += protocol.BlobChunk {
			due = append(due, f.ask(ctx, next, total))
		}
		if len(due) == 0 {
			return nil
		}
		o, due = <-due[0], due[1:]
	}
}

// ask asks for the piece at an offset in the background.
func (f *fetch) ask(ctx context.Context, at, total uint64) chan outcome {
	ch := make(chan outcome, 1)
	length := uint32(min(protocol.BlobChunk, total-at))
	go func() { ch <- f.piece(ctx, at, length) }()
	return ch
}

// write writes a piece after checking that it has the bytes that were due.
func (f *fetch) write(o outcome, at, total uint64, w io.Writer) error {
	if o.err != nil {
		return o.err
	}
	if due := min(protocol.BlobChunk, total-at); o.p.Total != total || uint64(len(o.p.Data)) != due {
		return fmt.Errorf("%w: %d bytes of %d at %d, %d of %d are expected", ErrBlob, len(o.p.Data), o.p.Total, at, due, total)
	}
	_, err := w.Write(o.p.Data)
	return err
}

// piece asks for a piece until it comes, is known not to exist, or too many
// requests went without an answer.
func (f *fetch) piece(ctx context.Context, at uint64, length uint32) outcome {
	req := (&protocol.BlobGet{Digest: f.digest, Offset: at, Length: length}).Append(nil)
	for tries := 1; ; tries++ {
		o, err := f.try(ctx, req)
		if err == nil {
			return o
		}
		switch {
		case ctx.Err() != nil:
			return outcome{err: ctx.Err()}
		case errors.Is(err, ErrOffline):
			tries = 0
		case tries == pieceTries:
			return outcome{err: fmt.Errorf("%w: %w", ErrNoBlob, err)}
		}
		select {
		case <-ctx.Done():
			return outcome{err: ctx.Err()}
		case <-time.After(retryWait):
		}
	}
}

// try asks once: an error is worth another try, one in the outcome is not.
func (f *fetch) try(ctx context.Context, req []byte) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	b, err := f.c.Request(ctx, f.subject, req)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	if err := o.p.Decode(b); err != nil {
		return outcome{err: err}, nil
	}
	if !o.p.Found {
		o.err = ErrNoBlob
	}
	return o, nil
}
