package protocol

// BlobGet asks for bytes [Offset, Offset+Length) of a blob, Length at most
// BlobChunk. Who lacks the blob answers with Found false, or, on the subject that
// all coordinators share, not at all.
type BlobGet struct {
	Digest string // SHA-256 in hex
	Offset uint64
	Length uint32
}

// Append encodes the message.
func (m *BlobGet) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message.
func (m *BlobGet) Decode(b []byte) error {
	c := m.code(coder{b: b, reads: true})
	return c.end()
}

func (m *BlobGet) code(c coder) coder {
	c.begin(KindBlobGet)
	c.text(&m.Digest, 64)
	number(&c, &m.Offset)
	count(&c, &m.Length, BlobChunk)
	return c
}

// BlobData answers a BlobGet. Greatest size: BlobChunk + 32 bytes.
type BlobData struct {
	Found      bool
	Unreadable bool   // never with Found: it is there, and cannot be read just now
	Total      uint64 // size of the whole blob
	Data       []byte
}

// Append encodes the message.
func (m *BlobData) Append(dst []byte) []byte { return m.code(coder{b: dst}).b }

// Decode reads the message. Data shares the memory of b.
func (m *BlobData) Decode(b []byte) error {
	c := m.code(coder{b: b, reads: true})
	return c.end()
}

func (m *BlobData) code(c coder) coder {
	const found, unreadable = 1, 2
	var state uint8
	switch {
	case m.Unreadable:
		state = unreadable
	case m.Found:
		state = found
	}
	c.begin(KindBlobData)
	if number(&c, &state); c.reads {
		m.Found, m.Unreadable = state == found, state == unreadable
	}
	if state > unreadable {
		c.fail("the first byte of a blob's chunk is %d, want 0, 1 or %d", state, unreadable)
	}
	number(&c, &m.Total)
	c.bytes(&m.Data)
	return c
}

// Replicate asks a coordinator to fetch a blob from another and to sync it; the
// reply comes once it is on disk.
type Replicate struct {
	Digest string `json:"digest"`
	Bytes  uint64 `json:"bytes"`
	From   string `json:"from"` // the node whose BlobsOf subject has it
}

// Append encodes the message.
func (m *Replicate) Append(dst []byte) []byte { return appendJSON(dst, KindReplicate, m) }

// Decode reads the message.
func (m *Replicate) Decode(b []byte) error { return readJSON(b, KindReplicate, m) }

// Reply answers a request: an empty Error is success.
type Reply struct {
	Error string `json:"error,omitempty"`
}

// Append encodes the message.
func (m *Reply) Append(dst []byte) []byte { return appendJSON(dst, KindReply, m) }

// Decode reads the message.
func (m *Reply) Decode(b []byte) error { return readJSON(b, KindReply, m) }
