package contract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// checkStates runs a whole job and compares two trainers before and after every round: one
// that runs from the beginning, and one that is restored from the state of the first before
// the rounds that mostly names. Both must ask for the same round, have the same state after its result, and end
// with the same model. If the state lacks a field, the first round that depends on the field
// differs. A state that is cut short must be refused.
func (j *job) checkStates(ctx context.Context) error {
	return j.compareRestored(ctx, maxRounds, true)
}

// compareRestored is checkStates for a number of rounds at most. If toEnd is set, a job that
// has not ended after these rounds is an error.
func (j *job) compareRestored(ctx context.Context, rounds int, toEnd bool) error {
	t, x, err := j.start()
	if err != nil {
		return err
	}
	other, err := j.trainer(nil)
	if err != nil {
		return err
	}
	rules := newRules(len(j.shards))
	for n := range rounds {
		if n > 0 && mostly(n) {
			if other, err = j.restored(t); err != nil {
				return fmt.Errorf("before round %d: %w", n, err)
			}
		}
		done, err := j.step(ctx, uint64(n), x, t, other, rules)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if done {
			return j.sameModels(t, other)
		}
		if !toEnd && t.Progress().Samples >= endSamples {
			_, err := j.restored(t)
			return err
		}
	}
	if toEnd {
		return errEndless
	}
	return nil
}

// mostly reports whether a check that takes longer than a round looks at round n: at the first rounds, and at every
// seventh later, since most rounds are like the rounds before. Seven divides no interval of the jobs.
func mostly(n int) bool { return n <= 14 || n%7 == 0 }

// restored returns a new trainer that is restored from the state of t. It also checks that
// bytes that are too short or too long are refused.
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
		b[i] ^= 0xa5 // a trainer must not keep the caller's bytes: this changes them
	}
	for _, n := range []int{0, 1, len(state) / 2, len(state) - 1} {
		if n < len(state) && j.acceptsWrong(state[:n]) {
			return nil, fmt.Errorf("a state of %d bytes is accepted when it is cut to %d", len(state), n)
		}
	}
	if j.acceptsWrong(append(bytes.Clone(state), 0)) {
		return nil, fmt.Errorf("a state with a byte after its end is accepted")
	}
	return other, sameTrainers(t, other)
}

// acceptsWrong reports whether a trainer can be restored from b although b is wrong: the state
// of the restored trainer is not b.
func (j *job) acceptsWrong(b []byte) bool {
	t, err := j.trainer(append([]byte{}, b...))
	if err != nil {
		return false
	}
	state, err := t.AppendState(nil)
	return err != nil || !bytes.Equal(state, b)
}

// stateOf returns the state of t. It asks twice: the first call of AppendState must not change
// the state, and the second call must keep the bytes that dst begins with.
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

// sameTrainers returns an error if the two trainers differ in state, progress or counters.
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

// step runs round n with both trainers. done: there is no such round, the job has ended.
func (j *job) step(ctx context.Context, n uint64, x engine.Executor, t, other algorithms.Trainer,
	rules *rules) (done bool, err error) {
	r, err := t.Next()
	if err != nil {
		return false, err
	}
	s, err := other.Next()
	if err != nil {
		return false, fmt.Errorf("of a restored trainer: %w", err)
	}
	if (r == nil) != (s == nil) {
		return false, fmt.Errorf("the training of a restored trainer is complete: %v, want %v", s == nil, r == nil)
	}
	if r == nil {
		return true, nil
	}
	if !sameRounds(r, s) {
		return false, fmt.Errorf("a restored trainer asks for another round (%s of %d units; %s of %d units is right)",
			s.Kind, s.Tasks, r.Kind, r.Tasks)
	}
	if err := rules.check(r); err != nil {
		return false, err
	}
	if err := j.checkSubJobs(r); err != nil {
		return false, err
	}
	var res round.Result
	if err := x.Do(ctx, n, r, &res); err != nil {
		return false, err
	}
	if err := rules.checkResult(r, &res); err != nil {
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

// sameRounds reports whether two rounds are the same, with the sub-jobs of all tasks.
func sameRounds(r, s *round.Round) bool {
	g, h := r.Gather(), s.Gather()
	if g == nil || h == nil || g.SubJob == nil || h.SubJob == nil {
		return reflect.DeepEqual(r, s)
	}
	a, b, of, as := *r, *s, *g, *h
	of.SubJob, as.SubJob = nil, nil
	a.How, b.How = &of, &as
	if !reflect.DeepEqual(a, b) {
		return false
	}
	for unit := range r.Tasks {
		if !reflect.DeepEqual(g.SubJob(unit), h.SubJob(unit)) {
			return false
		}
	}
	return true
}

// cloneResult copies a result, since Fold may change the result that it takes.
func cloneResult(res *round.Result) *round.Result {
	c := &round.Result{}
	if p := res.Sum; p != nil {
		c.Sum = clonePartial(p)
	}
	for _, b := range res.Gathered {
		c.Gathered = append(c.Gathered, bytes.Clone(b))
	}
	return c
}

func clonePartial(p *round.Partial) *round.Partial {
	return &round.Partial{
		F64: append([]float64{}, p.F64...), F32: append([]float32{}, p.F32...), I32: slices.Clone(p.I32),
		Index: append([]uint32{}, p.Index...), Values: append([]float32{}, p.Values...), Width: p.Width,
	}
}

// sameModels returns an error if the models of the two trainers differ.
func (j *job) sameModels(t, other algorithms.Trainer) error {
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

// rules checks what package round demands of the rounds of a job.
type rules struct {
	shards  int
	values  map[valueKey][32]byte
	derived uint64
	hashes  [][32]byte // of the values of the round in work
}

type valueKey struct {
	id      uint16
	version uint64
}

func newRules(shards int) *rules {
	return &rules{shards: shards, values: make(map[valueKey][32]byte)}
}

// check returns what is wrong with a round.
func (l *rules) check(r *round.Round) error {
	l.hashes = l.hashes[:0]
	for _, v := range r.Vars {
		sum := sha256.Sum256(v.Data)
		l.hashes = append(l.hashes, sum)
		key := valueKey{v.ID, v.Version}
		if before, ok := l.values[key]; ok && before != sum {
			return fmt.Errorf("value %d has other bytes than before under the same version %d", v.ID, v.Version)
		}
		l.values[key] = sum
	}
	reduce, gather := r.Reduce(), r.Gather()
	switch {
	case (reduce == nil) == (gather == nil):
		return fmt.Errorf("it is neither a reduce round nor a gather round")
	case !round.ValidKind(r.Kind):
		return fmt.Errorf("its kind is %q", r.Kind)
	case r.Tasks < 1:
		return fmt.Errorf("it has %d units", r.Tasks)
	case r.Scope == round.Sharded && (r.Tasks&(r.Tasks-1) != 0 || r.Tasks > l.shards):
		return fmt.Errorf("%d units of %d shards: want a power of two, no more than shards", r.Tasks, l.shards)
	case r.Scope != round.None && (reduce != nil || gather.SubJob == nil) && r.Roles&dataset.AllRows == 0:
		return fmt.Errorf("its units see no rows: Roles is %d", r.Roles)
	case reduce != nil && reduce.DerivedVersion != 0 && reduce.DerivedVersion < l.derived:
		return fmt.Errorf("its derived values have the version %d, after %d", reduce.DerivedVersion, l.derived)
	case gather != nil && (gather.Payloads != nil && len(gather.Payloads) != r.Tasks || gather.Has != nil &&
		len(gather.Has) != r.Tasks):
		return fmt.Errorf("%d payloads and %d marks for %d units", len(gather.Payloads), len(gather.Has), r.Tasks)
	}
	if reduce != nil {
		l.derived = max(l.derived, reduce.DerivedVersion)
	}
	return nil
}

// checkChildren holds the sub-jobs of a round against those that workers make of the task's
// number.
func (j *job) checkSubJobs(r *round.Round) error {
	how := r.Gather()
	if how == nil || how.SubJob == nil {
		return nil
	}
	p, ok := j.a.(algorithms.Parent)
	if !ok {
		return fmt.Errorf("a round has child jobs, and the algorithm is no algorithms.Parent")
	}
	for unit := range r.Tasks {
		c := how.SubJob(unit)
		again, err := p.SubJob(j.spec, j.manifest, unit)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(c, again) || c.Folds != 0 {
			return fmt.Errorf("the round's child job %d is not the algorithm's, or has folds", unit)
		}
	}
	return nil
}

// checkResult returns what is wrong with a round's sum, or with the round after its tasks ran.
func (l *rules) checkResult(r *round.Round, res *round.Result) error {
	for i, v := range r.Vars {
		if sha256.Sum256(v.Data) != l.hashes[i] {
			return fmt.Errorf("units changed the bytes of value %d", v.ID)
		}
	}
	how := r.Reduce()
	if how == nil {
		return nil
	}
	if err := res.Sum.Check(how.Shape); err != nil {
		return err
	}
	return engine.CheckFinite(res.Sum)
}

// fingerprint hashes all shards: kernels do not write to them.
func (p *problem) fingerprint() [32]byte {
	var b bytes.Buffer
	for _, rows := range p.shards {
		b.Write(dataset.EncodeShard(rows, nil))
	}
	return sha256.Sum256(b.Bytes())
}
