package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

// fetchSlack is what a fetch allocates however little comes: goroutines, requests,
// the library's buffers.
const fetchSlack = 2 << 20

// FuzzFetchBlob pulls a blob from a node that answers whatever it likes: the first
// request with one text, the others with another. Nothing counts but bytes of the
// digest, and nothing is made of a size that is only claimed.
func FuzzFetchBlob(f *testing.F) {
	s := startServer(f, ServerOptions{Name: "a"})
	server, client := connect(f, Options{Server: s}), connect(f, Options{Server: s})
	var answers atomic.Pointer[[2][]byte]
	var asked atomic.Int32
	_, err := server.Serve("blobs.liar", "", func([]byte) []byte {
		a := answers.Load()
		return a[min(asked.Add(1), 2)-1]
	})
	if err != nil {
		f.Fatal(err)
	}
	piece := func(total uint64, data string) []byte {
		return (&protocol.BlobData{Found: true, Total: total, Data: []byte(data)}).Append(nil)
	}
	f.Add(piece(4, "blob"), []byte{0}, []byte("blob"), int64(4))
	f.Add(piece(1<<40, "blob"), piece(9, "blob"), []byte("blob"), int64(0))
	f.Add(piece(MaxBlob, ""), piece(MaxBlob, ""), []byte("blob"), int64(-1))
	f.Add((&protocol.BlobData{}).Append(nil), []byte{0}, []byte{}, int64(0))
	f.Add((&protocol.BlobData{Unreadable: true}).Append(nil), piece(4, "blob"), []byte("blob"), int64(4))
	f.Add([]byte{0}, []byte{1}, []byte{}, int64(1<<62))
	f.Fuzz(func(t *testing.T, first, rest, want []byte, size int64) {
		if len(first) == 0 || len(rest) == 0 { // an empty message is none
			return
		}
		answers.Store(&[2][]byte{first, rest})
		asked.Store(0)
		sum := sha256.Sum256(want)
		var got bytes.Buffer
		var err error
		allocs.AtMost(t, 64*(len(first)+len(rest))+fetchSlack, "a fetch", func() {
			err = client.FetchBlob(context.Background(), "blobs.liar", hex.EncodeToString(sum[:]), size, &got)
		})
		if err == nil && !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%q came as %q", want, got.Bytes())
		}
		if err != nil && !errors.Is(err, ErrBlob) && !errors.Is(err, ErrNoBlob) && !errors.Is(err, protocol.ErrMessage) {
			t.Fatalf("error %v", err)
		}
	})
}

// FuzzServeBlobs asks a node that has one blob for whatever: it answers with bytes
// of that blob, says that it lacks another, and drops what is no request.
func FuzzServeBlobs(f *testing.F) {
	s := startServer(f, ServerOptions{Name: "a"})
	server := connect(f, Options{Server: s})
	h := holds{}
	data := message(1<<10, 1)
	digest := h.put(data)
	lack := func(Message, error) []byte { return (&protocol.BlobData{}).Append(nil) }
	get := func(digest string, offset uint64, length uint32) []byte {
		return (&protocol.BlobGet{Digest: digest, Offset: offset, Length: length}).Append(nil)
	}
	f.Add(get(digest, 0, protocol.BlobChunk))
	f.Add(get(digest, 1<<63, 1))
	f.Add(get(digest, 1023, 9))
	f.Add(get("../../etc/passwd", 0, 9))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var answer []byte
		allocs.AtMost(t, 16*len(b)+64<<10, "a request", func() {
			answer = server.chunk(Message{Subject: "blobs.a", Data: b}, h.open, lack)
		})
		var m protocol.BlobGet
		if err := m.Decode(b); err != nil {
			if answer != nil {
				t.Fatalf("%x is answered with %x", b, answer)
			}
			return
		}
		var p protocol.BlobData
		if err := p.Decode(answer); err != nil || p.Found != (m.Digest == digest) {
			t.Fatalf("piece %+v, error %v", p, err)
		}
		from := min(m.Offset, uint64(len(data)))
		if due := data[from:min(from+uint64(m.Length), uint64(len(data)))]; p.Found && !bytes.Equal(p.Data, due) {
			t.Fatalf("%d bytes at %d where %d are due", len(p.Data), m.Offset, len(due))
		}
	})
}
