package dispatch

import (
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxComputed bounds the results that a worker is believed to have: what is beyond is sent to it.
const maxComputed = 1 << 16

// has notes that the worker says it has a result; nil is no worker that was sent the job.
func (k *acquainted) has(digest string) {
	if k == nil || len(k.computed) >= maxComputed {
		return
	}
	if k.computed == nil {
		k.computed = make(map[string]bool)
	}
	k.computed[digest] = true
}

// inPieces reports whether the round has a value that travels piece by piece.
func (x *Executor) inPieces(ref protocol.Ref) bool {
	for i := range x.r.Vars {
		if v := &x.r.Vars[i]; v.ID == ref.ID && v.Version == ref.Version {
			return len(v.Pieces) > 0
		}
	}
	return false
}

// sendValue sends a worker a value: in one message, or in pieces, of which those that the worker
// computed are only named.
func (x *Executor) sendValue(k *acquainted, v *round.Var) {
	ref := protocol.Ref{ID: v.ID, Version: v.Version}
	if len(v.Pieces) > 0 && k.pieces {
		x.sendPieces(k, ref, v.Pieces)
		return
	}
	x.value = protocol.Value{Epoch: x.d.cfg.Epoch, Job: x.id, Ref: ref, Data: v.Data}
	if len(v.Pieces) > 0 {
		x.value.Data = v.Whole()
	}
	x.sendWhole(k, &x.value)
	x.value.Data = nil
}

func (x *Executor) sendPieces(k *acquainted, ref protocol.Ref, pieces []round.Piece) {
	m := protocol.Piece{Epoch: x.d.cfg.Epoch, Job: x.id, Ref: ref, Of: uint32(len(pieces))}
	for i, p := range pieces {
		m.Index, m.Digest, m.Data = uint32(i), p.Digest(), nil
		if m.Here = !k.computed[m.Digest]; m.Here {
			var err error
			if m.Data, err = p.Bytes(); err != nil { // the worker asks for it again
				x.d.cfg.Log.Warn("a chunk of a value could not be sent", "job", x.id, "piece", i, "error", err)
				continue
			}
		}
		x.post(k, &m)
	}
}
