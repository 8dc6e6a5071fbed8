// Package replica keeps blobs on a quorum of the coordinators. A blob is stored once a quorum, which includes this
// coordinator, has synced it to disk. Blobs serves and fetches single blobs; Fetcher fetches the blobs that the state
// refers to and this coordinator lacks.
package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// ErrNoMajority says that too few coordinators could sync a blob.
var ErrNoMajority = errors.New("too few coordinators could store the blob")

// Blobs is the folder of blobs of one coordinator, and its link to the folders of the others.
type Blobs struct {
	Self  string
	Peers []string // ids of the other coordinators
	// Members, if set, is used instead of Peers: the other coordinators that vote, and the others that do not vote yet.
	// Only voters count for a quorum.
	Members  func() (voters, rest []string)
	Folder   *blobs.Folder
	Conn     *bus.Conn
	Subjects protocol.Subjects
	Log      *slog.Logger

	requested singleflight.Group      // the fetches that other coordinators asked for, by coordinator and digest
	arriving  arrivals                // the blobs of these fetches
	fetcher   atomic.Pointer[Fetcher] // nil: none was made
}

// arrivals counts the blobs that are on their way here because another coordinator asked for that.
type arrivals struct {
	mu      sync.Mutex
	fetches map[string]int // by digest; no zeros
}

// begin counts a fetch until ended is called.
func (a *arrivals) begin(digest string) (ended func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fetches == nil {
		a.fetches = make(map[string]int)
	}
	a.fetches[digest]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.fetches[digest]--; a.fetches[digest] == 0 {
			delete(a.fetches, digest)
		}
	}
}

func (a *arrivals) has(digest string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fetches[digest] > 0
}

// Serve answers other coordinators and workers until stop. stop also ends the fetches that others asked for.
func (b *Blobs) Serve() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var subs []interface{ Close() }
	stop = func() {
		cancel()
		for _, s := range subs {
			s.Close()
		}
	}
	for _, s := range []struct{ subject, queue string }{
		{b.Subjects.Fetch("*"), "coordinators"}, {b.Subjects.CoordinatorBlobs(b.Self), ""},
	} {
		sub, err := bus.ServeBlobs(b.Conn, s.subject, s.queue, b.serve)
		if err != nil {
			stop()
			return nil, fmt.Errorf("cannot serve blobs: %w", err)
		}
		subs = append(subs, sub)
	}
	sub, err := b.Conn.Serve(b.Subjects.Replicate(b.Self), "", func(req []byte) []byte { return b.onReplicate(ctx, req) })
	if err != nil {
		stop()
		return nil, fmt.Errorf("cannot serve blobs: %w", err)
	}
	subs = append(subs, sub)
	return stop, nil
}

// serve opens a blob for a coordinator or a worker that asks for it. If no coordinator has the blob, the error says so
// at once.
func (b *Blobs) serve(digest string) (bus.Blob, error) {
	blob, err := b.Folder.OpenBlob(digest)
	switch {
	case err == nil:
		return blob, nil
	case absent(err):
		if f := b.fetcher.Load(); f != nil && f.Unavailable(digest) {
			return nil, fmt.Errorf("%w: %w", bus.ErrNobody, bus.ErrNoBlob)
		}
		return nil, bus.ErrNoBlob
	}
	return nil, err
}

// absent reports whether an error of the folder says that it has no such blob. Other errors say that it cannot be read
// now: too few file descriptors, too little memory, or an error of the disk.
func absent(err error) bool {
	return errors.Is(err, blobs.ErrMissing) || errors.Is(err, blobs.ErrCorrupt) || errors.Is(err, blobs.ErrDigest)
}

// onReplicate fetches a blob from the coordinator that asks for it. A repeated request waits for the same fetch.
func (b *Blobs) onReplicate(ctx context.Context, req []byte) []byte {
	var m protocol.Replicate
	err := protocol.Read(&m, req)
	if err == nil {
		_, err, _ = b.requested.Do(m.From+" "+m.Digest, func() (any, error) {
			ctx, cancel := context.WithTimeout(ctx, protocol.BlobWithin(m.Bytes))
			defer cancel()
			defer b.arriving.begin(m.Digest)()
			return nil, b.fetch(ctx, b.Subjects.CoordinatorBlobs(m.From), m.Digest, int64(m.Bytes))
		})
	}
	reply := protocol.Reply{}
	if err != nil {
		reply.Error = err.Error()
	}
	return reply.Append(nil)
}

// fetch brings a blob into the folder unless it is there and right.
func (b *Blobs) fetch(ctx context.Context, subject, digest string, size int64) error {
	if b.Has(digest) {
		return b.Folder.Renew(digest) // an old one may be about to be deleted
	}
	return b.replace(ctx, subject, digest, size, nil)
}

// replace brings a blob into the folder in place of what may be there. If copied is not nil, it gets the bytes as well.
func (b *Blobs) replace(ctx context.Context, subject, digest string, size int64, copied *copied) error {
	w, err := b.Folder.Writer()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := b.Conn.FetchBlob(ctx, subject, digest, size, &teeWriter{w, copied}); err != nil {
		return err
	}
	_, err = w.Commit(digest)
	return err
}

// teeWriter writes a blob, and a copy unless copied is nil. It is a bus.Summer.
type teeWriter struct {
	*blobs.Writer
	copied *copied
}

// Write implements io.Writer.
func (t *teeWriter) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.copied != nil {
		t.copied.add(p[:n])
	}
	return n, err
}

// copied is a copy of the bytes of a blob as they come. It takes memory for what has come, and not for the size that
// the sender claims. It begins with firstCopied bytes and doubles them, but takes at most size while that is enough.
type copied struct {
	size  int
	bytes []byte
}

const firstCopied = 1 << 20

func (c *copied) add(p []byte) {
	if need := len(c.bytes) + len(p); need > cap(c.bytes) {
		room := max(need, firstCopied, 2*cap(c.bytes))
		if need <= c.size {
			room = min(room, c.size)
		}
		c.bytes = append(make([]byte, 0, room), c.bytes...)
	}
	c.bytes = append(c.bytes, p...)
}

// Has reports whether the blob is here. This process verifies a blob when it first opens it, and moves a corrupt one
// aside.
func (b *Blobs) Has(digest string) bool {
	blob, err := b.Folder.OpenBlob(digest)
	if err != nil {
		return false
	}
	blob.Close()
	return true
}

// Keep stores a blob here.
func (b *Blobs) Keep(data []byte) (digest string, err error) { return b.Folder.Put(data) }

// Writer begins a blob here. Its Commit stores the blob.
func (b *Blobs) Writer() (*blobs.Writer, error) { return b.Folder.Writer() }

// Put stores a blob here and on a quorum.
func (b *Blobs) Put(ctx context.Context, data []byte) (digest string, err error) {
	digest, err = b.Folder.Put(data)
	if err != nil {
		return "", err
	}
	return digest, b.Spread(ctx, digest, uint64(len(data)))
}

// Receive stores a blob that a client sent, and returns once a quorum has it. Bytes that do not have the digest are
// refused with blobs.ErrCorrupt.
func (b *Blobs) Receive(ctx context.Context, digest string, sent *blobs.Writer) error {
	if !blobs.Valid(digest) {
		return fmt.Errorf("%w: %.80q is not a digest", blobs.ErrCorrupt, digest)
	}
	size := sent.Size()
	if _, err := sent.Commit(digest); err != nil {
		return err
	}
	return b.Spread(ctx, digest, uint64(size))
}

// Take fetches a blob from a worker, stores it here and returns its bytes as they came. It reads the file only if the
// blob was here before.
func (b *Blobs) Take(ctx context.Context, worker, digest string, size uint64) ([]byte, error) {
	subject := b.Subjects.WorkerBlobs(worker)
	if b.Has(digest) {
		if err := b.fetch(ctx, subject, digest, int64(size)); err != nil {
			return nil, fmt.Errorf("blob %s from worker %s: %w", digest, worker, err)
		}
		return b.Get(ctx, digest)
	}
	c := &copied{size: int(min(size, math.MaxInt))}
	if err := b.replace(ctx, subject, digest, int64(size), c); err != nil {
		return nil, fmt.Errorf("blob %s from worker %s: %w", digest, worker, err)
	}
	return c.bytes, nil
}

// Spread returns once a quorum has synced a blob that this folder has. The age of the blob begins anew here. The error
// wraps blobs.ErrMissing if this folder does not have the blob any more.
func (b *Blobs) Spread(ctx context.Context, digest string, size uint64) error {
	if err := b.Folder.Renew(digest); err != nil {
		return fmt.Errorf("blob %s: %w", digest, err)
	}
	voters, rest := b.others()
	need := (len(voters) + 1) / 2 // besides this coordinator
	answers := make(chan error, len(voters))
	req := (&protocol.Replicate{Digest: digest, Bytes: size, From: b.Self}).Append(nil)
	within := protocol.BlobWithin(size)
	for _, peer := range voters {
		go func() { answers <- b.ask(peer, req, within) }()
	}
	for _, peer := range rest { // they catch up and do not count
		go b.ask(peer, req, within)
	}
	var last error
	for range voters {
		if need == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-answers:
			if err == nil {
				need--
			} else {
				last = err
			}
		}
	}
	if need > 0 {
		return fmt.Errorf("%w: %w", ErrNoMajority, last)
	}
	return nil
}

// others lists the other coordinators that vote, and the others that do not vote yet.
func (b *Blobs) others() (voters, rest []string) {
	if b.Members != nil {
		return b.Members()
	}
	return slices.Clone(b.Peers), nil
}

// ask has a peer fetch a blob. A request or its answer is lost if NATS restarts. So ask repeats the request after
// protocol.BlobAsk without an answer, then after twice the time, and so on.
func (b *Blobs) ask(peer string, req []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var answer []byte
	err := context.DeadlineExceeded
	for wait := protocol.BlobAsk; errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; wait *= 2 {
		try, cancel := context.WithTimeout(ctx, wait)
		answer, err = b.Conn.Request(try, b.Subjects.Replicate(peer), req)
		cancel()
	}
	if err != nil {
		return fmt.Errorf("coordinator %s: %w", peer, err)
	}
	var reply protocol.Reply
	if err := protocol.Read(&reply, answer); err != nil {
		return err
	}
	if reply.Error != "" {
		return fmt.Errorf("coordinator %s: %s", peer, reply.Error)
	}
	return nil
}

// Get returns a blob. It is fetched from another coordinator if this one lacks it or finds its copy corrupt.
func (b *Blobs) Get(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.Folder.Get(digest)
	if err == nil {
		return data, nil
	}
	if !errors.Is(err, blobs.ErrMissing) {
		b.Log.Warn("a blob cannot be read and is fetched again", "digest", digest, "error", err)
	}
	fetch := b.fetch
	if !absent(err) { // fetch would find that the copy here may be right
		fetch = func(ctx context.Context, subject, digest string, size int64) error {
			return b.replace(ctx, subject, digest, size, nil)
		}
	}
	if again := b.fetchFrom(ctx, digest, fetch); again != nil {
		if !absent(err) {
			again = err // the copy here may be readable at the next try
		}
		return nil, fmt.Errorf("blob %s: %w", digest, again)
	}
	return b.Folder.Get(digest)
}

// Open opens a blob, fetched as by Get. The caller closes it.
func (b *Blobs) Open(ctx context.Context, digest string) (*blobs.Blob, error) {
	blob, err := b.Folder.OpenBlob(digest)
	if err == nil {
		return blob, nil
	}
	if errors.Is(err, blobs.ErrCorrupt) {
		b.Log.Warn("a blob is damaged and is fetched again", "digest", digest, "error", err)
	}
	if err := b.Fetch(ctx, digest); err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest, err)
	}
	return b.Folder.OpenBlob(digest)
}

// Fetch brings a blob here from any other coordinator. The error is blobs.ErrMissing if each of them said that it does
// not have it: the blob is lost. While a coordinator does not answer, or cannot read its copy, the error wraps
// bus.ErrNoBlob or another error of the bus.
func (b *Blobs) Fetch(ctx context.Context, digest string) error {
	return b.fetchFrom(ctx, digest, b.fetch)
}

// fetchFrom is Fetch by way of a function that fetches from one coordinator.
func (b *Blobs) fetchFrom(ctx context.Context, digest string, fetch func(ctx context.Context, subject, digest string,
	size int64) error) error {
	var silent error
	voters, rest := b.others()
	for _, peer := range append(voters, rest...) {
		err := fetch(ctx, b.Subjects.CoordinatorBlobs(peer), digest, 0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, bus.ErrNoBlob) || errors.Is(err, bus.ErrNoAnswer) || errors.Is(err, bus.ErrUnreadable) {
			silent = err
		}
	}
	if silent != nil {
		return silent
	}
	return fmt.Errorf("no coordinator has blob %s: %w", digest, blobs.ErrMissing)
}
