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

// BlobPiece answers a BlobGet. Greatest size: BlobChunk + 32 bytes.
type BlobPiece struct {
	Found bool
	Total uint64 // size of the whole blob
	Data  []byte
}

// Append encodes the message.
func (m *BlobPiece) Append(dst []byte) []byte {
	dst = append(header(dst, KindBlobPiece), boolByte(m.Found))
	dst = le.AppendUint64(dst, m.Total)
	return appendBytes(dst, m.Data)
}

// Decode reads the message; Data aliases b.
func (m *BlobPiece) Decode(b []byte) error {
	r := read(b, KindBlobPiece)
	m.Found, m.Total, m.Data = r.flag(), r.u64(), r.bytes()
	return r.end()
}
