package worker

import (
	"fmt"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// pieces are what a version of a value consists of, where it comes piece by piece.
type pieces struct {
	of    int
	have  map[uint32]*piece
	bytes int           // of those that came in messages
	list  []round.Piece // in order, once all are here
}

// piece implements round.Piece.
type piece struct {
	digest string
	data   []byte      // that came in a message
	own    *results    // else: has the bytes, and counts the piece as a user
	broken atomic.Bool // the bytes are there no more
}

// Digest implements round.Piece.
func (p *piece) Digest() string { return p.digest }

// Bytes implements round.Piece. An error is a passing failure: the leader has the bytes.
func (p *piece) Bytes() ([]byte, error) {
	if p.own == nil {
		return p.data, nil
	}
	b, err := p.own.read(p.digest)
	if err != nil {
		p.broken.Store(true)
		return nil, passing(fmt.Errorf("worker: the result of an earlier task cannot be read: %w", err))
	}
	return b, nil
}

func (p *piece) release() {
	if p.own != nil {
		p.own.release(p.digest)
	}
}

// whole reports whether all pieces are at hand.
func (s *pieces) whole() bool {
	if s.list == nil {
		return false
	}
	for _, p := range s.have {
		if p.broken.Load() {
			return false
		}
	}
	return true
}

// lacks reports whether piece i is not at hand.
func (s *pieces) lacks(i uint32) bool {
	p := s.have[i]
	return p == nil || p.broken.Load()
}

// put takes piece i, which was not at hand.
func (s *pieces) put(i uint32, p *piece) {
	if broken := s.have[i]; broken != nil {
		broken.release()
	}
	s.have[i] = p
	s.bytes += len(p.data)
	if len(s.have) < s.of {
		return
	}
	s.list = make([]round.Piece, s.of) // another list: what was made of the last one is made anew
	for i, p := range s.have {
		s.list[i] = p
	}
}

// release gives up all pieces; nil has none.
func (s *pieces) release() {
	if s == nil {
		return
	}
	for _, p := range s.have {
		p.release()
	}
}

// size is the bytes that the pieces take in memory; nil has none.
func (s *pieces) size() int {
	if s == nil {
		return 0
	}
	return s.bytes
}

// onPiece takes a piece of a value, or finds it among the results of this worker's own units. Data
// is not copied: the message belongs to the worker.
func (o *orders) onPiece(m *protocol.Piece) error {
	if m.Here && blobs.Sum(m.Data) != m.Digest {
		return fmt.Errorf("%w: chunk %d of a value does not match its digest", protocol.ErrMessage, m.Index)
	}
	w := o.w
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[m.Job]
	if !w.obey(m.Epoch) || j == nil {
		return nil // a Run will ask for what it lacks
	}
	y := j.values.find(m.Ref)
	if y == nil && j.values.room(m.Ref, 0) {
		y = j.values.blank(m.Ref, 0)
		y.pieces = &pieces{of: int(m.Of), have: make(map[uint32]*piece)}
		j.values.put(y)
	}
	if y == nil || !j.values.room(m.Ref, len(m.Data)) {
		return fmt.Errorf("%w: a chunk of %d bytes is larger than a worker keeps for a job", protocol.ErrMessage, len(m.Data))
	}
	j.values.renew(y)
	switch s := y.pieces; {
	case s == nil: // another leader sent it in one
		return nil
	case s.of != int(m.Of):
		return fmt.Errorf("%w: a chunk says that its value has %d chunks, but the value has %d", protocol.ErrMessage, m.Of, s.of)
	case !s.lacks(m.Index):
		return nil
	case m.Here:
		s.put(m.Index, &piece{digest: m.Digest, data: m.Data})
	case s.have[m.Index] == nil && w.results.retain(m.Digest):
		s.put(m.Index, &piece{digest: m.Digest, own: w.results})
	}
	return nil
}

// maxPast bounds the results of earlier rounds that a worker keeps for values that may consist of
// them, in bytes.
const maxPast = 512 << 20

// past is a result of a round before the one in work.
type past struct {
	digest string
	bytes  uint64
}

// passCollected ends a unit of a round that is over: its result, if there is one, is kept while there
// is room. mu is held.
func (w *worker) passCollected(j *job, key unitKey, c *collected) {
	c.cancel()
	delete(j.units, key)
	if !c.done {
		return
	}
	for len(j.past) > 0 && w.past+c.bytes > maxPast {
		w.dropPast(j)
	}
	if w.past+c.bytes > maxPast {
		w.results.release(c.digest)
		return
	}
	j.past = append(j.past, past{c.digest, c.bytes})
	w.past += c.bytes
}

// dropPast gives up the oldest result of a job's earlier rounds. mu is held.
func (w *worker) dropPast(j *job) {
	old := j.past[0]
	j.past = j.past[1:]
	w.past -= old.bytes
	w.results.release(old.digest)
}

// dropValues gives up what the values of a closed job hold. mu is held.
func (w *worker) dropValues(j *job) {
	for len(j.past) > 0 {
		w.dropPast(j)
	}
	for _, x := range j.values {
		for _, y := range x.versions {
			y.pieces.release()
			y.pieces = nil
		}
	}
}
