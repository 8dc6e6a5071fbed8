// Package childjob has what a job that consists of other jobs needs of them: the bytes by
// which a sub-job reports its outcome, and the progress of all of them together.
package childjob

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/wire"
)

// ErrFormat is wrapped by every error about bytes that are no outcome of a sub-job.
var ErrFormat = errors.New("the result of a sub-job is damaged, or has another format")

// Outcome is what a sub-job ends with.
type Outcome struct {
	Head        json.RawMessage // pipeline.Outcome in JSON
	Model       []byte          // the model file; empty where the job keeps none
	Curve       []byte          // the encoded learning curve, or empty
	Predictions []byte          // the encoded predictions.Set of the held-out rows, or empty
}

// Encode returns the bytes: head, model and curve, each after its length in 8 bytes,
// little-endian, then the predictions.
func (o *Outcome) Encode() []byte {
	b := make([]byte, 0, 3*8+len(o.Head)+len(o.Model)+len(o.Curve)+len(o.Predictions))
	for _, field := range [][]byte{o.Head, o.Model, o.Curve} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(field)))
		b = append(b, field...)
	}
	return append(b, o.Predictions...)
}

// Decode reads what Encode wrote; the fields share the memory of b. What is in the fields is
// not checked. Errors wrap ErrFormat.
func Decode(b []byte) (*Outcome, error) {
	r := wire.NewReader(b)
	o := &Outcome{Head: r.Bytes("outcome"), Model: r.Bytes("model"), Curve: r.Bytes("learning curve")}
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.Err())
	}
	if r.Len() > 0 {
		o.Predictions = r.Take("predictions", uint64(r.Len()))
	}
	return o, nil
}
