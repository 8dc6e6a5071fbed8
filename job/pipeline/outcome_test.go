package pipeline_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

func drawReport(t *rapid.T, name string) (r measures.Report) {
	value := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()))
	for i := range r {
		r[i] = measures.Stat{Mean: value.Draw(t, name), Std: value.Draw(t, name)}
	}
	return r
}

// TestOutcomeRoundTrip: what a child reports arrives as it was, bit for bit; a
// measure that is not a number stays one that is not.
func TestOutcomeRoundTrip(t *testing.T) {
	count := rapid.IntRange(0, 1<<40)
	rapid.Check(t, func(t *rapid.T) {
		o := &pipeline.Outcome{
			ModelDigest: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "digest"),
			Steps:       rapid.Uint64().Draw(t, "steps"), Samples: rapid.Uint64().Draw(t, "samples"), Loss: rapid.Float64().
					Draw(t, "loss"),
			EvaluatedOn: rapid.String().Draw(t, "on"), Model: rapid.SliceOf(rapid.Byte()).Draw(t, "model"),
			Rows: pipeline.Counts{Train: count.Draw(t, "train"), Validation: count.Draw(t, "validation"),
				Test: count.Draw(t, "test")},
			Measures: drawReport(t, "measures"), Baselines: pipeline.Baselines{MeanPredictor: drawReport(t, "baseline")},
			Counters: map[string]uint64{"gains": rapid.Uint64().Draw(t, "counter")}, Error: rapid.String().Draw(t, "error"),
		}
		if rapid.Bool().Draw(t, "linear") {
			o.Linear = &pipeline.LinearBaseline{Samples: count.Draw(t, "samples"), Measures: drawReport(t, "linear baseline"),
				Better: rapid.Bool().Draw(t, "better")}
		}
		if rapid.Bool().Draw(t, "curve") {
			r := curve.NewRecorder(curve.FoldPoints, nil)
			r.Observe(round.Progress{Step: rapid.Uint64().Draw(t, "step"), Loss: rapid.Float64Range(0, 9).Draw(t, "loss")},
				curve.Unknown)
			r.End()
			o.Curve = r.Curve()
		}
		b, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pipeline.DecodeOutcome(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		checkEnding(t, b, o)
	})
}

// checkEnding compares how a run ended, as it is read alone, with the outcome.
func checkEnding(t interface{ Fatalf(string, ...any) }, encoded []byte, o *pipeline.Outcome) {
	c, err := childjob.Decode(encoded)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := &pipeline.Ending{ModelDigest: o.ModelDigest, Steps: o.Steps, Samples: o.Samples, Loss: o.Loss, Error: o.Error}
	if got, err := pipeline.EndingOf(c); err != nil || *got != *want {
		t.Fatalf("%+v, error %v; want %+v", got, err, want)
	}
}

// TestDamagedOutcomes are refused.
func TestDamagedOutcomes(t *testing.T) {
	good, err := (&pipeline.Outcome{Model: []byte("model")}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	head := len(good)
	for n := range head {
		if _, err := pipeline.DecodeOutcome(good[:n]); err == nil {
			t.Errorf("the first %d bytes were taken", n)
		}
	}
	for _, size := range []uint64{uint64(len(good)), math.MaxUint64, math.MaxInt64, 3} {
		b := binary.LittleEndian.AppendUint64(nil, size)
		if _, err := pipeline.DecodeOutcome(append(b, good[8:]...)); err == nil {
			t.Errorf("a head of %d bytes was taken", size)
		}
	}
	for _, head := range []string{"", "{", `{"steps":-1}`, `{"error":1}`, `{"rows":{]}`} {
		if _, err := pipeline.EndingOf(&childjob.Outcome{Head: []byte(head)}); !errors.Is(err, childjob.ErrFormat) {
			t.Errorf("how a cell ended is read from %q: %v", head, err)
		}
	}
}

// TestABadCurveCostsTheCurve of a fold, and neither its result nor its model.
func TestABadCurveCostsTheCurve(t *testing.T) {
	o := &pipeline.Outcome{Loss: 0.5, Model: []byte("model"), Predictions: []byte("rows")}
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	at := len(b) - len(o.Predictions) - 8 // the size of the curve, which is not there
	b = append(b[:at:at], 2, 0, 0, 0, 0, 0, 0, 0, 9, 9)
	got, err := pipeline.DecodeOutcome(append(b, o.Predictions...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzDecodeOutcome: any bytes are an outcome or an error.
func FuzzDecodeOutcome(f *testing.F) {
	good, _ := (&pipeline.Outcome{ModelDigest: "d", Model: []byte("model")}).Encode()
	f.Add(good)
	line, _ := (&pipeline.Outcome{Curve: curve.New()}).Encode()
	f.Add(line)
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := pipeline.DecodeOutcome(b)
		if err != nil {
			return
		}
		checkEnding(t, b, o)
		again, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pipeline.DecodeOutcome(again); err != nil || string(got.Model) != string(o.Model) {
			t.Fatalf("%q, error %v", got.Model, err)
		}
	})
}
