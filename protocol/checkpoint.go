package protocol

// Checkpoint hands back the trainer state of a sub-job that a worker runs, now
// and then, so that another worker can go on from there. Greatest size:
// MaxMessage.
type Checkpoint struct {
	Stamp
	Worker string
	Task   uint32
	Resume
}

// Resume is where a sub-job goes on: the payload of its task in a Run, empty at
// its beginning.
type Resume struct {
	Rounds uint64 // folded into State
	State  []byte // of the child's trainer
	Curve  []byte // encoded, of the rounds so far; empty: none
}

// Append encodes the message.
func (m *Checkpoint) Append(dst []byte) []byte {
	dst = m.Stamp.append(header(dst, KindCheckpoint))
	dst = appendText(dst, m.Worker)
	dst = le.AppendUint32(dst, m.Task)
	return m.Resume.Append(dst)
}

// Decode reads the message; State and Curve alias b.
func (m *Checkpoint) Decode(b []byte) error {
	r := read(b, KindCheckpoint)
	m.Stamp = r.stamp()
	m.Worker = r.text(MaxText)
	m.Task = r.u32()
	m.Resume = Resume{r.u64(), r.bytes(), r.bytes()}
	return r.end()
}

// Append encodes the payload.
func (p *Resume) Append(dst []byte) []byte {
	dst = appendBytes(le.AppendUint64(dst, p.Rounds), p.State)
	return appendBytes(dst, p.Curve)
}

// Decode reads the payload; State and Curve alias b.
func (p *Resume) Decode(b []byte) error {
	r := &reader{b: b}
	p.Rounds, p.State, p.Curve = r.u64(), r.bytes(), r.bytes()
	return r.end()
}
