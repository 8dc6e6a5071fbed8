package predictions

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// draw makes a set of distinct rows.
func draw(t *rapid.T) *Set {
	s := &Set{Labels: rapid.IntRange(1, 4).Draw(t, "labels"), Number: rapid.Bool().Draw(t, "number")}
	s.Type.Classes = rapid.Bool().Draw(t, "classes")
	if rapid.Bool().Draw(t, "scale") {
		s.Type.Scale = &dataset.Scale{Low: rapid.IntRange(-9, 9).Draw(t, "low"), True: rapid.SampledFrom(truths).
			Draw(t, "truth")}
	}
	rows := rapid.SliceOfNDistinct(rapid.Uint32Max(200), 1, 30, rapid.ID).Draw(t, "rows")
	for _, row := range rows {
		v := rapid.SliceOfN(rapid.Float32Range(0, 1), 2*s.Labels, 2*s.Labels).Draw(t, "degrees")
		s.Add(row, v[:s.Labels], v[s.Labels:][:s.Width()])
		if s.Type.Scale != nil {
			s.True = append(s.True, float64(v[0])/3)
		}
	}
	if rapid.Bool().Draw(t, "weights") {
		for i := range rows {
			s.Weight = append(s.Weight, float64(i%3)/2)
		}
	}
	if rapid.Bool().Draw(t, "names") {
		for _, row := range rows {
			s.Names = append(s.Names, fmt.Sprint("row ", row))
		}
	}
	if rapid.Bool().Draw(t, "label names") {
		s.LabelNames = make([]string, s.Labels)
	}
	if rapid.Bool().Draw(t, "folds") {
		s.SetFold(rapid.IntRange(0, 9).Draw(t, "fold"))
	}
	return s
}

// A set cut in pieces, in any order, and merged is the set by row number; and what is
// encoded decodes to itself.
func TestMergeAndEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		whole, err := Merge([]*Set{s})
		if err != nil {
			t.Fatal(err)
		}
		pieces := make([]*Set, 3)
		for i := range pieces {
			pieces[i] = &Set{Labels: s.Labels, LabelNames: s.LabelNames, Type: s.Type, Number: s.Number}
		}
		for i, row := range s.Row {
			p := pieces[rapid.IntRange(0, 2).Draw(t, "piece")]
			p.Add(row, s.TruthOf(i), s.PredictedOf(i))
			if s.Fold != nil {
				p.Fold = append(p.Fold, s.Fold[i])
			}
			if s.True != nil {
				p.True = append(p.True, s.True[i])
			}
			if s.Weight != nil {
				p.Weight = append(p.Weight, s.Weight[i])
			}
			if s.Names != nil {
				p.Names = append(p.Names, s.Names[i])
			}
		}
		var sent []*Set
		for _, p := range pieces {
			back, err := Decode(p.Encode())
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, back)
		}
		got, err := Merge(sent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		for i := 1; i < len(got.Row); i++ {
			if got.Row[i-1] >= got.Row[i] {
				t.Fatalf("rows %v", got.Row)
			}
		}
	})
}

func TestMergeRefuses(t *testing.T) {
	one := func(row uint32) *Set { s := &Set{Labels: 1}; s.Add(row, []float32{1}, []float32{1}); return s }
	folded := one(2)
	folded.SetFold(1)
	for _, sets := range [][]*Set{{one(1), one(1)}, {one(1), folded},
		{one(1), {Labels: 2, Row: []uint32{5}, Truth: make([]float32, 2), Predicted: make([]float32, 2)}}} {
		if _, err := Merge(sets); !errors.Is(err, ErrFormat) {
			t.Errorf("error %v", err)
		}
	}
}

// FuzzDecode: any bytes are refused, or are the one encoding of a set.
func FuzzDecode(f *testing.F) {
	s := &Set{Labels: 2, LabelNames: []string{"a", "b"}, Names: []string{"x", ""}}
	s.Add(3, []float32{0, 1}, []float32{.5, .5})
	s.Add(1, []float32{1, 0}, []float32{.25, .75})
	s.SetFold(7)
	f.Add(s.Encode())
	f.Add((&Set{Labels: 1}).Encode())
	n := &Set{Labels: 2, Number: true, Type: dataset.LabelType{Scale: &dataset.Scale{Low: -3, True: dataset.TrueValue}},
		True: []float64{1.5}}
	n.Add(4, []float32{0, 1}, []float32{-2.5})
	f.Add(n.Encode())
	f.Add((&Set{Labels: 3, Type: dataset.LabelType{Classes: true}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var s *Set
		var err error
		if n := allocs.Of(func() { s, err = Decode(b) }); n > 16*uint64(len(b))+64<<10 {
			t.Errorf("%d bytes of memory for %d", n, len(b))
		}
		if err == nil && !bytes.Equal(s.Encode(), b) {
			t.Error("decoded to something else")
		}
	})
}
