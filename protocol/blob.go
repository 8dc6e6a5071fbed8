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
func (m *BlobGet) Append(dst []byte) []byte {
	dst = appendText(header(dst, KindBlobGet), m.Digest)
	dst = le.AppendUint64(dst, m.Offset)
	return le.AppendUint32(dst, m.Length)
}

// Decode reads the message.
func (m *BlobGet) Decode(b []byte) error {
	r := read(b, KindBlobGet)
	m.Digest = r.text(64)
	m.Offset, m.Length = r.u64(), uint32(r.count(BlobChunk))
	return r.end()
}

// BlobData answers a BlobGet. Greatest size: BlobChunk + 32 bytes.
type BlobData struct {
	Found      bool
	Unreadable bool   // never with Found: it is there, and cannot be read just now
	Total      uint64 // size of the whole blob
	Data       []byte
}

// unreadable is what stands for Found where a blob cannot be read.
const unreadable = 2

// Append encodes the message.
func (m *BlobData) Append(dst []byte) []byte {
	found := boolByte(m.Found)
	if m.Unreadable {
		found = unreadable
	}
	dst = append(header(dst, KindBlobData), found)
	dst = le.AppendUint64(dst, m.Total)
	return appendBytes(dst, m.Data)
}

// Decode reads the message; Data aliases b.
func (m *BlobData) Decode(b []byte) error {
	r := read(b, KindBlobData)
	found := r.u8()
	if found > unreadable {
		r.fail("the first byte of a blob's chunk is %d, want 0, 1 or %d", found, unreadable)
	}
	m.Found, m.Unreadable = found == 1, found == unreadable
	m.Total, m.Data = r.u64(), r.bytes()
	return r.end()
}
