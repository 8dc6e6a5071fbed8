package algorithmtest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/modelfile"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/round"
)

// checkStates holds a trainer that runs from the beginning against one that is restored
// from its state before every round: both ask for the same round, fold its result to the
// same state, and end with the same model. A field that the state lacks shows at the first
// round that depends on it. A state that is cut short is refused.
func (j *job) checkStates(ctx context.Context) error { return j.shadow(ctx, maxRounds, true) }

// shadow is checkStates for at most so many rounds; toEnd: the job has to end within them.
func (j *job) shadow(ctx context.Context, rounds int, toEnd bool) error {
	t, x, err := j.start()
	if err != nil {
		return err
	}
	other, err := j.trainer(nil)
	if err != nil {
		return err
	}
	law := newLaw(len(j.shards))
	for n := range rounds {
		if n > 0 {
			if other, err = j.restored(t); err != nil {
				return fmt.Errorf("before round %d: %w", n, err)
			}
		}
		done, err := j.step(ctx, uint64(n), x, t, other, law)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if done {
			return j.sameEnd(t, other)
		}
		if !toEnd && t.Progress().Samples > endSamples {
			return nil
		}
	}
	if toEnd {
		return errEndless
	}
	return nil
}

// restored returns a trainer with the state of t.
func (j *job) restored(t algorithms.Trainer) (algorithms.Trainer, error) {
	state, err := stateOf(t)
	if err != nil {
		return nil, err
	}
	b := bytes.Clone(state)
	other, err := j.trainer(b)
	if err != nil {
		return nil, fmt.Errorf("the state is refused: %w", err)
	}
	for i := range b {
		b[i] ^= 0xa5 // the trainer does not keep the caller's bytes
	}
	for _, n := range []int{0, 1, len(state) / 2, len(state) - 1} {
		if n < len(state) && j.accepts(state[:n]) {
			return nil, fmt.Errorf("a state of %d bytes is accepted when it is cut to %d", len(state), n)
		}
	}
	if j.accepts(append(bytes.Clone(state), 0)) {
		return nil, fmt.Errorf("a state with a byte after its end is accepted")
	}
	return other, sameTrainers(t, other)
}

// accepts reports whether a trainer can be restored from bytes that are no state: none has
// them as its own.
func (j *job) accepts(b []byte) bool {
	t, err := j.trainer(append([]byte{}, b...))
	if err != nil {
		return false
	}
	state, err := t.AppendState(nil)
	return err != nil || !bytes.Equal(state, b)
}

// stateOf returns the state. Asking for it changes nothing and keeps what stands in dst.
func stateOf(t algorithms.Trainer) ([]byte, error) {
	state, err := t.AppendState(nil)
	if err != nil {
		return nil, err
	}
	const before = "before"
	again, err := t.AppendState([]byte(before))
	if err != nil {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(again, []byte(before)); !ok || !bytes.Equal(rest, state) {
		return nil, fmt.Errorf("AppendState gives other bytes the second time, or changes what it appends to")
	}
	return state, nil
}

// sameTrainers compares what two trainers say of themselves.
func sameTrainers(t, other algorithms.Trainer) error {
	a, err := stateOf(t)
	if err != nil {
		return err
	}
	b, err := stateOf(other)
	if err != nil {
		return err
	}
	switch p, q := t.Progress(), other.Progress(); {
	case !bytes.Equal(a, b):
		return fmt.Errorf("the state differs from that of a restored trainer")
	case p != q:
		return fmt.Errorf("the progress is %+v, of a restored trainer %+v", p, q)
	case !reflect.DeepEqual(t.Counters(), other.Counters()):
		return fmt.Errorf("the counters are %v, of a restored trainer %v", t.Counters(), other.Counters())
	}
	return nil
}

// step runs one round with both trainers.
func (j *job) step(ctx context.Context, n uint64, x engine.Executor, t, other algorithms.Trainer, law *law) (done bool, err error) {
	r, err := t.Next()
	if err != nil {
		return false, err
	}
	s, err := other.Next()
	if err != nil {
		return false, fmt.Errorf("of a restored trainer: %w", err)
	}
	if !reflect.DeepEqual(r, s) {
		return false, fmt.Errorf("a restored trainer asks for another round (%s of %d units where %s of %d are due)", s.Kind, s.Units, r.Kind, r.Units)
	}
	if r.Done {
		return true, nil
	}
	if err := law.check(r); err != nil {
		return false, err
	}
	var res round.Result
	if err := x.Do(ctx, n, r, &res); err != nil {
		return false, err
	}
	if err := law.checkResult(r, &res); err != nil {
		return false, err
	}
	second := cloneResult(&res)
	if err := t.Fold(&res); err != nil {
		return false, err
	}
	if err := other.Fold(second); err != nil {
		return false, fmt.Errorf("of a restored trainer: %w", err)
	}
	return false, sameTrainers(t, other)
}

func cloneResult(res *round.Result) *round.Result {
	c := &round.Result{}
	if p := res.Sum; p != nil {
		c.Sum = clonePartial(p)
	}
	for _, b := range res.Collected {
		c.Collected = append(c.Collected, bytes.Clone(b))
	}
	return c
}

func clonePartial(p *round.Partial) *round.Partial {
	return &round.Partial{
		F64: append([]float64{}, p.F64...), F32: append([]float32{}, p.F32...),
		Index: append([]uint32{}, p.Index...), Values: append([]float32{}, p.Values...), Width: p.Width,
	}
}

func (j *job) sameEnd(t, other algorithms.Trainer) error {
	a, err := j.digest(t)
	if err != nil {
		return err
	}
	b, err := j.digest(other)
	if err != nil {
		return err
	}
	if a != b {
		return fmt.Errorf("the model of a trainer that was restored before the end is another one")
	}
	return nil
}

// digest returns the digest of a trained model.
func (j *job) digest(t algorithms.Trainer) (string, error) {
	m, err := t.Model()
	if err != nil {
		return "", err
	}
	return modelfile.Digest(j.a.Name(), m.Tensors()), nil
}
