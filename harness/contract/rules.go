package contract

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

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
	case gather != nil && (gather.Payloads != nil && len(gather.Payloads) != r.Tasks || gather.Has != nil && len(gather.Has) != r.Tasks):
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
