package protocol

// Checkpoint hands back the trainer state of a child job that a worker runs, now
// and then, so that another worker can go on from there. Greatest size:
// MaxMessage.
type Checkpoint struct {
	Stamp
	Worker string
	Unit   uint32
	Resume
}

// Resume is where a child job goes on: the payload of its unit in a Run, empty at
// its beginning.
type Resume struct {
	Rounds uint64 // folded into State
	State  []byte // of the child's trainer
}

// Append encodes the message.
func (m *Checkpoint) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindCheckpoint))
	dst = appendText(dst, m.Worker)
	dst = le.AppendUint32(dst, m.Unit)
	return m.Resume.Append(dst)
}

// Decode reads the message; State aliases b.
func (m *Checkpoint) Decode(b []byte) error {
	r := read(b, KindCheckpoint)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Unit = r.u32()
	m.Resume = Resume{r.u64(), r.bytes()}
	return r.end()
}

// Append encodes the payload.
func (p *Resume) Append(dst []byte) []byte {
	return appendBytes(le.AppendUint64(dst, p.Rounds), p.State)
}

// Decode reads the payload; State aliases b.
func (p *Resume) Decode(b []byte) error {
	r := &reader{b: b}
	p.Rounds, p.State = r.u64(), r.bytes()
	return r.end()
}
