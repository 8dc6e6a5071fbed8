package protocol

import (
	"bytes"
	"errors"
	"testing"
)

// TestBundles: what is added message by message is the bundle of them, and a bundle has one message at
// least, none of which is a bundle or no message at all.
func TestBundles(t *testing.T) {
	a, b := &Probe{Epoch: 5}, &Fail{Worker: "w", Reason: "none"}
	built := AddToBundle(BeginBundle([]byte("another")), a)
	if got := OnlyInBundle(built); !bytes.Equal(got, a.Append(nil)) {
		t.Errorf("the only message is %x", got)
	}
	built = AddToBundle(built, b)
	whole := &Bundle{Messages: [][]byte{a.Append(nil), b.Append(nil)}}
	if !bytes.Equal(built, whole.Append(nil)) {
		t.Errorf("built %x, encoded %x", built, whole.Append(nil))
	}
	for name, bad := range map[string][]byte{
		"no message":         BeginBundle(nil),
		"an empty message":   AddToBundle(BeginBundle(nil), raw(nil)),
		"another version":    AddToBundle(BeginBundle(nil), raw{Version + 1, byte(KindRun)}),
		"a bundle":           AddToBundle(BeginBundle(nil), whole),
		"a message too long": built[:len(built)-1],
	} {
		if err := new(Bundle).Decode(bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Append encodes the message.
func (m *Bundle) Append(dst []byte) []byte {
	b := BeginBundle(nil)
	for _, one := range m.Messages {
		b = AddToBundle(b, raw(one))
	}
	return append(dst, b...)
}

// Append implements the interface of AddToBundle.
func (r raw) Append(dst []byte) []byte { return append(dst, r...) }
