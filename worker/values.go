package worker

import (
	"fmt"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// value is the memory of a version of a value: its bytes, or its chunks. jobs.mu guards it, but for
// the bytes, which do not change while a batch reads them.
type value struct {
	data    []byte
	message []byte // the message that data stands in; nil if data has memory of its own

	chunks map[int]*chunk
	list   []round.Chunk // in order; nil until all chunks are here. Batches keep the lists of earlier times.
}

// keepValue makes memory for a version that came whole, unless it has memory of an older one, or of its message.
func keepValue(v *batch.Version) {
	x, ok := v.Local.(*value)
	if !ok {
		x = new(value)
		v.Local = x
	}
	if cap(x.data) < v.Bytes {
		x.data = make([]byte, v.Bytes)
	}
	x.data = x.data[:v.Bytes]
}

// keepChunk adds a chunk. It may replace a chunk that cannot be read any longer.
func keepChunk(v *batch.Version, index int, c *chunk) {
	x, ok := v.Local.(*value)
	if !ok {
		x = &value{chunks: make(map[int]*chunk)}
		v.Local = x
	}
	if old := x.chunks[index]; old != nil {
		old.release()
	}
	x.chunks[index] = c
	c.version, c.index = v, index
	if v.Whole() {
		x.list = make([]round.Chunk, len(x.chunks))
		for i, c := range x.chunks {
			x.list[i] = c
		}
	}
}

// release gives up the message, or the chunks.
func (x *value) release(reuse func(message []byte)) {
	for _, c := range x.chunks {
		c.release()
	}
	if x.message != nil {
		reuse(x.message)
	}
	*x = value{}
}

// chunk is a chunk of a version of a value. It implements round.Chunk.
type chunk struct {
	digest  string
	data    []byte   // the bytes that came in a message
	own     *results // has the bytes, and counts the chunk as a user; nil if they came in a message
	report  func(batch.Event)
	lost    atomic.Bool // true if it was reported that the bytes cannot be read. A later chunk may replace this one.
	version *batch.Version
	index   int
}

// Digest implements round.Chunk.
func (c *chunk) Digest() string { return c.digest }

// Bytes implements round.Chunk. An error is a passing failure, because the leader has the bytes.
func (c *chunk) Bytes() ([]byte, error) {
	if c.own == nil {
		return c.data, nil
	}
	b, err := c.own.read(c.digest)
	if err != nil {
		if !c.lost.Swap(true) {
			c.report(&batch.ChunkLost{Version: c.version, Index: c.index})
		}
		return nil, batch.Passing(fmt.Errorf("worker: the result of an earlier task cannot be read: %w", err))
	}
	return b, nil
}

func (c *chunk) release() {
	if c.own != nil {
		c.own.release(c.digest)
	}
}
