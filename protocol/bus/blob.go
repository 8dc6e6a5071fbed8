package bus

import (
	"errors"
	"io"

	"github.com/coppice-ldl/coppice/protocol"
)

// Blob is an open blob.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// elsewhere is appended to a shared subject: who is asked for a blob that it
// lacks passes the request on, there, to all. No node can have this name.
const elsewhere = ".$all"

// Served is what ServeBlobs serves until closed.
type Served struct{ subs []*Subscription }

// Close stops to serve.
func (s *Served) Close() {
	for _, sub := range s.subs {
		sub.Close()
	}
}

// ServeBlobs answers BlobGet requests on subject with the blobs that open finds. An
// error of open that wraps ErrNoBlob says that the blob is not there. With any other it
// may be there and cannot be read just now, which is the answer then, or the request is
// passed on to all.
// Where queue is empty the subject is one node's own, and a blob that is not
// there is answered with Found false. Where it is not, the members of the group
// share the subject: NATS asks any one, which passes the request on to all if it
// lacks the blob; who has it answers. If its error wraps ErrNobody as well it is not passed
// on, and the answer is that the blob is not found.
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
			if err := c.publish(subject+elsewhere, m.Reply, m.Data); err != nil {
				c.log.Warn("a request could not be forwarded", "subject", subject, "error", err)
			}
			return nil
		}
		all := func(m Message) []byte {
			return c.chunk(m, open, func(Message, error) []byte { return nil })
		}
		if err := s.add(c.serve(subject+elsewhere, "", all)); err != nil {
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

// piece returns the answer to a BlobGet, nil for none. lack returns that of who cannot send the
// blob, for the reason err.
func (c *Conn) chunk(m Message, open func(string) (Blob, error), lack func(m Message, err error) []byte) []byte {
	var get protocol.BlobGet
	if err := get.Decode(m.Data); err != nil {
		c.log.Warn("a request was dropped", "subject", m.Subject, "error", err)
		return nil
	}
	b, err := open(get.Digest)
	if errors.Is(err, ErrNoBlob) {
		return lack(m, err)
	}
	var piece []byte
	if err == nil {
		defer b.Close()
		piece, err = readChunk(b, &get)
	}
	if err != nil {
		c.log.Warn("a blob cannot be read", "digest", get.Digest, "error", err)
		return lack(m, err)
	}
	return piece
}

// readPiece encodes the bytes that get asks for; beyond the blob's end there are
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
