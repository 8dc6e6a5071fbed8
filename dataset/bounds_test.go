package dataset

import (
	"math"
	"strings"
	"testing"
)

func TestParseBounds(t *testing.T) {
	for _, x := range []struct {
		text string
		want string
	}{{"0:1", "0:1"}, {"-1.5:2e3,0:1", "-1.5:2000,0:1"}, {" 0 : 1", ""}, {"1", ""}, {"a:b", ""}, {"0:inf", ""},
		{"nan:1", ""}, {"0:1:2", ""}, {"", ""}} {
		b, err := ParseBounds(strings.Split(x.text, ","))
		if x.want == "" {
			if err == nil || !strings.Contains(err.Error(), "LOW:HIGH") {
				t.Errorf("%q: bounds %v, error %v", x.text, b, err)
			}
			continue
		}
		if err != nil || b.String() != x.want {
			t.Errorf("%q: bounds %v, error %v", x.text, b, err)
		}
	}
	if b, err := ParseBounds(nil); err != nil || b.Given() {
		t.Errorf("no bounds: %v, error %v", b, err)
	}
}

func TestBoundsCheck(t *testing.T) {
	for _, x := range []struct {
		low, high []float64
		says      string
	}{
		{nil, nil, ""},
		{[]float64{0}, []float64{1}, ""},
		{[]float64{0, 1}, []float64{1, 1}, `label 1 "b"`},
		{[]float64{0, 2}, []float64{1, 1}, "want two finite numbers, the lower one first"},
		{[]float64{0, 1, 2}, []float64{1, 2, 3}, "there are bounds of 3 labels, but the data have 2 labels"},
		{[]float64{3}, []float64{3}, "both bounds are 3"},
		{[]float64{-math.MaxFloat64}, []float64{math.MaxFloat64}, "not possible"},
	} {
		b := &Bounds{Low: x.low, High: x.high}
		if err := b.Check(2, []string{"a", "b"}); (err == nil) != (x.says == "") || err != nil &&
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: error %v, want %q", b, err, x.says)
		}
	}
}

// TestScale: targets are scaled to [0, 1] and back, and those outside are at the ends.
func TestScale(t *testing.T) {
	b := (&Bounds{Low: []float64{-10}, High: []float64{30}}).Each(3)
	got := make([]float32, 3)
	b.Scale(got, []float32{-10, 0, 40})
	if got[0] != 0 || got[1] != 0.25 || got[2] != 1 {
		t.Errorf("scaled: %v", got)
	}
	b.Unscale(got)
	if got[0] != -10 || got[1] != 0 || got[2] != 30 {
		t.Errorf("back: %v", got)
	}
	beyond := []float32{-1, 2, 0.5}
	if b.Unscale(beyond); beyond[0] != -10 || beyond[1] != 30 || beyond[2] != 10 {
		t.Errorf("beyond: %v", beyond)
	}
}

// TestScaledData: kernels see scaled targets and the other values of the rows as they are.
func TestScaledData(t *testing.T) {
	r := &Rows{N: 2, Features: 1, Labels: 2, X: []float32{1, float32(math.NaN())}, D: []float32{0, 5, 10, -5},
		Row: []uint32{0, 1}}
	m := &Manifest{Rows: 2, Features: 1, Labels: 2, Shards: make([]ShardRef, 1)}
	d := NewData(m, []Roles{Train, Test})
	d.SetShard(0, r)
	s := d.Filled([]float64{7}).Scaled(&Bounds{Low: []float64{0, -5}, High: []float64{10, 5}})
	got := s.Shard(0)
	if got.D[0] != 0 || got.D[1] != 1 || got.D[2] != 1 || got.D[3] != 0 || got.X[1] != 7 || r.D[1] != 5 {
		t.Errorf("scaled rows: %v, features %v", got.D, got.X)
	}
	if n := len(s.Select(0, 1, Train)); n != 1 || s.Role(1) != Test || !s.HasShard(0) {
		t.Errorf("%d training rows", n)
	}
}

func TestBoundedManifest(t *testing.T) {
	none, some := LabelType{Bounds: &Bounds{}}, LabelType{Bounds: &Bounds{Low: []float64{0}, High: []float64{1}}}
	if none.Same(&some) || !some.Same(&LabelType{Bounds: &Bounds{Low: []float64{0}, High: []float64{1}}}) ||
		none.Same(&LabelType{}) {
		t.Error("types of labels are compared wrongly")
	}
	for _, x := range []LabelType{{Bounds: &Bounds{}, Classes: true}, {Bounds: &Bounds{}, Scale: &Scale{}},
		{Bounds: &Bounds{Low: []float64{1}, High: []float64{0}}}} {
		if err := x.check(3, false); err == nil {
			t.Errorf("%+v is accepted", x)
		}
	}
	if err := none.check(MaxTargets+1, false); err == nil {
		t.Error("too many targets are accepted")
	}
	if got := some.String(2); got != "targets in the bounds 0:1" {
		t.Error(got)
	}
}

// FuzzBounds: texts are refused, or are bounds that are written and read again. Targets are scaled within [0, 1], and
// back within the bounds.
func FuzzBounds(f *testing.F) {
	f.Add("0:1", float32(0.5))
	f.Add("-1.5:2e3,0:1", float32(-7))
	f.Add("-1e308:1e308", float32(3))
	f.Add("1:1,:,a:b", float32(0))
	f.Fuzz(func(t *testing.T, text string, target float32) {
		b, err := ParseBounds(strings.Split(text, ","))
		if err != nil {
			return
		}
		again, err := ParseBounds(strings.Split(b.String(), ","))
		if err != nil || !again.Same(b) {
			t.Fatalf("%v is read as %v, error %v", b, again, err)
		}
		if b.Check(len(b.Low), nil) != nil || target-target != 0 {
			return
		}
		for c := range b.Low {
			one := &Bounds{Low: b.Low[c : c+1], High: b.High[c : c+1]}
			x := []float32{target}
			if one.Scale(x, x); !(x[0] >= 0 && x[0] <= 1) {
				t.Fatalf("%v scales %v to %v", one, target, x[0])
			}
			one.Unscale(x)
			if q := float64(x[0]); q < float64(float32(one.Low[0])) || q > float64(float32(one.High[0])) {
				t.Fatalf("%v unscales to %v", one, x[0])
			}
		}
	})
}
