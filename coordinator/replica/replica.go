// Package replica keeps blobs on a majority of the coordinators: a blob counts
// once a majority, this coordinator included, has synced it to disk.
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

// Blobs is one coordinator's folder of blobs and its link to those of the others.
type Blobs struct {
	Self  string
	Peers []string // ids of the other coordinators
	// Members, where set, is asked instead of Peers: the other coordinators that
	// vote, and those that do not vote yet. Only the former count for a majority.
	Members  func() (voters, rest []string)
	Folder   *blobs.Folder
	Conn     *bus.Conn
	Subjects protocol.Subjects
	Log      *slog.Logger

	fetching singleflight.Group      // what others ask for, by who and digest
	fetcher  atomic.Pointer[Fetcher] // nil: there is none

	mu      sync.Mutex
	arrives map[string]int // fetches that others asked for, by digest
}

// Serve answers other coordinators and workers until stop, which gives up what is
// being fetched for others.
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
		{b.Subjects.Blobs(), "coordinators"}, {b.Subjects.BlobsOf(b.Self), ""},
	} {
		sub, err := bus.ServeBlobs(b.Conn, s.subject, s.queue, b.open)
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

// open finds a blob for who asks for it.
func (b *Blobs) open(digest string) (bus.Blob, error) {
	blob, err := b.Folder.OpenBlob(digest)
	switch {
	case err == nil:
		return blob, nil
	case absent(err):
		if f := b.fetcher.Load(); f != nil && f.Unavailable(digest) {
			return nil, fmt.Errorf("%w: %w", bus.ErrNobody, bus.ErrNoBlob) // who asks is told so at once
		}
		return nil, bus.ErrNoBlob
	}
	return nil, err
}

// absent reports whether an error of the folder says that it has no such blob, and not
// merely that it cannot be read just now (too few file descriptors or too little memory, an
// error of the disk).
func absent(err error) bool {
	return errors.Is(err, blobs.ErrMissing) || errors.Is(err, blobs.ErrCorrupt) || errors.Is(err, blobs.ErrDigest)
}

func (b *Blobs) onReplicate(ctx context.Context, req []byte) []byte {
	var m protocol.Replicate
	err := m.Decode(req)
	if err == nil {
		_, err, _ = b.fetching.Do(m.From+" "+m.Digest, func() (any, error) { // who asks again waits for the same copy
			ctx, cancel := context.WithTimeout(ctx, protocol.BlobWithin(m.Bytes))
			defer cancel()
			defer b.arrive(m.Digest)()
			return nil, b.fetch(ctx, b.Subjects.BlobsOf(m.From), m.Digest, int64(m.Bytes))
		})
	}
	reply := protocol.Reply{}
	if err != nil {
		reply.Error = err.Error()
	}
	return reply.Append(nil)
}

// arrive notes that a blob is on its way here until the fetch has ended.
func (b *Blobs) arrive(digest string) (ended func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arrives == nil {
		b.arrives = make(map[string]int)
	}
	b.arrives[digest]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.arrives[digest]--; b.arrives[digest] == 0 {
			delete(b.arrives, digest)
		}
	}
}

// arriving reports whether a blob is on its way here because another coordinator asked for that.
func (b *Blobs) arriving(digest string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrives[digest] > 0
}

// fetch brings a blob into the folder unless it is there and right.
func (b *Blobs) fetch(ctx context.Context, subject, digest string, size int64) error {
	if b.Has(digest) {
		return b.Folder.Renew(digest) // an old one may be about to be deleted
	}
	return b.pull(ctx, subject, digest, size)
}

// pull brings a blob into the folder, in place of what may be there.
func (b *Blobs) pull(ctx context.Context, subject, digest string, size int64) error {
	return b.pullTo(ctx, subject, digest, size, nil)
}

// pullTo is pull, with a copy of the bytes for the caller where it gives memory for one.
func (b *Blobs) pullTo(ctx context.Context, subject, digest string, size int64, copied *copied) error {
	w, err := b.Folder.Writer()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := b.Conn.FetchBlob(ctx, subject, digest, size, &twice{w, copied}); err != nil {
		return err
	}
	_, err = w.Commit(digest)
	return err
}

// twice writes a blob, and a copy where there is memory for one.
type twice struct {
	*blobs.Writer
	copied *copied
}

// Write implements io.Writer.
func (t *twice) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.copied != nil {
		t.copied.add(p[:n])
	}
	return n, err
}

// copied is a copy of a blob's bytes as they come. Memory is taken for what has come, not for what
// somebody says that he has: firstCopied bytes, then twice as much each time, and no more than size while that is enough.
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

// Has reports whether the blob is here and, as this process found when it first
// looked, right; a corrupt one is moved aside.
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

// Writer begins a blob here, which its Commit keeps.
func (b *Blobs) Writer() (*blobs.Writer, error) { return b.Folder.Writer() }

// Put stores a blob here and on enough of the others for a majority.
func (b *Blobs) Put(ctx context.Context, data []byte) (digest string, err error) {
	digest, err = b.Folder.Put(data)
	if err != nil {
		return "", err
	}
	return digest, b.Spread(ctx, digest, uint64(len(data)))
}

// Take fetches a blob from a worker, stores it here and returns its bytes as they came: where it was
// not here before, its file is not read.
func (b *Blobs) Take(ctx context.Context, worker, digest string, size uint64) ([]byte, error) {
	subject := b.Subjects.BlobsOf(worker)
	if b.Has(digest) {
		if err := b.fetch(ctx, subject, digest, int64(size)); err != nil {
			return nil, fmt.Errorf("blob %s from worker %s: %w", digest, worker, err)
		}
		return b.Get(ctx, digest)
	}
	c := &copied{size: int(min(size, math.MaxInt))}
	if err := b.pullTo(ctx, subject, digest, int64(size), c); err != nil {
		return nil, fmt.Errorf("blob %s from worker %s: %w", digest, worker, err)
	}
	return c.bytes, nil
}

// Spread returns once a majority has synced a blob that this folder has, and makes it
// young here. The error wraps blobs.ErrMissing where this folder has it no more.
func (b *Blobs) Spread(ctx context.Context, digest string, size uint64) error {
	if err := b.Folder.Renew(digest); err != nil {
		return fmt.Errorf("blob %s: %w", digest, err)
	}
	voters, rest := b.others()
	need := (len(voters) + 1) / 2 // beside this coordinator
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

// others lists the other coordinators: those that vote, and those that do not yet.
func (b *Blobs) others() (voters, rest []string) {
	if b.Members != nil {
		return b.Members()
	}
	return slices.Clone(b.Peers), nil
}

// ask has a peer fetch a blob. A question or its answer gets lost when NATS
// restarts, so it is asked again, each time with twice the patience.
func (b *Blobs) ask(peer string, req []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var answer []byte
	err := context.DeadlineExceeded
	for wait := firstAsk; errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; wait *= 2 {
		answer, err = b.askOnce(ctx, wait, peer, req)
	}
	if err != nil {
		return fmt.Errorf("coordinator %s: %w", peer, err)
	}
	var reply protocol.Reply
	if err := reply.Decode(answer); err != nil {
		return err
	}
	if reply.Error != "" {
		return fmt.Errorf("coordinator %s: %s", peer, reply.Error)
	}
	return nil
}

// firstAsk is how long the first answer of a peer is waited for.
const firstAsk = protocol.BlobAsk

func (b *Blobs) askOnce(ctx context.Context, wait time.Duration, peer string, req []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return b.Conn.Request(ctx, b.Subjects.Replicate(peer), req)
}

// Get returns a blob, fetched from another coordinator where this one lacks it
// or finds its copy corrupt.
func (b *Blobs) Get(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.Folder.Get(digest)
	if err == nil {
		return data, nil
	}
	if !errors.Is(err, blobs.ErrMissing) {
		b.Log.Warn("a blob cannot be read and is fetched again", "digest", digest, "error", err)
	}
	fetch := b.fetch
	if !absent(err) {
		fetch = b.pull // what is there may be right
	}
	if again := b.fetchFrom(ctx, digest, fetch); again != nil {
		if !absent(err) {
			again = err // it is here, for another try
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

// Fetch brings a blob here from any other coordinator. The error is
// blobs.ErrMissing where each of them said that it does not have it: it is lost.
// While one does not answer, or cannot read its copy, the error wraps bus.ErrNoBlob or that
// of the bus.
func (b *Blobs) Fetch(ctx context.Context, digest string) error {
	return b.fetchFrom(ctx, digest, b.fetch)
}

func (b *Blobs) fetchFrom(ctx context.Context, digest string, fetch func(ctx context.Context, subject, digest string, size int64) error) error {
	var silent error
	voters, rest := b.others()
	for _, peer := range append(voters, rest...) {
		err := fetch(ctx, b.Subjects.BlobsOf(peer), digest, 0)
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

// Receive stores a blob that a client sent and returns once a majority has it. Bytes
// that do not have the digest are refused with blobs.ErrCorrupt.
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
