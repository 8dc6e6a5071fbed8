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
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Blob is an open blob.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Served is what ServeBlobs serves until closed.
type Served struct{ subs []*Subscription }

// Close stops to serve.
func (s *Served) Close() {
	for _, sub := range s.subs {
		sub.Close()
	}
}

// ServeBlobs answers BlobGet requests on subject with the blobs that open finds. An error of open
// that wraps ErrNoBlob says that the blob is missing. With any other error it may be there, but
// cannot be read just now.
//
// If queue is empty, the subject belongs to one node, which answers that the blob is missing or
// cannot be read. If not, the members of the group share the subject, and NATS asks any member.
// A member that cannot send the blob passes the request on to all, and a member that has the blob
// answers. If the error wraps ErrNobody as well, the member does not pass the request on, and
// answers that the blob is missing.
func ServeBlobs(c *Conn, subject, queue string, open func(digest string) (Blob, error)) (*Served, error) {
	s := &Served{}
	notFound := func(_ Message, err error) []byte {
		return (&protocol.BlobData{Unreadable: !errors.Is(err, ErrNoBlob)}).Append(nil)
	}
	lack := notFound
	if queue != "" {
		lack = func(m Message, err error) []byte {
			if errors.Is(err, ErrNobody) {
				return notFound(m, err)
			}
			if err := c.publish(m.Subject+protocol.PassedOn, m.Reply, m.Data); err != nil {
				c.log.Warn("a request could not be forwarded", "subject", m.Subject, "error", err)
			}
			return nil
		}
		all := func(m Message) []byte {
			return c.chunk(m, open, func(Message, error) []byte { return nil })
		}
		if err := s.add(c.serve(subject+protocol.PassedOn, "", all)); err != nil {
			return nil, err
		}
	}
	one := func(m Message) []byte { return c.chunk(m, open, lack) }
	if err := s.add(c.serve(subject, queue, one)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Served) add(sub *Subscription, err error) error {
	if err == nil {
		s.subs = append(s.subs, sub)
	}
	return err
}

// chunk returns the answer to a BlobGet; nil: there is none. lack returns the answer if the blob
// cannot be sent, for the reason err.
func (c *Conn) chunk(m Message, open func(string) (Blob, error), lack func(m Message, err error) []byte) []byte {
	var get protocol.BlobGet
	if err := protocol.Read(&get, m.Data); err != nil {
		c.log.Warn("a request was dropped", "subject", m.Subject, "error", err)
		return nil
	}
	b, err := open(get.Digest)
	if errors.Is(err, ErrNoBlob) {
		return lack(m, err)
	}
	var answer []byte
	if err == nil {
		defer b.Close()
		answer, err = readChunk(b, &get)
	}
	if err != nil {
		c.log.Warn("a blob cannot be read", "digest", get.Digest, "error", err)
		return lack(m, err)
	}
	return answer
}

// readChunk encodes the bytes that get asks for; beyond the blob's end there are
// none.
func readChunk(b Blob, get *protocol.BlobGet) ([]byte, error) {
	p := protocol.BlobData{Found: true, Total: uint64(max(0, b.Size()))}
	if get.Offset < p.Total {
		p.Data = make([]byte, min(uint64(get.Length), p.Total-get.Offset))
		n, err := b.ReadAt(p.Data, int64(get.Offset))
		if n < len(p.Data) {
			return nil, errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return p.Append(nil), nil
}

const (
	// MaxBlob is the greatest blob that FetchBlob takes, in bytes.
	MaxBlob = protocol.MaxBlob
	// chunkTimeout is how long one request waits for its chunk at least.
	chunkTimeout = protocol.BlobChunkWait
	// chunkTries is how often a chunk is asked for, while no other comes, before nobody has
	// the blob.
	chunkTries = 5
	// retryWait is the pause before a chunk is asked for again.
	retryWait = 50 * time.Millisecond
)

// FetchBlob pulls a blob from the nodes that serve subject (see ServeBlobs) and writes it to w in
// order; size is its size in bytes, or 0 if it is not known. What is on its way at a time follows
// the link (see window), so that heartbeats find room. FetchBlob asks again for chunks that get
// lost, or cannot be read just now, and waits for a lost connection until ctx is done. It returns
// ErrNoBlob if nobody has the blob or nobody answers, with ErrUnreadable if it cannot be read. It
// returns ErrBlob if the bytes do not have the digest. What was written may be used only after
// nil. If w is a Summer, it is asked for the digest.
func (c *Conn) FetchBlob(ctx context.Context, subject, digest string, size int64, w io.Writer) (err error) {
	f := &fetch{c: c, subject: subject, digest: digest, window: c.windows.begin(subject)}
	defer func() {
		if err != nil {
			c.windows.failed(subject)
			err = fmt.Errorf("fetch blob %s from %s: %w", digest, subject, err)
		}
	}()
	length := f.window.first(size)
	first := f.fetch(ctx, 0, uint32(length))
	if first.err != nil {
		return first.err
	}
	total := first.p.Total
	if total > MaxBlob || size > 0 && total != uint64(size) {
		return fmt.Errorf("%w: got %d bytes, want %d, and never more than %d", ErrBlob, total, size, int64(MaxBlob))
	}
	to, ok := w.(Summer)
	if !ok {
		sum := sha256.New()
		to = &summed{io.MultiWriter(w, sum), sum}
	}
	if err := f.pull(ctx, first, length, to); err != nil {
		return err
	}
	if got := to.Digest(); got != digest {
		return fmt.Errorf("%w: the digest is %s", ErrBlob, got)
	}
	c.windows.ended(subject, &f.window, total)
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

// Digest implements Summer.
func (s *summed) Digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// fetch is one pull of a blob.
type fetch struct {
	c               *Conn
	subject, digest string

	came atomic.Int64 // chunks so far

	mu     sync.Mutex
	window window
}

// chunk is a part of a blob that was asked for.
type chunk struct {
	length int
	ended  chan outcome
}

// outcome is what became of a chunk.
type outcome struct {
	p   protocol.BlobData
	err error
}

// pull writes all chunks in order, after checking that each has the bytes that were asked for,
// with a window of requests ahead of the writing.
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
		if o.err != nil {
			return o.err
		}
		if want := min(uint64(length), total-at); o.p.Total != total || uint64(len(o.p.Data)) != want {
			return fmt.Errorf("%w: got a chunk of %d of %d bytes at offset %d, want %d of %d bytes", ErrBlob, len(o.p.Data),
				o.p.Total, at, want, total)
		}
		if _, err := w.Write(o.p.Data); err != nil {
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

// ask asks for the chunk at an offset in the background.
func (f *fetch) ask(ctx context.Context, at uint64, length int) chunk {
	p := chunk{length, make(chan outcome, 1)}
	go func() { p.ended <- f.fetch(ctx, at, uint32(length)) }()
	return p
}

// fetch asks for a chunk until it comes, is known not to exist, or too many
// requests went without an answer while no other chunk came.
func (f *fetch) fetch(ctx context.Context, at uint64, length uint32) outcome {
	req := (&protocol.BlobGet{Digest: f.digest, Offset: at, Length: length}).Append(nil)
	came := f.came.Load()
	for tries := 1; ; tries++ {
		o, err := f.try(ctx, req, tries)
		if err == nil {
			return o
		}
		now := f.came.Load()
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

// try asks once. An error is worth another try, but an error in the outcome is not.
func (f *fetch) try(ctx context.Context, req []byte, tries int) (outcome, error) {
	f.mu.Lock()
	patience, came := f.window.patience(tries), f.came.Load()
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	b, err := f.c.Request(ctx, f.subject, req)
	if err != nil {
		f.mu.Lock()
		if f.came.Load() == came {
			f.window.silent()
		}
		f.mu.Unlock()
		return outcome{}, err
	}
	var o outcome
	if err := protocol.Read(&o.p, b); err != nil {
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
	f.came.Add(1)
	f.window.came(len(o.p.Data), time.Since(began))
	return o, nil
}

// The bounds of what a pull of a blob has on its way, in bytes, and of the chunks that
// it asks for.
const (
	firstWindow = 16 << 10
	leastWindow = 4 << 10
	mostWindow  = 8 * protocol.BlobChunk
	leastChunk  = 4 << 10
	// chunksOut is in how many chunks a window is asked for, within the bounds of a chunk.
	chunksOut = 4
	// afresh is how often in a row a window shrinks, while no chunk comes as fast as the fastest
	// did, before the fastest is forgotten: the way may be longer by now.
	afresh = 16
	// mostPatience bounds the wait for one chunk.
	mostPatience = protocol.BlobAnswer
	// spareDelay is by how much a pull may lengthen the way of what shares the link with it:
	// heartbeats, a third of the shortest election timeout by default.
	spareDelay = 50 * time.Millisecond
)

// window is how many bytes of a blob may be on their way. It grows while chunks come about as
// fast as the fastest chunk did. It shrinks when they come later, because a queue builds up on a
// thin link, or not at all. If they come later for good, the window measures anew what is fast.
// The zero value is ready for use.
type window struct {
	bytes  float64
	base   time.Duration // what the fastest chunk took; 0: the next tells
	last   time.Duration // what the last one took
	shrunk int           // how often since a chunk came about as fast as the fastest
	steady bool          // true if it has shrunk once: from then on it grows by a chunk for each window
	rests  int           // bytes to come before it changes again after it has shrunk
}

// size returns how many bytes may be on their way.
func (w *window) size() int {
	if w.bytes == 0 {
		w.bytes = firstWindow
	}
	return int(w.bytes)
}

// chunk returns how many bytes to ask for at once.
func (w *window) chunk() int {
	return min(max(w.size()/chunksOut, leastChunk), protocol.BlobChunk)
}

// came takes note of n bytes that came d after they were asked for.
func (w *window) came(n int, d time.Duration) {
	size := float64(w.size())
	w.last = d
	if w.rests > 0 {
		w.rests -= n
		if d < w.base {
			w.base = d
		}
		return
	}
	if w.base == 0 || d < w.base {
		w.base = d
	}
	if d <= w.base+w.base/4 {
		w.shrunk = 0
	}
	switch late := d > w.base+w.base/4+spareDelay; {
	case late:
		w.shrink()
	case w.steady:
		w.bytes = min(size+float64(n)*float64(w.chunk())/size, mostWindow)
	default:
		w.bytes = min(size+float64(n), mostWindow) // twice as much for each window that came
	}
}

// silent takes note of a chunk that did not come in time, while no other came since it was asked
// for. If others came, it was lost alone, and not for a queue.
func (w *window) silent() { w.shrink() }

// shrink halves the window, and lets what is on its way come before it changes again. If that
// was of no use for long, the window becomes as small as can be. Then what it has on its way
// waits behind nothing of its own, and the next chunk tells anew how fast a chunk comes.
func (w *window) shrink() {
	w.rests = w.size()
	w.bytes = max(w.bytes/2, leastWindow)
	w.steady = true
	if w.shrunk++; w.shrunk >= afresh {
		w.bytes, w.base, w.shrunk = leastWindow, 0, 0
	}
}

// patience is how long to wait for a chunk that is asked for the tries-th time, from 1.
func (w *window) patience(tries int) time.Duration {
	first := max(chunkTimeout, min(patiencePaces*w.last, mostPatience))
	return min(first<<min(tries-1, 3), mostPatience)
}

// patiencePaces is how many times as long as the last chunk another chunk may take.
const patiencePaces = 4

const (
	// mostAtFirst bounds the window that a pull begins with: what is on its way before the
	// first chunk tells how the link is.
	mostAtFirst = 128 << 10
	// mostSubjects bounds the subjects with a remembered window.
	mostSubjects = 1024
)

// windows remembers how wide the window of the last pull from each subject became, so that
// the next one need not find out from the beginning: a tree takes one request in place of
// eight.
type windows struct {
	mu    sync.Mutex
	bytes map[string]float64 // by subject
}

// begin returns the window that a pull from a subject begins with.
func (w *windows) begin(subject string) window {
	w.mu.Lock()
	defer w.mu.Unlock()
	return window{bytes: w.bytes[subject]}
}

// ended takes note of the window at the end of a pull of total bytes that went well. A small
// blob does not show that the link carries more than twice as much.
func (w *windows) ended(subject string, last *window, total uint64) {
	shown := max(2*float64(total), firstWindow)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes == nil || len(w.bytes) >= mostSubjects {
		w.bytes = make(map[string]float64)
	}
	w.bytes[subject] = min(float64(last.size()), shown, mostAtFirst)
}

// failed forgets a subject from which a pull failed.
func (w *windows) failed(subject string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.bytes, subject)
}

// first returns how many bytes a pull asks for at first: all of a blob that is known to fit
// into the window, since they would be on their way together anyway.
func (w *window) first(size int64) int {
	if 0 < size && size <= int64(min(w.size(), protocol.BlobChunk)) {
		return int(size)
	}
	return w.chunk()
}
