package curve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// job is what a Trainer says of its progress, round by round.
type job []round.Progress

// drawJob draws the rounds of a job that updates leaves and validates every few steps, and
// may train once more in the end. A loss may be not known for a while: within a step, for
// whole steps, at the end.
func drawJob(t *rapid.T) (j job) {
	steps, set := rapid.Uint64Range(1, 600).Draw(t, "steps"), rapid.Uint64Range(1, 20).Draw(t, "set")
	validates, refit := rapid.Bool().Draw(t, "validates"), rapid.Bool().Draw(t, "refit")
	losses := rapid.SliceOfN(rapid.Float64Range(0, 4), 1, 9).Draw(t, "losses")
	gaps := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 0, 0, -1e-10, math.NaN(), math.Inf(1)}), 1, 9).Draw(t, "gaps")
	p := round.Progress{Steps: steps, Loss: -1, Phase: "scaling"}
	n := 0
	say := func() { j = append(j, p) }
	loss := func() float64 {
		n++
		if gap := gaps[n%len(gaps)]; gap != 0 {
			return gap
		}
		return losses[n%len(losses)] + float64(n)/1000
	}
	say()
	for p.Step < steps {
		p.Step++
		p.Loss = loss()
		say()
		if p.Step%set > 0 {
			continue
		}
		p.Loss = loss() // a leaf update
		say()
		if validates {
			p.Validation, p.ValidatedAt = loss(), p.Step
			say()
		}
	}
	if !refit {
		return j
	}
	p.Refit = rapid.Uint64Range(1, steps).Draw(t, "refit steps")
	p.Steps += p.Refit
	p.Loss = loss()
	if rapid.Bool().Draw(t, "validates at the end") { // in the same round
		p.Validation, p.ValidatedAt = loss(), p.Step
	}
	for say(); p.Step < p.Steps; say() {
		p.Step++
		p.Loss = loss()
	}
	return j
}

// whole is the curve of a job that nothing disturbs.
func whole(j job, limit int) *Curve {
	r := NewRecorder(limit, nil)
	for _, p := range j {
		r.Observe(p, Unknown)
	}
	r.End()
	return r.Curve()
}

// expected is the slow twin: of all points, those at the least strides of which there are
// few enough, the best and the last.
func expected(j job, limit int) (list []Point) {
	var all []Point
	for i, p := range j {
		next := pointOf(p)
		if i+1 < len(j) && beginsRefit(j[i+1]) {
			if end := pointOf(j[i+1]); end.validated() {
				next.Validation = end.Validation
			}
		}
		if next.known() && !beginsRefit(p) && (i+1 == len(j) || j[i+1].Step > p.Step || j[i+1].Refit > p.Refit) {
			all = append(all, next)
		}
	}
	number, best, last := 0, -1, -1
	numbers := make([]int, len(all)) // what has to be a multiple of the stride
	for i, p := range all {
		numbers[i] = int(p.Step)
		if p.Step == j[len(j)-1].Step {
			last = i
		}
		if p.validated() {
			numbers[i] = number
			number++
			if best < 0 || p.Validation < all[best].Validation {
				best = i
			}
		}
	}
	kept := func(validated bool, stride int) (keep []int) {
		for i, p := range all {
			if p.validated() == validated && numbers[i]%stride == 0 {
				keep = append(keep, i)
			}
		}
		return keep
	}
	keep := map[int]bool{last: true, best: true}
	for _, validated := range []bool{false, true} {
		stride := 1
		for len(kept(validated, stride)) > limit/2-1 {
			stride *= 2
		}
		for _, i := range kept(validated, stride) {
			keep[i] = true
		}
	}
	for i, p := range all {
		if keep[i] {
			list = append(list, p)
		}
	}
	return list
}

// diff compares steps and losses.
func diff(a, b []Point) string {
	return cmp.Diff(a, b, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Point{}, "Millis"), cmpopts.EquateEmpty())
}

// TestPointsAreAFunctionOfTheJob: which points a curve has is what the slow twin says.
func TestPointsAreAFunctionOfTheJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, limit := drawJob(t), 2*rapid.IntRange(2, 64).Draw(t, "half")
		got := whole(j, limit).Points()
		if d := diff(expected(j, limit), got); d != "" {
			t.Fatalf("limit %d: %s", limit, d)
		}
		if len(got) > limit {
			t.Fatalf("%d points, at most %d are allowed", len(got), limit)
		}
	})
}

// TestCrashesDoNotShow: whenever the curve is committed, and however often a leader dies
// and the next one begins at the last commit, it comes to the same points; its times do
// not go back.
func TestCrashesDoNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, limit := drawJob(t), rapid.SampledFrom([]int{8, FoldPoints, JobPoints}).Draw(t, "limit")
		longest := rapid.IntRange(1, 200).Draw(t, "most rounds to an event")
		var committed []byte
		round, clock := 0, int64(0) // rounds committed
		r := NewRecorder(limit, nil)
		before, beforeRound := committed, 0 // an older commit, which a leader may begin at by mistake
		for at, crashes, wait := 0, 0, 0; at < len(j); at++ {
			clock++
			r.Observe(j[at], max(0, clock))
			if wait--; wait > 0 {
				continue
			}
			wait = rapid.IntRange(1, longest).Draw(t, "rounds to the next event")
			clock += rapid.Int64Range(-20, 20).Draw(t, "another clock")
			switch crash := crashes < 5 && rapid.IntRange(0, 2).Draw(t, "a crash") == 0; {
			case !crash && at+1 > round:
				before, beforeRound = committed, round
				rest, mark := r.Uncommitted()
				if rapid.Bool().Draw(t, "it takes no effect") {
					continue
				}
				committed, round = extend(t, committed, rest), at+1
				if rapid.Bool().Draw(t, "it is known that it did") {
					r.Committed(mark)
				}
				if d := diff(decode(t, committed).Points(), r.Curve().Points()); d != "" {
					t.Fatalf("after round %d the committed curve is another: %s", at, d)
				}
			case crash:
				crashes++
				from, line := round, committed
				if rapid.Bool().Draw(t, "its last commit is not known") {
					from, line = beforeRound, before
				}
				r = NewRecorder(limit, nil)
				at = from - 1
				if from > 0 {
					r = NewRecorder(limit, decode(t, line))
					r.Observe(j[at], max(0, clock))
				}
			}
		}
		r.End()
		rest, _ := r.Uncommitted()
		got := decode(t, extend(t, committed, rest)).Points()
		if d := diff(whole(j, limit).Points(), got); d != "" {
			t.Fatalf("limit %d: %s", limit, d)
		}
		for i := range got {
			if s, known := got[i].Seconds(); !known || i > 0 && float64(got[i-1].Millis)/1000 > s {
				t.Fatalf("point %d is at %v", i, got[i].Millis)
			}
		}
	})
}

// TestTheBestIsNotAfterTheNext: the best point, which is beside the others, has at most the time
// of the next one, also if the next leader's clock was behind.
func TestTheBestIsNotAfterTheNext(t *testing.T) {
	for _, c := range []struct{ next, want int64 }{{150, 150}, {932, 900}, {Unknown, 900}} {
		line := New()
		line.points = []Point{{Step: 2, Training: 0.5, Validation: math.NaN(), Millis: 100},
			{Step: 6, Training: 0.5, Validation: math.NaN(), Millis: c.next}}
		line.best = Point{Step: 4, Training: 0.5, Validation: 0.25, Millis: 900}
		list := line.Points()
		if len(list) != 3 || list[1].Step != 4 || list[1].Millis != c.want || line.best.Millis != 900 {
			t.Errorf("before %d milliseconds: %v", c.next, list)
		}
	}
}

// TestALossThatComesAndGoes within a step is one point, of the step's end; the job goes on
// with what is committed.
func TestALossThatComesAndGoes(t *testing.T) {
	r := NewRecorder(JobPoints, nil)
	for _, p := range []round.Progress{
		{Step: 129, Loss: 0.5}, {Step: 130, Loss: 0.25}, {Step: 130, Loss: -1e-10}, {Step: 130, Loss: 0.125},
		{Step: 131, Loss: 0.5}, {Step: 131, Loss: math.NaN()}, {Step: 132, Loss: 0.0625},
	} {
		r.Observe(p, Unknown)
	}
	r.End()
	want := []Point{{Step: 129, Training: 0.5, Validation: math.NaN(), Millis: Unknown},
		{Step: 130, Training: 0.125, Validation: math.NaN(), Millis: Unknown}, {Step: 132, Training: 0.0625,
			Validation: math.NaN(), Millis: Unknown}}
	if d := diff(want, decode(t, r.Curve().Append(nil)).Points()); d != "" {
		t.Error(d)
	}
}

// forest is a Trainer of which the last loss is not known.
type forest struct {
	round.Trainer
	losses []float64
}

func (f *forest) StepLosses() []float64 { return f.losses }

func (f *forest) Progress() round.Progress {
	return round.Progress{Step: uint64(len(f.losses)), Steps: uint64(len(f.losses)), Loss: f.losses[len(f.losses)-1]}
}

// TestFollowGoesForward: the steps of a round are told once, also where the loss at its end
// is not known.
func TestFollowGoesForward(t *testing.T) {
	r := NewRecorder(JobPoints, nil)
	for range 3 { // training, then the rounds that evaluate
		r.Follow(&forest{losses: []float64{0.5, 0.25, -1e-10, 0.125, -1e-10}}, 5)
	}
	r.End()
	want := []Point{{Step: 1, Training: 0.5, Validation: math.NaN(), Millis: Unknown}, {Step: 2, Training: 0.25,
		Validation: math.NaN(), Millis: Unknown}, {Step: 4, Training: 0.125, Validation: math.NaN(), Millis: Unknown}}
	if d := diff(want, decode(t, r.Curve().Append(nil)).Points()); d != "" {
		t.Error(d)
	}
}

func extend(t interface{ Fatal(...any) }, c []byte, rest *Curve) []byte {
	next, err := Extend(c, rest.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func decode(t interface{ Fatal(...any) }, b []byte) *Curve {
	c, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestARestIsWhatIsNew: what is kept is not in the next one.
func TestARestIsWhatIsNew(t *testing.T) {
	r := NewRecorder(JobPoints, nil)
	for step := range uint64(11) {
		r.Observe(round.Progress{Step: step, Loss: 1}, 5)
	}
	for range 2 {
		if rest, _ := r.Uncommitted(); len(rest.points) != 10 {
			t.Errorf("%d points of 10 steps that are complete", len(rest.points))
		}
	}
	_, mark := r.Uncommitted()
	r.Observe(round.Progress{Step: 11, Loss: 1}, 5)
	r.Committed(mark)
	for range 2 {
		rest, mark := r.Uncommitted()
		if want := mark.step - 9; uint64(len(rest.points)) != want {
			t.Errorf("%d points are new, want %d", len(rest.points), want)
		}
	}
}

// TestTheLargestCurve fits in MaxBytes.
func TestTheLargestCurve(t *testing.T) {
	c := New()
	for i := range uint64(JobPoints) {
		c.points = append(c.points, Point{Step: i << 54, Training: 1.5, Validation: 2.5, Millis: int64(i) << 53})
	}
	c.stride, c.validationStride, c.validations, c.best = 1<<63, 1<<63, math.MaxUint64, Point{Step: math.MaxUint64,
		Training: 1, Validation: 1, Millis: math.MaxInt64}
	b := c.Append(nil)
	if len(b) > MaxBytes {
		t.Errorf("%d bytes, at most %d are allowed", len(b), MaxBytes)
	}
	if got := decode(t, b); cmp.Diff(c.points, got.points) != "" || got.best != c.best {
		t.Error("it is another when it is read again")
	}
}

// TestExtendRefuses what does not continue a curve.
func TestExtendRefuses(t *testing.T) {
	at := func(stride uint64, steps ...uint64) []byte {
		c := &Curve{stride: stride, validationStride: 1, validations: 3}
		for _, s := range steps {
			c.points = append(c.points, Point{Step: s, Training: 1, Validation: math.NaN(), Millis: Unknown})
		}
		return c.Append(nil)
	}
	many := make([]uint64, JobPoints)
	for i := range many {
		many[i] = uint64(2*i + 10)
	}
	for what, c := range map[string][2][]byte{
		"a stride that shrinks": {at(2, 2), at(1, 3)},
		"too many points":       {at(2, 2), at(2, many...)}, "no curve": {at(2, 2), {0}}, "no curve before": {{9}, at(2, 2)},
		"no curve at the beginning": {nil, {1, 1, 1, 1}},
	} {
		if _, err := Extend(c[0], c[1]); !errors.Is(err, ErrCurve) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if b, err := Extend(at(2, 2), nil); err != nil || !bytes.Equal(b, at(2, 2)) {
		t.Errorf("nothing new: %v, error %v", b, err)
	}
}

// TestThinned: a curve with a smaller bound keeps its best point, and keeps it.
func TestThinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := whole(drawJob(t), JobPoints)
		limit := rapid.IntRange(4, 100).Draw(t, "limit")
		got := c.Coarsened(limit)
		if n := len(got.Points()); n > limit {
			t.Fatalf("%d points, at most %d are allowed", n, limit)
		}
		if !got.best.same(&c.best) && c.best.Step > 0 {
			t.Fatalf("the best is %v, was %v", got.best, c.best)
		}
		if last := c.lastPoint(); last != nil && !got.lastPoint().same(last) {
			t.Fatalf("the last is %v, was %v", got.lastPoint(), last)
		}
		decode(t, got.Append(nil))
	})
}

// TestThinnedKeepsWhatFits: a curve that has as many points as it may, and a last one beside
// them, is not thinned.
func TestThinnedKeepsWhatFits(t *testing.T) {
	r := NewRecorder(FoldPoints, nil)
	for step := uint64(1); step < FoldPoints; step++ {
		p := round.Progress{Step: step, Loss: 0.5}
		if step%2 == 1 && step < FoldPoints-1 {
			p.Validation, p.ValidatedAt = 0.25, step
		}
		r.Observe(p, Unknown)
	}
	r.End()
	want := r.Curve().Points()
	if d := diff(want, r.Curve().Coarsened(FoldPoints).Points()); d != "" || len(want) != FoldPoints-1 {
		t.Errorf("of %d points: %s", len(want), d)
	}
}

// TestPointJSON: what is not known is left out, and read as not known.
func TestPointJSON(t *testing.T) {
	for want, p := range map[string]Point{
		`{"step":7,"training_loss":0.5,"validation_loss":0.25,"seconds":1.234}`: {Step: 7, Training: 0.5, Validation: 0.25,
			Millis: 1234},
		`{"step":8}`: {Step: 8, Training: math.NaN(), Validation: math.NaN(), Millis: Unknown},
	} {
		b, err := json.Marshal(p)
		if err != nil || string(b) != want {
			t.Errorf("%s, error %v; want %s", b, err, want)
		}
		var got Point
		if err := json.Unmarshal(b, &got); err != nil || !got.same(&p) || got.Millis != p.Millis {
			t.Errorf("%s is read as %v, error %v", b, got, err)
		}
	}
}

// FuzzPointJSON: a point is read as package json reads its fields, whatever the form of its text.
func FuzzPointJSON(f *testing.F) {
	for _, text := range []string{`{"step":7,"training_loss":0.5,"validation_loss":-2.5e-7,"seconds":1.234}`, `{"step":18}`,
		`{"step":7,"seconds":1e300}`, `{"step":7,"training_loss":null,"seconds":-1}`, `{"step":7.0}`, `{"step":-1}`,
		`{"seconds":1,"step":2}`, `{"step":1,"training_loss":1e999}`, `{"step":1,"training_loss":"1"}`, `{"STEP":3}`,
		`{"step":1,"step":2}`, `{"step":1,"seconds":2,"seconds":3}`, ` {"step": 4, "more": [5]} `, `[]`, `null`, `{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		var fields pointJSON
		wrong := json.Unmarshal(b, &fields)
		got := Point{Step: 1}
		err := json.Unmarshal(append(append([]byte("["), b...), ']'), &[]*Point{&got})
		if (err != nil) != (wrong != nil) {
			t.Fatalf("%s: error %v, want %v", b, err, wrong)
		}
		if err != nil || string(bytes.TrimSpace(b)) == "null" {
			return
		}
		value := func(v *float64) float64 {
			if v == nil {
				return math.NaN()
			}
			return *v
		}
		want := Point{Step: fields.Step, Training: value(fields.Training), Validation: value(fields.Validation),
			Millis: Unknown}
		if s := value(fields.Seconds); s >= 0 && s < 1e15 {
			want.Millis = int64(float64(s*1000) + 0.5)
		}
		if !got.same(&want) || got.Millis != want.Millis {
			t.Fatalf("%s is read as %v, want %v", b, got, want)
		}
	})
}

// FuzzDecode: bytes that are no curve are an error; others are the curve that they are
// again when written.
func FuzzDecode(f *testing.F) {
	r := NewRecorder(8, nil)
	for step := range uint64(30) {
		r.Observe(round.Progress{Step: step, Loss: 1, Validation: 2 - float64(step)/20, ValidatedAt: step / 3 * 3},
			int64(step*100))
	}
	f.Add(r.Curve().Append(nil))
	f.Add(New().Append(nil))
	f.Add([]byte{1, 1, 0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c *Curve
		var err error
		allocs.AtMost(t, 64*len(b)+64<<10, "a curve", func() { c, err = Decode(b) })
		if err != nil {
			if !errors.Is(err, ErrCurve) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := Decode(c.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), c.Append(nil)) || len(c.Points()) > len(b) {
			t.Fatalf("%x is another when it is read again; error %v", b, err)
		}
	})
}
