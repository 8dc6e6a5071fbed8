package forest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzRestore: no bytes make a trainer panic or take memory out of proportion, and
// what it accepts it writes again, and can make a model of.
func FuzzRestore(f *testing.F) {
	c := smallConfig()
	d := makeProblem(1, 40, 3, 2, 1).data(1, false, dataset.Split{})
	done := newTrainer(&c, 3, 2)
	done.Trees = growTrees(f, families["two"], c, 1, d, 1)
	state, err := fields.Append(nil, stateFormat, done.State)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte{stateFormat})
	f.Add(append([]byte{stateFormat}, bytes.Repeat([]byte{0xff}, 9)...))
	f.Add(bytes.Repeat(binary.LittleEndian.AppendUint64([]byte{stateFormat}, 0), 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := newTrainer(&c, 3, 2)
		var err error
		allocs.AtMost(t, 16*len(b)+64<<10, "a trainer's state", func() {
			err = fields.Read(bytes.Clone(b), stateFormat, tr.State)
		})
		if err != nil {
			if !errors.Is(err, fields.ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again, err := fields.Append(nil, stateFormat, tr.State); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("a state of %d bytes is written again as %d, error %v", len(b), len(again), err)
		}
		tr.Progress()
		tr.Counters()
		if r, err := tr.Next(); err != nil || r != nil {
			return
		}
		useModel(t, tr.Trees)
	})
}

// FuzzSettings: the settings of a job come as JSON, from the log and from the
// leader: they are refused, or those of a job whose halves can be made.
func FuzzSettings(f *testing.F) {
	c := smallConfig()
	raw, err := settings.JSON(&c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(raw), uint16(100))
	f.Add(bytes.Replace(raw, []byte(`"all"`), []byte(`"1e-300"`), 1), uint16(1))
	f.Add([]byte(`{"trees":1e9}`), uint16(9))
	a := families["two"].New()
	f.Fuzz(func(t *testing.T, raw []byte, rows uint16) {
		var c *Config
		var err error
		allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { c, err = settings.Parse(raw) })
		if err != nil || rows == 0 {
			return
		}
		again, err := settings.JSON(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := settings.Parse(again); err != nil || *back != *c {
			t.Fatalf("%s is read as %+v, error %v", again, back, err)
		}
		m := &dataset.Manifest{Format: 1, Rows: int(rows), Features: 3, Labels: 2, Shards: make([]dataset.ShardRef, 1)}
		j := &round.Job{Algorithm: "two", Numerics: round.Numerics, Seed: 1, Params: raw}
		tr, err := a.NewTrainer(j, m, nil)
		if err != nil {
			return
		}
		if r, err := tr.Next(); err != nil || r.Tasks != c.Trees {
			t.Fatalf("round %+v, error %v", r, err)
		}
		k, err := a.NewKernel(j, m)
		if err != nil {
			t.Fatal(err)
		}
		k.NewScratch()
	})
}
