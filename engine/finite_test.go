package engine

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// filled is a kernel whose partials have these numbers.
type filled struct {
	zeroKernel
	round.Partial
}

func (k *filled) Run(dst *round.Partial, _ round.Task, _ *dataset.Data, _ round.Vars, _ round.Derived, _ any) error {
	dst.F64, dst.F32, dst.Values = k.F64, k.F32, k.Values
	return nil
}

// TestFinite: RunFinite refuses a partial that has a number that is not finite, wherever it is, and names the first.
func TestFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, p := range map[string]round.Partial{
		"": {F64: []float64{1, -math.MaxFloat64}, F32: []float32{math.MaxFloat32},
			Values: []float32{-1}},
		"float64 value 1 is NaN":              {F64: []float64{1, nan, nan}, F32: []float32{1}, Values: []float32{1}},
		"float64 value 0 is infinite":         {F64: []float64{inf}, F32: []float32{float32(nan)}},
		"float32 value 0 is NaN":              {F64: []float64{1}, F32: []float32{float32(nan)}, Values: []float32{1}},
		"float32 value 2 is infinite":         {F32: []float32{1, 2, float32(-inf)}},
		"value of a sparse row 0 is infinite": {F64: []float64{1}, F32: []float32{1}, Values: []float32{float32(inf)}},
		"value of a sparse row 1 is NaN":      {Values: []float32{1, float32(nan)}},
	} {
		for _, err := range []error{CheckFinite(&p), RunFinite(new(round.Partial), &filled{Partial: p}, round.Task{Of: 1},
			nil, nil, NewDerivedCache(0), nil)} {
			if want == "" {
				if err != nil {
					t.Errorf("a finite partial: %v", err)
				}
			} else if !errors.Is(err, ErrNonFinite) || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		if err := RunTask(new(round.Partial), &filled{Partial: p}, round.Task{Of: 1}, nil, nil, NewDerivedCache(0),
			nil); err != nil {
			t.Errorf("RunTask of a partial with the fault %q: %v", want, err)
		}
	}
}

// TestRunNamesTheTask that a kernel cannot compute.
func TestRunNamesTheTask(t *testing.T) {
	bad := errors.New("bad luck")
	k := &canaryKernel{fail: func(round.Task) error { return bad }}
	u := round.Task{ID: 3, Of: 8, DerivedVersion: 1}
	if err := RunFinite(new(round.Partial), k, u, nil, nil, NewDerivedCache(0), k.NewScratch()); !errors.Is(err, bad) ||
		!strings.HasPrefix(err.Error(), "task 3: ") {
		t.Errorf("a unit that fails: %v", err)
	}
	if err := RunTask(new(round.Partial), &deriver{err: bad}, u, nil, nil, NewDerivedCache(0), nil); !errors.Is(err,
		bad) || !strings.HasPrefix(err.Error(), "task 3: ") {
		t.Errorf("a value that cannot be derived: %v", err)
	}
	if err := RunTask(new(round.Partial), gathering{}, u, nil, nil, NewDerivedCache(0), nil); err == nil ||
		err.Error() != "task 3: the algorithm has no tasks whose results are summed" {
		t.Errorf("a kernel that sums nothing: %v", err)
	}
}

// collecting is a kernel that sums nothing.
type gathering struct{}

func (gathering) NewScratch() any { return nil }
