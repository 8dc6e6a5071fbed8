package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// memory is a Blob in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// holds serves blobs from memory.
type holds map[string][]byte

func (h holds) open(digest string) (Blob, error) {
	b, ok := h[digest]
	if !ok {
		return nil, ErrNoBlob
	}
	return memory{bytes.NewReader(b)}, nil
}

func (h holds) put(b []byte) string {
	s := sha256.Sum256(b)
	d := hex.EncodeToString(s[:])
	h[d] = b
	return d
}

func serveBlobs(t testing.TB, c *Conn, subject, queue string, open func(string) (Blob, error)) {
	t.Helper()
	if _, err := ServeBlobs(c, subject, queue, open); err != nil {
		t.Fatal(err)
	}
}

func TestFetchBlob(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	for _, n := range []int{0, 1, protocol.BlobChunk - 1, protocol.BlobChunk, protocol.BlobChunk + 1, 20 << 20} {
		h.put(message(n+2, byte(n))[2:])
	}
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", h.open)
	c := connect(t, Options{URLs: []string{s.ClientURL()}})
	for d, b := range h {
		for _, size := range []int64{0, int64(len(b))} {
			if size > 1<<20 {
				continue // once is enough
			}
			var got bytes.Buffer
			if err := c.FetchBlob(within(t), "blobs.a", d, size, &got); err != nil {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			if !bytes.Equal(got.Bytes(), b) {
				t.Errorf("%d bytes changed", len(b))
			}
		}
	}
}

// sums is a Summer; lie is what it says of what was written.
type sums struct {
	bytes.Buffer
	lie string
}

func (s *sums) Digest() string {
	sum := sha256.Sum256(s.Bytes())
	return cmp.Or(s.lie, hex.EncodeToString(sum[:]))
}

// A writer that sums what it is given is believed, and the digest is compared all the same.
func TestFetchBlobToASummer(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	good := h.put(message(1<<20, 1))
	bad := strings.Repeat("0", 64)
	h[bad] = message(1<<20, 1) // under a name not its own
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", h.open)
	c := connect(t, Options{Server: s})
	var got sums
	if err := c.FetchBlob(within(t), "blobs.a", good, 0, &got); err != nil || !bytes.Equal(got.Bytes(), h[good]) {
		t.Errorf("%d bytes, error %v", got.Len(), err)
	}
	for name, w := range map[string]*sums{bad: {}, good: {lie: bad}} {
		if err := c.FetchBlob(within(t), "blobs.a", name, 0, w); !errors.Is(err, ErrBlob) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFetchBlobRefuses(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	d := h.put(message(1<<20, 1))
	h[strings.Repeat("0", 64)] = message(1<<20, 1) // under a name not its own
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", h.open)
	c := connect(t, Options{Server: s})
	for _, x := range []struct {
		name, subject, digest string
		size                  int64
		want                  error
	}{
		{"not there", "blobs.a", strings.Repeat("1", 64), 0, ErrNoBlob},
		{"nobody serves", "blobs.b", d, 0, ErrNoBlob},
		{"other bytes", "blobs.a", strings.Repeat("0", 64), 1 << 20, ErrBlob},
		{"other size", "blobs.a", d, 1<<20 + 1, ErrBlob},
	} {
		err := c.FetchBlob(within(t), x.subject, x.digest, x.size, new(bytes.Buffer))
		if !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.digest) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
}

// A full disk ends the pull with the writer's error, and no request stays behind.
func TestFetchBlobWriterFails(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	d := h.put(message(8<<20, 1))
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", h.open)
	c := connect(t, Options{Server: s})
	w := &fullDisk{room: 1 << 20}
	if err := c.FetchBlob(within(t), "blobs.a", d, 0, w); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{ room int }

func (w *fullDisk) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// Pieces that get lost are asked for again.
func TestFetchBlobLosesChunks(t *testing.T) {
	t.Parallel() // it waits
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	b := message(4<<20, 1)
	d := h.put(b)
	server := connect(t, Options{Server: s})
	var asked atomic.Int64
	if _, err := server.Serve("blobs.a", "", func(req []byte) []byte {
		if asked.Add(1)%9 == 0 {
			return nil
		}
		var get protocol.BlobGet
		if err := get.Decode(req); err != nil {
			t.Error(err)
		}
		piece, err := readChunk(memory{bytes.NewReader(h[get.Digest])}, &get)
		if err != nil {
			t.Error(err)
		}
		return piece
	}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, Options{Server: s})
	var got bytes.Buffer
	if err := c.FetchBlob(within(t), "blobs.a", d, int64(len(b)), &got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), b) || asked.Load() <= 16 {
		t.Errorf("%d bytes by %d requests", got.Len(), asked.Load())
	}
}

// What cannot be read is asked for again, and is not taken for missing if that does not help.
func TestFetchBlobThatCannotBeRead(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	d := h.put(message(1<<10, 1))
	var failures atomic.Int64
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", func(digest string) (Blob, error) {
		if failures.Add(-1) >= 0 {
			return nil, errFull
		}
		return h.open(digest)
	})
	c := connect(t, Options{Server: s})
	failures.Store(chunkTries - 1)
	var got bytes.Buffer
	if err := c.FetchBlob(within(t), "blobs.a", d, 0, &got); err != nil || !bytes.Equal(got.Bytes(), h[d]) {
		t.Errorf("read at the last try: %d bytes, error %v", got.Len(), err)
	}
	failures.Store(chunkTries)
	err := c.FetchBlob(within(t), "blobs.a", d, 0, new(bytes.Buffer))
	if !errors.Is(err, ErrUnreadable) || !errors.Is(err, ErrNoBlob) || errors.Is(err, ErrNoAnswer) {
		t.Errorf("never read: %v", err)
	}
	err = c.FetchBlob(within(t), "blobs.a", strings.Repeat("1", 64), 0, new(bytes.Buffer))
	if !errors.Is(err, ErrNoBlob) || errors.Is(err, ErrUnreadable) {
		t.Errorf("not there: %v", err)
	}
}

// The members of a group are one store: whoever is asked first need not have the
// blob, and that costs no further request.
func TestFetchBlobFromAnyMember(t *testing.T) {
	sa, sb := pair(t)
	ha, hb := holds{}, holds{}
	b := message(leastChunk, 1)
	d := hb.put(b)
	serveBlobs(t, connect(t, Options{Server: sa}), "blobs", "coordinators", ha.open)
	serveBlobs(t, connect(t, Options{Server: sb}), "blobs", "coordinators", hb.open)
	var n counts
	c := connect(t, Options{Server: sa, Traffic: &n})
	var got bytes.Buffer
	request := (&protocol.BlobGet{Digest: d}).Append(nil)
	const pulls = 16
	eventually(t, "no request without an answer", func() bool { // subscriptions take a moment to cross
		before := n.sent.Load()
		for range pulls {
			got.Reset()
			if c.FetchBlob(within(t), "blobs", d, 0, &got) != nil {
				return false
			}
		}
		return n.sent.Load()-before == int64(pulls*len(request)) // of a single piece each
	})
	if !bytes.Equal(got.Bytes(), b) {
		t.Error("wrong bytes")
	}
}

// A pull outlives the restart of the server.
func TestFetchBlobWaitsForServer(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	port, u := s.ClientPort(), s.ClientURL()
	h := holds{}
	b := message(8<<20, 1)
	d := h.put(b)
	serveBlobs(t, connect(t, Options{URLs: []string{u}}), "blobs.a", "", h.open)
	var n counts
	c := connect(t, Options{URLs: []string{u}, Traffic: &n})
	s.Close()
	eventually(t, "connection lost", func() bool { return n.disconnected.Load() == 1 })
	fetched := make(chan error, 1)
	var got bytes.Buffer
	go func() { fetched <- c.FetchBlob(within(t), "blobs.a", d, 0, &got) }()
	startServer(t, ServerOptions{Name: "a", ClientPort: port})
	if err := <-fetched; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), b) {
		t.Error("wrong bytes")
	}
}

func TestFetchBlobEndsWithItsContext(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	server := connect(t, Options{Server: s})
	if _, err := server.Serve("mute", "", func([]byte) []byte { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	c := connect(t, Options{Server: s})
	if err := c.FetchBlob(ctx, "mute", strings.Repeat("0", 64), 0, new(bytes.Buffer)); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
