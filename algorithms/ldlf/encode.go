package ldlf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// stateFormat is the version byte of a trainer's state. The layout, all of it
// little-endian, is in DESIGN.md.
const stateFormat = 3

// ErrState is wrapped by every error about a trainer's state.
var ErrState = errors.New("ldlf: not a state of this job")

// AppendState implements round.Trainer.
func (t *trainer) AppendState(dst []byte) ([]byte, error) {
	dst = append(dst, stateFormat, byte(t.phase), flagByte(t.best.any), flagByte(t.reference.any))
	for _, v := range t.counters() {
		dst = binary.LittleEndian.AppendUint64(dst, *v)
	}
	for _, v := range t.losses() {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(*v))
	}
	dst = append(dst, num.Bytes64(t.input)...)
	for _, v := range t.vectors() {
		dst = append(dst, num.Bytes32(v)...)
	}
	return dst, nil
}

// counters lists the state's whole numbers in the order of its encoding.
func (s *state) counters() []*uint64 {
	return []*uint64{
		&s.passes, &s.before, &s.step, &s.updates, &s.thetaVersion, &s.qVersion, &s.leafUpdates, &s.iteration, &s.column,
		&s.samples, &s.stale, &s.validatedAt,
		&s.best.step, &s.best.thetaVersion, &s.best.qVersion,
		&s.reference.step, &s.reference.thetaVersion, &s.reference.qVersion,
	}
}

// losses lists the state's float64 numbers in the order of its encoding.
func (s *state) losses() []*float64 {
	return []*float64{&s.loss, &s.validation, &s.best.loss, &s.reference.loss}
}

// vectors lists the state's float32 vectors in the order of its encoding: the best
// state and the reference only where there are such.
func (s *state) vectors() [][]float32 {
	v := [][]float32{s.theta, s.first, s.second, s.q}
	for _, k := range []*kept{&s.best, &s.reference} {
		if k.any {
			v = append(v, k.theta, k.q)
		}
	}
	return v
}

func flagByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// restore reads what AppendState wrote for the same job. Its memory is bounded by
// the job's own sizes.
func (t *trainer) restore(b []byte) error {
	r := stateReader{b}
	head := r.take(4)
	if head == nil || head[0] != stateFormat {
		return fmt.Errorf("%w: format byte %v, this program reads %d", ErrState, head, stateFormat)
	}
	for i, k := range []*kept{&t.best, &t.reference} {
		if flag := head[2+i]; flag > 1 || flag == 1 && k.theta == nil {
			return fmt.Errorf("%w: it keeps a state that the job does not keep", ErrState)
		}
		k.any = head[2+i] == 1
	}
	t.phase = phase(head[1])
	for _, v := range t.counters() {
		*v = r.uint64()
	}
	for _, v := range t.losses() {
		*v = math.Float64frombits(r.uint64())
	}
	r.fill(num.Bytes64(t.input))
	for _, v := range t.vectors() {
		r.fill(num.Bytes32(v))
	}
	if r.b == nil || len(r.b) > 0 {
		return fmt.Errorf("%w: %d bytes are the wrong length", ErrState, len(b))
	}
	return t.checkState()
}

// checkState reports a state that no run of the job can be in.
func (t *trainer) checkState() error {
	c := t.cfg
	scaling := t.phase <= phaseExtremes
	switch {
	case t.phase >= phases,
		scaling && t.input == nil,
		t.phase == phaseExtremes && c.Scaling != scalingMinMax,
		t.phase <= phaseSquares && c.Scaling != scalingStandard,
		t.phase == phaseValidate && !t.validates(),
		t.passes > 1 || t.refits() && !(c.Refit && t.best.any),
		t.reference.any && !t.best.any:
		return fmt.Errorf("%w: phase %d does not occur in it", ErrState, t.phase)
	case t.validatedAt > t.before+t.step:
		return fmt.Errorf("%w: a validation at step %d", ErrState, t.validatedAt)
	case t.step > t.limit() || t.limit() > uint64(c.Steps) || t.before > uint64(c.Steps) || t.phase == phaseStep && t.ended():
		return fmt.Errorf("%w: step %d of %d", ErrState, t.step, t.limit())
	case t.iteration >= uint64(c.LeafIterations):
		return fmt.Errorf("%w: iteration %d of %d", ErrState, t.iteration, c.LeafIterations)
	case t.column > uint64(t.size.features) || t.phase == phaseExtremes && t.column == uint64(t.size.features):
		return fmt.Errorf("%w: column %d of %d", ErrState, t.column, t.size.features)
	}
	return nil
}

// stateReader reads a state; after a read beyond the end its bytes are nil.
type stateReader struct{ b []byte }

// take returns the next n bytes, or nil when there are fewer.
func (r *stateReader) take(n int) []byte {
	if r.b == nil || len(r.b) < n {
		r.b = nil
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *stateReader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *stateReader) fill(dst []byte) { copy(dst, r.take(len(dst))) }
