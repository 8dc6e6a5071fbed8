package protocol

import "crypto/sha256"

// Chunk gives a worker one piece of a value that has several, or names one that the worker made
// itself and may still have: the result of a collected task. It is sent to workers only whose
// Beat says Pieces. Greatest size: MaxMessage.
type Chunk struct {
	Epoch uint64
	Job   uint64
	Ref
	Index uint32 // of the piece
	Of    uint32 // pieces of the value, at most MaxTasks
	// Digest is the SHA-256 of the bytes, in hex.
	Digest string
	// Here says that Data has the bytes; else it is empty.
	Here bool
	Data []byte
}

// Append encodes the message.
func (m *Chunk) Append(dst []byte) []byte {
	dst = header(dst, KindChunk)
	dst = le.AppendUint64(dst, m.Epoch)
	dst = le.AppendUint64(dst, m.Job)
	dst = le.AppendUint16(dst, m.ID)
	dst = le.AppendUint64(dst, m.Version)
	dst = le.AppendUint32(dst, m.Index)
	dst = le.AppendUint32(dst, m.Of)
	dst = append(appendText(dst, m.Digest), boolByte(m.Here))
	return appendBytes(dst, m.Data)
}

// Decode reads the message; Data aliases b.
func (m *Chunk) Decode(b []byte) error {
	r := read(b, KindChunk)
	m.Epoch, m.Job = r.u64(), r.u64()
	m.ID, m.Version = r.u16(), r.u64()
	m.Index, m.Of = r.u32(), uint32(r.count(MaxTasks))
	m.Digest, m.Here = r.text(2*sha256.Size), r.flag()
	m.Data = r.bytes()
	if r.err == nil && (m.Index >= m.Of || !m.Here && len(m.Data) > 0) {
		r.fail("a chunk of a value is not valid: chunk %d of %d, %d bytes, included in the message: %v", m.Index, m.Of, len(m.Data), m.Here)
	}
	return r.end()
}
