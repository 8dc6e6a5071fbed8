package protocol

// Bundle is messages for one worker that come as one, to be taken in order: what takes them is woken
// once. It is sent to workers only whose Beat says Bundles. Greatest size: MaxMessage.
type Bundle struct {
	Messages [][]byte // one at least; none is a Bundle
}

// bundleHead is the size of what comes before the first message: version, kind and count.
const bundleHead = 2 + 4

// BeginBundle begins a bundle without messages in the memory of dst.
func BeginBundle(dst []byte) []byte { return le.AppendUint32(header(dst[:0], KindBundle), 0) }

// AddToBundle adds a message to a bundle.
func AddToBundle(bundle []byte, m interface{ Append([]byte) []byte }) []byte {
	at := len(bundle)
	bundle = m.Append(le.AppendUint64(bundle, 0))
	le.PutUint64(bundle[at:], uint64(len(bundle)-at-8))
	le.PutUint32(bundle[2:], le.Uint32(bundle[2:])+1)
	return bundle
}

// OnlyInBundle returns the message of a bundle that has one.
func OnlyInBundle(bundle []byte) []byte { return bundle[bundleHead+8:] }

// Append encodes the message.
func (m *Bundle) Append(dst []byte) []byte {
	dst = le.AppendUint32(header(dst, KindBundle), uint32(len(m.Messages)))
	for _, b := range m.Messages {
		dst = appendBytes(dst, b)
	}
	return dst
}

// Decode reads the message, reusing the list's memory; the messages alias b.
func (m *Bundle) Decode(b []byte) error {
	r := read(b, KindBundle)
	m.Messages = m.Messages[:0]
	n := r.u32()
	if n == 0 {
		r.fail("the bundle has no messages")
	}
	for ; n > 0 && r.err == nil; n-- {
		one := r.bytes()
		if k, err := KindOf(one); r.err == nil && (err != nil || k == KindBundle) {
			r.fail("the bundle is damaged: %d of its bytes are not a message", len(one))
		}
		m.Messages = append(m.Messages, one)
	}
	return r.end()
}
