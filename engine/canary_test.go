package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The canary is an algorithm whose every bit depends on every round: tasks sum
// numbers of magnitudes far apart, so that another order of a sum, a stale value
// or a task counted twice shows in the digest of its end.

const (
	canaryWidth = 4
	canaryTasks = 8
	canaryRows  = 32 // row-sparse rows of its rounds
	canaryVar   = 7
)

var canaryShape = round.Shape{F64: canaryWidth, F32: canaryWidth, Rows: canaryRows, Width: 2}

// canary is the Trainer. Rounds go: two sums that share a kept value, then a
// gather round.
type canary struct {
	rounds uint64 // in all
	done   uint64
	state  [32]byte
	round  round.Round
	has    []bool // for gather rounds, where set
	broken error  // for Fold to return
}

func newCanary(rounds uint64) *canary { return &canary{rounds: rounds} }

func restoredCanary(rounds uint64, state []byte) *canary {
	c := newCanary(rounds)
	c.done = binary.LittleEndian.Uint64(state)
	copy(c.state[:], state[8:])
	return c
}

func (c *canary) Next() (*round.Round, error) {
	if c.done == c.rounds {
		return nil, nil
	}
	c.round = round.Round{Tasks: canaryTasks, Roles: dataset.AllRows}
	c.round.Vars = []round.Var{{ID: canaryVar, Version: c.done + 1, Data: bytes.Clone(c.state[:])}}
	if c.done%3 == 2 {
		how := &round.Gather{Has: c.has}
		for u := range canaryTasks {
			how.Payloads = append(how.Payloads, []byte{byte(u)})
		}
		c.round.How, c.round.Scope = how, round.None
		return &c.round, nil
	}
	c.round.How = &round.Reduce{Shape: canaryShape, DerivedVersion: c.done/3 + 1}
	return &c.round, nil
}

func (c *canary) Fold(res *round.Result) error {
	if c.broken != nil {
		return c.broken
	}
	h := sha256.New()
	h.Write(c.state[:])
	if p := res.Sum; p != nil {
		for _, b := range [][]byte{num.Bytes64(p.F64), num.Bytes32(p.F32), num.BytesU32(p.Index), num.Bytes32(p.Values)} {
			h.Write(b)
		}
	}
	for u, part := range res.Gathered {
		if part == nil {
			part = gatheredPart(byte(u), c.state[:]) // what Has says the state has
		}
		h.Write(part)
	}
	copy(c.state[:], h.Sum(nil))
	c.done++
	return nil
}

func (c *canary) AppendState(dst []byte) ([]byte, error) {
	return append(binary.LittleEndian.AppendUint64(dst, c.done), c.state[:]...), nil
}

func (c *canary) Progress() round.Progress {
	return round.Progress{Step: c.done, Steps: c.rounds}
}
func (c *canary) Model() (algorithms.Model, error) {
	return nil, errors.New("a canary has no model")
}
func (c *canary) digest() string { return fmt.Sprintf("%x", c.state) }

// canaryKernel is the Kernel; fail, where set, breaks tasks.
type canaryKernel struct {
	fail  func(u round.Task) error
	large bool // its derived values are beyond any limit
}

// derived is what the canary keeps of a task.
type derived struct {
	round.Unpooled
	keep  uint64
	task  int
	seed  [4]float64
	large bool
}

func (d *derived) Bytes() int {
	if d.large {
		return DerivedLimit + 1
	}
	return 32
}

func (k *canaryKernel) NewScratch() any { return new([canaryWidth]float64) }

func (k *canaryKernel) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	d := &derived{keep: u.DerivedVersion, task: u.ID, large: k.large}
	s := num.NewStream(num.NewKey(u.DerivedVersion, "canary/keep"), 0, uint32(u.ID))
	for i := range d.seed {
		d.seed[i] = s.Normal()
	}
	return d, nil
}

func (k *canaryKernel) Run(dst *round.Partial, u round.Task, _ *dataset.Data, v round.Vars, kept round.Derived,
	scratch any) error {
	if k.fail != nil {
		if err := k.fail(u); err != nil {
			return err
		}
	}
	d := kept.(*derived)
	if d.keep != u.DerivedVersion || d.task != u.ID {
		return fmt.Errorf("the value kept is of unit %d under %d", d.task, d.keep)
	}
	sum := scratch.(*[canaryWidth]float64)
	*sum = d.seed
	seed := binary.LittleEndian.Uint64(v.Get(canaryVar))
	s := num.NewStream(num.NewKey(seed, "canary"), v.Version(canaryVar), uint32(u.ID))
	for range 50 {
		i := s.Uint64n(canaryWidth)
		x := (s.Float64() - 0.5) * math.Float64frombits(uint64(1023-40+s.Uint64n(80))<<52)
		dst.F64[i] += x
		dst.F32[i] += float32(x)
		sum[i] += x
	}
	for row := range uint32(canaryRows) {
		if s.Uint64n(3) > 0 {
			dst.Index = append(dst.Index, row)
			dst.Values = append(dst.Values, float32(sum[row%canaryWidth]), float32(s.Normal()))
		}
	}
	return nil
}

// collectedPart is the bytes of a task of the canary's gather rounds.
func gatheredPart(payload byte, state []byte) []byte {
	sum := sha256.Sum256(append([]byte{payload}, state...))
	return sum[:]
}

func (k *canaryKernel) Gather(ctx context.Context, u round.Task, _ *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	if k.fail != nil {
		if err := k.fail(u); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return gatheredPart(u.Payload[0], v.Get(canaryVar)), nil
}

// canaryData is a dataset of a shard for each task, which the canary never reads.
func canaryData() *dataset.Data {
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: canaryTasks, Features: 1, Labels: 1,
		Shards: make([]dataset.ShardRef, canaryTasks)}
	return dataset.NewData(m, make([]dataset.Roles, canaryTasks))
}

func ignore(uint64, round.Trainer) error { return nil }

// sing drives a canary from a state to its end.
func sing(t testing.TB, c *canary, k *canaryKernel, lanes int) string {
	t.Helper()
	if err := Drive(t.Context(), c, c.done, NewLocal(k, canaryData(), lanes, nil), ignore); err != nil {
		t.Fatal(err)
	}
	return c.digest()
}
