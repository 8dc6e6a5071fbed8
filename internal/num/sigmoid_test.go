package num

import (
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSigmoidPair(t *testing.T) {
	for _, f := range []float32{0, 1e-30, 0.5, -0.5, 3, -3, 17, -17, 20, -20, 80, -87, 100, -100} {
		s, u := SigmoidPair(f)
		e := bigExp(bigf(-float64(f)))
		want, _ := e.Quo(bigf(1), e.Add(e, bigf(1))).Float32()
		if math.Abs(float64(s)-float64(want)) > float64(want)*0x1p-23+0x1p-149 {
			t.Errorf("σ(%v) = %v, want %v", f, s, want)
		}
		if s2, u2 := SigmoidPair(-f); s2 != u || u2 != s {
			t.Errorf("SigmoidPair(%v) is no mirror of SigmoidPair(%v)", -f, f)
		}
		if u == 0 || s == 0 {
			t.Errorf("SigmoidPair(%v) = %v, %v: a branch died", f, s, u)
		}
	}
	for _, f := range []float64{105, 199, 200, 201, 745, 1e30, math.Inf(1)} {
		if s, u := SigmoidPair(float32(f)); s != 1 || u != 0 {
			t.Errorf("SigmoidPair(%v) = %v, %v", f, s, u)
		}
	}
	if s, u := SigmoidPair(float32(math.NaN())); s == s || u == u {
		t.Errorf("SigmoidPair(NaN) = %v, %v", s, u)
	}
}

// TestSigmoidPairIsExp holds that the shortcut has the bits of the formula.
func TestSigmoidPairIsExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(anyFloat32(), rapid.Float32Range(-210, 210)).Draw(t, "f")
		e := Exp(-math.Abs(float64(f)))
		s, u := float32(1/(1+e)), float32(e/(1+e))
		if f < 0 {
			s, u = u, s
		}
		if a, b := SigmoidPair(f); !sameBits(a, s) || !sameBits(b, u) {
			t.Fatalf("SigmoidPair(%v) = %x, %x, want %x, %x", f, a, b, s, u)
		}
	})
}

func TestSigmoidPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SliceOf(rapid.OneOf(anyFloat32(), rapid.Float32Range(-210, 210))).Draw(t, "f")
		s, u := newGuarded(len(f)), newGuarded(len(f))
		wantS, wantU := s.clone(), u.clone()
		for i, x := range f {
			wantS.v[i], wantU.v[i] = SigmoidPair(x)
		}
		SigmoidPairs(s.v, u.v, f)
		requireSame(t, "σ(f)", s, wantS)
		requireSame(t, "σ(-f)", u, wantU)
		SigmoidPairs(f, u.v, f) // in place
		requireSame(t, "σ(f) in place", guarded{f, f}, guarded{wantS.v, wantS.v})
	})
}

// TestAssemblyDoesNotFuse reads the source: one fused instruction would change a
// float32 result about once in 10^8, too rarely to be seen above.
func TestAssemblyDoesNotFuse(t *testing.T) {
	for _, file := range []string{"sigmoid_amd64.s", "ratios_amd64.s", "ratiorows_amd64.s"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"VFMADD", "VFMSUB", "VFNMADD", "VFNMSUB"} {
			if strings.Contains(string(text), name) {
				t.Errorf("%s in %s: what it equals does not fuse", name, file)
			}
		}
	}
}
