package dispatch

import "github.com/coppice-ldl/coppice/protocol"

// parcel collects messages for one worker, so that it is woken once by them.
type parcel struct {
	buf  []byte // a protocol.Bundle
	many int    // messages in it
}

// maxParcel is the size at which what was collected is sent: what is large is not copied for the sake
// of one message less.
const maxParcel = 256 << 10

func (p *parcel) begin() { p.buf, p.many = protocol.BeginBundle(p.buf[:0]), 0 }

// post sends a message to a worker, by the next dispatch at the latest. Messages keep their order.
func (x *Executor) post(k *acquainted, m interface{ Append([]byte) []byte }) {
	p := &x.out
	p.buf = protocol.AddToBundle(p.buf, m)
	p.many++
	if !k.bundles || len(p.buf) >= maxParcel {
		x.dispatch(k)
	}
}

// dispatch sends a worker what was collected.
func (x *Executor) dispatch(k *acquainted) {
	switch p := &x.out; p.many {
	case 0:
		return
	case 1:
		x.d.send(&k.at, protocol.OnlyInBundle(p.buf))
	default:
		x.d.send(&k.at, p.buf)
	}
	x.out.begin()
}
