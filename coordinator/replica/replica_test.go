package replica

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestPutReachesAMajority: with all up, with one of three down, and alone.
func TestPutReachesAMajority(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	data := bytesOf(3*protocol.BlobChunk+17, 1)
	digest, err := a.Put(testkit.Context(t), data)
	if err != nil || digest != blobs.Sum(data) {
		t.Fatalf("digest %s, error %v", digest, err)
	}
	if n := holders(members, digest); n < 2 || !a.Folder.Has(digest) {
		t.Errorf("%d of 3 have the blob when Put returns", n)
	}
	testkit.Until(t, "the third copy", func() bool { return holders(members, digest) == 3 })

	members[1].down()
	soon(t, "Put with one coordinator down", func() {
		digest, err = a.Put(testkit.Context(t), bytesOf(1000, 2))
	})
	if err != nil || holders(members, digest) != 2 {
		t.Errorf("one of three down: %d have the blob, error %v", holders(members, digest), err)
	}

	alone := cluster(t, 1)[0]
	if digest, err = alone.Put(testkit.Context(t), data); err != nil || !alone.Folder.Has(digest) {
		t.Errorf("a single coordinator: error %v", err)
	}
}

// TestNoMajorityIsSaid at once, and a blob put then counts only once Spread has found a majority later.
func TestNoMajorityIsSaid(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	members[1].down()
	members[2].down()
	data := bytesOf(1000, 1)
	var digest string
	var err error
	soon(t, "Put with two of three down", func() { digest, err = a.Put(testkit.Context(t), data) })
	if !errors.Is(err, ErrNoMajority) {
		t.Fatalf("error %v", err)
	}
	if n := holders(members[1:], digest); n != 0 {
		t.Errorf("%d coordinators that are down have the blob", n)
	}
	if err := a.Receive(testkit.Context(t), digest, sent(t, a, data)); !errors.Is(err, ErrNoMajority) {
		t.Errorf("a client's blob: error %v", err)
	}
	members[2].serve(t)
	testkit.Until(t, "a majority", func() bool { return a.Spread(testkit.Context(t), digest, uint64(len(data))) == nil })
	if n := holders(members, digest); n != 2 {
		t.Errorf("%d have the blob, want 2", n)
	}
}

// TestSlowPeersAreNotWaitedFor once a majority is there; ctx ends the wait for one.
func TestSlowPeersAreNotWaitedFor(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	members[1].down()
	deaf(t, members[1].Conn, subjects.Replicate("b"))
	soon(t, "Put with a deaf coordinator", func() {
		if _, err := a.Put(testkit.Context(t), bytesOf(10, 1)); err != nil {
			t.Error(err)
		}
	})
	members[2].down()
	asked := deaf(t, members[2].Conn, subjects.Replicate("c"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := a.Put(ctx, bytesOf(10, 2))
		done <- err
	}()
	testkit.Receive(t, "the request", asked)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestPeersThatCannotStore do not count, and their reason is told.
func TestPeersThatCannotStore(t *testing.T) {
	members := cluster(t, 3)
	for _, m := range members[1:] {
		remove(t, m.Folder)
	}
	_, err := members[0].Put(testkit.Context(t), bytesOf(10, 1))
	if !errors.Is(err, ErrNoMajority) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
	here := cluster(t, 1)[0]
	remove(t, here.Folder)
	if _, err := here.Put(testkit.Context(t), nil); err == nil || errors.Is(err, ErrNoMajority) {
		t.Errorf("a folder that is gone here: error %v", err)
	}
}

// remove removes a folder that is in use.
func remove(t *testing.T, f *blobs.Folder) {
	t.Helper()
	if err := testkit.RemoveInUse(f.Dir()); err != nil {
		t.Fatal(err)
	}
}

// TestSharedSubjectFindsWhoHasIt checks that a worker that asks all coordinators by one subject gets a blob that only
// one of them has.
func TestSharedSubjectFindsWhoHasIt(t *testing.T) {
	members := cluster(t, 3)
	data := bytesOf(2*protocol.BlobChunk+5, 1)
	digest, err := members[2].Folder.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members { // a worker may be connected to any server
		worker := natstest.Connect(t, m.server)
		for range 5 {
			if got, err := pull(t, worker, subjects.Fetch("w1"), digest); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, error %v", len(got), err)
			}
		}
	}
}

// TestOwnSubjectSaysNoAtOnce checks that a coordinator that lacks the blob says so at once.
func TestOwnSubjectSaysNoAtOnce(t *testing.T) {
	members := cluster(t, 2)
	soon(t, "asking for a blob that is not there", func() {
		if _, err := pull(t, members[0].Conn, subjects.CoordinatorBlobs("b"), blobs.Sum(nil)); !errors.Is(err,
			bus.ErrNoBlob) {
			t.Errorf("error %v", err)
		}
	})
}

// spoil changes a byte of a blob's file.
func spoil(t *testing.T, f *blobs.Folder, digest string) {
	t.Helper()
	path, err := f.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCorruptCopyIsFetchedAgain, the bad file is kept aside, and a blob that nobody has is ErrMissing or ErrNoBlob.
func TestCorruptCopyIsFetchedAgain(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	data := bytesOf(5000, 1)
	digest, err := a.Put(testkit.Context(t), data)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "three copies", func() bool { return holders(members, digest) == 3 })
	spoil(t, a.Folder, digest)
	if got, err := a.Get(testkit.Context(t), digest); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, error %v", len(got), err)
	}
	path, _ := a.Folder.Path(digest)
	if _, err := os.Stat(path + ".corrupt"); err != nil {
		t.Errorf("the corrupt file was not kept: %v", err)
	}
	if n := holders(members, digest); n != 3 {
		t.Errorf("%d good copies afterwards", n)
	}
	if err := a.Folder.Delete(digest); err != nil {
		t.Fatal(err)
	}
	members[1].down() // the first to be asked is not there
	if got, err := a.Get(testkit.Context(t), digest); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a lost copy: %d bytes, error %v", len(got), err)
	}
	if _, err := a.Get(testkit.Context(t), blobs.Sum([]byte("nobody's"))); !errors.Is(err, bus.ErrNoBlob) {
		t.Errorf("nobody's blob: error %v", err)
	}
	if _, err := cluster(t, 1)[0].Get(testkit.Context(t), digest); !errors.Is(err, blobs.ErrMissing) {
		t.Errorf("a single coordinator: error %v", err)
	}
}

// TestCorruptCopyDoesNotCount checks that a peer with a corrupt file fetches the blob again, and does not say that it
// has it.
func TestCorruptCopyDoesNotCount(t *testing.T) {
	members := cluster(t, 3)
	data := bytesOf(5000, 1)
	for _, m := range members[1:] {
		digest, err := m.Folder.Put(data)
		if err != nil {
			t.Fatal(err)
		}
		spoil(t, m.Folder, digest)
		m.down() // a restart: what was found right before is forgotten
		if m.Folder, err = blobs.Open(m.Folder.Dir()); err != nil {
			t.Fatal(err)
		}
		m.serve(t)
	}
	digest, err := members[0].Put(testkit.Context(t), data)
	if err != nil {
		t.Fatal(err)
	}
	if n := holders(members, digest); n < 2 {
		t.Errorf("%d good copies when Put returns", n)
	}
}

// TestReceiveChecksTheDigest checks that wrong bytes are refused, and that nothing is stored or lost, not even the blob
// with the digest of these bytes.
func TestReceiveChecksTheDigest(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	data, other := bytesOf(500, 1), bytesOf(500, 2)
	kept, err := a.Put(testkit.Context(t), data)
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{blobs.Sum(other), "", "../../etc/passwd", strings.ToUpper(kept)} {
		if err := a.Receive(testkit.Context(t), digest, sent(t, a, data)); !errors.Is(err, blobs.ErrCorrupt) {
			t.Errorf("digest %.20q: error %v", digest, err)
		}
	}
	if !a.Folder.Has(kept) || a.Folder.Has(blobs.Sum(other)) {
		t.Error("a refusal changed what is stored")
	}
	if err := a.Receive(testkit.Context(t), blobs.Sum(other), sent(t, a, other)); err != nil ||
		holders(members, blobs.Sum(other)) < 2 {
		t.Errorf("the right bytes: error %v", err)
	}
}

// served is a worker's results: blobs by digest, right or not.
type served map[string][]byte

type open struct{ *bytes.Reader }

func (open) Close() error { return nil }

func (s served) open(digest string) (bus.Blob, error) {
	b, ok := s[digest]
	if !ok {
		return nil, bus.ErrNoBlob
	}
	return open{bytes.NewReader(b)}, nil
}

// TestTakeFromAWorker stores one copy, that Spread makes a majority; of wrong bytes, none.
func TestTakeFromAWorker(t *testing.T) {
	members := cluster(t, 3)
	a := members[0]
	part, lie, large := bytesOf(protocol.BlobChunk+1, 1), bytesOf(70, 2), bytesOf(firstCopied+1, 3)
	good, bad := blobs.Sum(part), blobs.Sum([]byte("something else"))
	worker := natstest.Connect(t, members[2].server)
	s, err := bus.ServeBlobs(worker, subjects.WorkerBlobs("w1"), "",
		served{good: part, bad: lie, blobs.Sum(large): large}.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	testkit.Until(t, "the worker", func() bool {
		_, err := pull(t, a.Conn, subjects.WorkerBlobs("w1"), good)
		return err == nil
	})
	for _, way := range []string{"fetched", "here already"} {
		for _, want := range [][]byte{part, large} {
			digest := blobs.Sum(want)
			got, err := a.Take(testkit.Context(t), "w1", digest, uint64(len(want)))
			if err != nil || !bytes.Equal(got, want) || holders(members, digest) != 1 || !a.Folder.Has(digest) {
				t.Errorf("%s: %d bytes, %d have the part, error %v", way, len(got), holders(members, digest), err)
			}
		}
	}
	if err := a.Spread(testkit.Context(t), good, uint64(len(part))); err != nil || holders(members, good) < 2 {
		t.Errorf("%d have the part, error %v", holders(members, good), err)
	}
	for what, c := range map[string]struct {
		digest string
		size   uint64
		want   error
	}{
		"wrong bytes":           {bad, uint64(len(lie)), bus.ErrBlob},
		"another size":          {blobs.Sum(lie), 9, bus.ErrNoBlob},
		"a part that it lacks":  {blobs.Sum(lie), 70, bus.ErrNoBlob},
		"no such worker's part": {bad, 1, bus.ErrBlob},
	} {
		if _, err := a.Take(testkit.Context(t), "w1", c.digest, c.size); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), "worker w1") {
			t.Errorf("%s: error %v", what, err)
		}
		if holders(members, c.digest) != 0 {
			t.Errorf("%s was stored", what)
		}
	}
	left, err := filepath.Glob(filepath.Join(a.Folder.Dir(), "tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("unfinished files remain: %v", left)
	}
}

// TestCopied: a copy's memory follows what has come, whatever the size that was said, and is that size in the end if it
// was true.
func TestCopied(t *testing.T) {
	const piece = 300_000
	for _, said := range []int{0, 5, 3*firstCopied + 7, 1 << 40} {
		c, want := &copied{size: said}, bytesOf(3*firstCopied+7, 4)
		for at := 0; at < len(want); at += piece {
			c.add(want[at:min(at+piece, len(want))])
			if cap(c.bytes) > max(firstCopied, 2*len(c.bytes)) {
				t.Errorf("%d bytes were said: memory of %d for %d", said, cap(c.bytes), len(c.bytes))
			}
		}
		if !bytes.Equal(c.bytes, want) || said == len(want) && cap(c.bytes) != said {
			t.Errorf("%d bytes were said: %d bytes in memory of %d", said, len(c.bytes), cap(c.bytes))
		}
	}
}

// TestStopDoesNotWait checks that stop does not wait for a blob that another coordinator asked for and a third one does
// not send.
func TestStopDoesNotWait(t *testing.T) {
	members := cluster(t, 2)
	a, b := members[0], members[1]
	asked := deaf(t, a.Conn, subjects.CoordinatorBlobs("ghost"))
	done := make(chan error, 1)
	go func() {
		_, err := a.Conn.Request(testkit.Context(t), subjects.Replicate("b"),
			(&protocol.Replicate{Digest: blobs.Sum(nil), From: "ghost"}).Append(nil))
		done <- err
	}()
	testkit.Receive(t, "b's request for the blob", asked)
	soon(t, "stopping", func() {
		b.down()
		b.Conn.Close()
	})
	a.Conn.Close()
	<-done
}

// TestDamagedRequestsAreAnswered with an error.
func TestDamagedRequestsAreAnswered(t *testing.T) {
	members := cluster(t, 1)
	for _, req := range [][]byte{nil, {protocol.Version, byte(protocol.KindReplicate), '{'},
		(&protocol.Replicate{Digest: "no digest", From: "a"}).Append(nil)} {
		answer, err := members[0].Conn.Request(testkit.Context(t), subjects.Replicate("a"), req)
		if err != nil {
			t.Fatal(err)
		}
		var reply protocol.Reply
		if err := reply.Decode(answer); err != nil || reply.Error == "" {
			t.Errorf("request %q: reply %+v, error %v", req, reply, err)
		}
	}
}

// TestPutMakesOldCopiesYoung everywhere: a blob that is put again while it waits to be deleted for its age must stay.
func TestPutMakesOldCopiesYoung(t *testing.T) {
	members := cluster(t, 3)
	data := bytesOf(1000, 1)
	old := time.Now().Add(-2 * time.Hour)
	var paths []string
	for _, m := range members {
		digest, err := m.Folder.Put(data)
		if err != nil {
			t.Fatal(err)
		}
		path, err := m.Folder.Path(digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if _, err := members[0].Put(testkit.Context(t), data); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "three young copies", func() bool {
		young := 0
		for _, path := range paths {
			if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) < time.Hour {
				young++
			}
		}
		return young == 3
	})
}

// TestLostQuestionIsAskedAgain: what NATS loses when it restarts does not hold a Put up for half a minute.
func TestLostQuestionIsAskedAgain(t *testing.T) {
	members := cluster(t, 3)
	members[1].down()
	members[2].down()
	var asked, lost atomic.Int32
	sub, err := members[1].Conn.Serve(subjects.Replicate("b"), "", func(req []byte) []byte {
		if asked.Add(1) == lost.Load() {
			return nil
		}
		return members[1].onReplicate(testkit.Context(t), req)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	testkit.Until(t, "b to serve", func() bool {
		return members[0].ask("b", nil, protocol.BlobCopy) != nil && asked.Load() > 0
	})
	asked.Store(0)
	lost.Store(1)
	data := bytesOf(10, 1)
	digest, err := members[0].Put(testkit.Context(t), data)
	if err != nil || !members[1].Folder.Has(digest) || asked.Load() != 2 {
		t.Errorf("asked %d times, error %v", asked.Load(), err)
	}
}

// holding is a network on which every request waits until it is released, and is answered with a piece then.
type holding struct {
	bus.Link
	asked   atomic.Int64
	release chan struct{}
	chunk   protocol.BlobData
}

func (h *holding) Connected() bool { return true }

func (h *holding) MaxPayload() int { return 1 << 20 }

func (h *holding) Request(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	h.asked.Add(1)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.release:
		return h.chunk.Append(nil), nil
	}
}

// TestAskedAgain: a coordinator that is asked for a copy again while it is on its way, as over a thin link, fetches it
// once.
func TestAskedAgain(t *testing.T) {
	data := bytesOf(1000, 3)
	digest := blobs.Sum(data)
	request := (&protocol.Replicate{Digest: digest, Bytes: uint64(len(data)), From: "w9"}).Append(nil)
	folder := openFolder(t)
	synctest.Test(t, func(t *testing.T) {
		link := &holding{release: make(chan struct{}), chunk: protocol.BlobData{Found: true, Total: uint64(len(data)),
			Data: data}}
		log := slog.New(slog.DiscardHandler)
		b := &Blobs{Self: "a", Folder: folder, Conn: bus.New(link, bus.Options{Log: log}), Subjects: subjects, Log: log}
		answers := make(chan []byte, 3)
		for range cap(answers) {
			go func() { answers <- b.onReplicate(t.Context(), request) }()
		}
		synctest.Wait() // each has asked, or waits for another that has
		if n := link.asked.Load(); n != 1 {
			t.Errorf("the blob was asked for %d times", n)
		}
		close(link.release)
		for range cap(answers) {
			var reply protocol.Reply
			if err := reply.Decode(<-answers); err != nil || reply.Error != "" {
				t.Errorf("%v %s", err, reply.Error)
			}
		}
		if n := link.asked.Load(); n != 1 || !folder.Has(digest) {
			t.Errorf("the blob was asked for %d times", n)
		}
	})
}
