package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxBlob is the greatest blob that FetchBlob takes, in bytes.
	MaxBlob = 64 << 30
	// pieceTimeout is how long one request waits for its piece at least.
	chunkTimeout = protocol.BlobChunkWait
	// pieceTries is how often a piece is asked for, while no other comes, before nobody has
	// the blob.
	chunkTries = 5
	// retryWait is the pause before a piece is asked for again.
	retryWait = 50 * time.Millisecond
)

// FetchBlob pulls a blob from who serves subject (see ServeBlobs) and writes it
// to w in order; size is its size in bytes, or 0 where it is not known. What is on
// its way at a time follows the link (see window), so that heartbeats find room. Pieces
// that get lost, or cannot be read just now, are asked for again, and a lost connection is
// waited for until ctx is done. It returns ErrNoBlob when nobody has the blob or nobody
// answers, with ErrUnreadable when who has it cannot read it, and ErrBlob when the bytes are
// not those of the digest: only after nil may what was written be used. A w that is a Summer
// is asked for their digest.
func (c *Conn) FetchBlob(ctx context.Context, subject, digest string, size int64, w io.Writer) error {
	f := &fetch{c: c, subject: subject, digest: digest, window: c.windows.begin(subject)}
	if err := f.run(ctx, size, w); err != nil {
		c.windows.failed(subject)
		return fmt.Errorf("fetch blob %s from %s: %w", digest, subject, err)
	}
	return nil
}

// Summer is a writer that sums what is written to it, so that it is summed once.
type Summer interface {
	io.Writer
	// Digest returns the SHA-256, in hex, of all that was written.
	Digest() string
}

// summed is a Summer of a writer that is none.
type summed struct {
	io.Writer
	sum hash.Hash
}

// summer returns w as a Summer.
func summer(w io.Writer) Summer {
	if s, ok := w.(Summer); ok {
		return s
	}
	sum := sha256.New()
	return &summed{io.MultiWriter(w, sum), sum}
}

// Digest implements Summer.
func (s *summed) Digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// fetch is one pull of a blob.
type fetch struct {
	c               *Conn
	subject, digest string

	mu     sync.Mutex
	window window
	came   int // pieces so far
}

// piece is one that was asked for.
type chunk struct {
	length int
	ended  chan outcome
}

// outcome is what became of a piece.
type outcome struct {
	p   protocol.BlobData
	err error
}

func (f *fetch) run(ctx context.Context, size int64, w io.Writer) error {
	length := f.window.first(size)
	first := f.fetch(ctx, 0, uint32(length))
	if first.err != nil {
		return first.err
	}
	total := first.p.Total
	if total > MaxBlob || size > 0 && total != uint64(size) {
		return fmt.Errorf("%w: got %d bytes, want %d, and never more than %d", ErrBlob, total, size, int64(MaxBlob))
	}
	to := summer(w)
	if err := f.pull(ctx, first, length, to); err != nil {
		return err
	}
	if got := to.Digest(); got != f.digest {
		return fmt.Errorf("%w: the digest is %s", ErrBlob, got)
	}
	f.c.windows.ended(f.subject, &f.window, total)
	return nil
}

// pull writes all pieces in order, with a window of requests ahead of the
// writing.
func (f *fetch) pull(ctx context.Context, o outcome, length int, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := o.p.Total
	var out []chunk // in the order of offsets
	defer func() {
		cancel()
		for _, p := range out {
			<-p.ended
		}
	}()
	at, next, inFlight := uint64(0), min(uint64(length), total), 0
	for {
		if err := f.write(o, at, uint64(length), total, w); err != nil {
			return err
		}
		at += uint64(len(o.p.Data))
		for next < total {
			n := f.next(inFlight, total-next)
			if n == 0 {
				break
			}
			out = append(out, f.ask(ctx, next, n))
			next, inFlight = next+uint64(n), inFlight+n
		}
		if len(out) == 0 {
			return nil
		}
		length = out[0].length
		o, out, inFlight = <-out[0].ended, out[1:], inFlight-length
	}
}

// next returns how many of the bytes that are left to ask for now, while so many are on
// their way.
func (f *fetch) next(inFlight int, left uint64) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.window.chunk()
	if inFlight > 0 && inFlight+n > f.window.size() {
		return 0
	}
	return int(min(uint64(n), left))
}

// ask asks for the piece at an offset in the background.
func (f *fetch) ask(ctx context.Context, at uint64, length int) chunk {
	p := chunk{length, make(chan outcome, 1)}
	go func() { p.ended <- f.fetch(ctx, at, uint32(length)) }()
	return p
}

// write writes a piece after checking that it has the bytes that were asked for.
func (f *fetch) write(o outcome, at, length, total uint64, w io.Writer) error {
	if o.err != nil {
		return o.err
	}
	if want := min(length, total-at); o.p.Total != total || uint64(len(o.p.Data)) != want {
		return fmt.Errorf("%w: got a chunk of %d of %d bytes at offset %d, want %d of %d bytes", ErrBlob, len(o.p.Data), o.p.Total, at, want, total)
	}
	_, err := w.Write(o.p.Data)
	return err
}

// fetch asks for a piece until it comes, is known not to exist, or too many
// requests went without an answer while no other piece came.
func (f *fetch) fetch(ctx context.Context, at uint64, length uint32) outcome {
	req := (&protocol.BlobGet{Digest: f.digest, Offset: at, Length: length}).Append(nil)
	came := f.progress()
	for tries := 1; ; tries++ {
		o, err := f.try(ctx, req, tries)
		if err == nil {
			return o
		}
		now := f.progress()
		switch {
		case ctx.Err() != nil:
			return outcome{err: ctx.Err()}
		case errors.Is(err, ErrOffline), now != came: // what comes is a sign of life
			tries, came = 0, now
		case tries == chunkTries:
			return outcome{err: fmt.Errorf("%w: %w", ErrNoBlob, err)}
		}
		select {
		case <-ctx.Done():
			return outcome{err: ctx.Err()}
		case <-time.After(retryWait):
		}
	}
}

// progress returns how many pieces came.
func (f *fetch) progress() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.came
}

// try asks once: an error is worth another try, one in the outcome is not.
func (f *fetch) try(ctx context.Context, req []byte, tries int) (outcome, error) {
	f.mu.Lock()
	patience, came := f.window.patience(tries), f.came
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	b, err := f.c.Request(ctx, f.subject, req)
	if err != nil {
		f.mu.Lock()
		if f.came == came {
			f.window.silent()
		}
		f.mu.Unlock()
		return outcome{}, err
	}
	var o outcome
	if err := o.p.Decode(b); err != nil {
		return outcome{err: err}, nil
	}
	if o.p.Unreadable {
		return outcome{}, ErrUnreadable
	}
	if !o.p.Found {
		o.err = ErrNoBlob
		return o, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.came++
	f.window.came(len(o.p.Data), time.Since(began))
	return o, nil
}
