package num

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"testing"
)

func TestExpTable(t *testing.T) {
	ln2 := bigLog(2)
	for i := range 64 {
		x := new(big.Float).SetPrec(oraclePrec).Mul(ln2, bigf(float64(i)/64))
		e := bigExp(x)
		hi, _ := e.Float64()
		lo, _ := e.Sub(e, bigf(hi)).Float64()
		if exp2Hi[i] != hi || math.Abs(exp2Lo[i]-lo) > 1e-30 {
			t.Errorf("2^(%d/64) is %x + %x, want %x + %x", i, exp2Hi[i], exp2Lo[i], hi, lo)
		}
	}
}

func TestExpSpecial(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 1}, {math.Copysign(0, -1), 1}, {math.Inf(1), math.Inf(1)}, {math.Inf(-1), 0},
		{710, math.Inf(1)}, {-746, 0}, {expMax, 0x1.fffffffffff2ap+1023},
		{-745.1332191019411, 0x1p-1074}, {-1e300, 0}, {1e300, math.Inf(1)}, {0x1p-1074, 1},
	} {
		if got := Exp(c.x); got != c.want {
			t.Errorf("Exp(%v) = %x, want %x", c.x, got, c.want)
		}
	}
	if !math.IsNaN(Exp(math.NaN())) {
		t.Error("Exp(NaN) is a number")
	}
}

func TestExpAccuracy(t *testing.T) {
	s := NewStream(NewKey(1, "test/exp"), 0, 0)
	for i := range 3000 {
		x := (s.Float64() - 0.5) * math.Ldexp(1, i%14-3) // up to ±512
		if u := ulps(Exp(x), bigExp(bigf(x))); u > 0.6 {
			t.Fatalf("Exp(%v) = %v is %.2f units off", x, Exp(x), u)
		}
	}
	for x := -708.5; x > -745; x -= 0.37 { // subnormal results
		if u := ulps(Exp(x), bigExp(bigf(x))); u > 1 {
			t.Fatalf("Exp(%v) = %v is %.2f units off", x, Exp(x), u)
		}
	}
}

func TestLogSpecial(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, math.Inf(-1)}, {math.Copysign(0, -1), math.Inf(-1)}, {math.Inf(1), math.Inf(1)}, {1, 0},
		{0x1p-1074, -0x1.74385446d71c3p+9}, {math.MaxFloat64, 0x1.62e42fefa39efp+9},
	} {
		if got := Log(c.x); got != c.want {
			t.Errorf("Log(%v) = %x, want %x", c.x, got, c.want)
		}
	}
	for _, x := range []float64{-1, -0x1p-1074, math.Inf(-1), math.NaN()} {
		if !math.IsNaN(Log(x)) {
			t.Errorf("Log(%v) is a number", x)
		}
	}
}

func TestLogAccuracy(t *testing.T) {
	s := NewStream(NewKey(1, "test/log"), 0, 0)
	worst := 0.0
	for i := range 3000 {
		x := math.Ldexp(0.5+s.Float64(), i%200-100)
		if i%2 == 0 {
			x = 1 + (s.Float64()-0.5)*math.Ldexp(1, -i%30)
		}
		u := ulps(Log(x), bigLog(x))
		if worst = max(worst, u); u > 1 {
			t.Fatalf("Log(%v) = %v is %.2f units off", x, Log(x), u)
		}
	}
	t.Logf("at most %.3f units off", worst)
}

func TestSinCos2Pi(t *testing.T) {
	s := NewStream(NewKey(1, "test/sincos"), 0, 0)
	for range 2000 {
		u := s.Float64()
		sin, cos := SinCos2Pi(u)
		wantSin, wantCos := bigSinCos2Pi(u)
		if a, b := ulps(sin, wantSin), ulps(cos, wantCos); a > 2 || b > 2 {
			t.Fatalf("SinCos2Pi(%v) is %.2f and %.2f units off", u, a, b)
		}
	}
	for i, want := range [][2]float64{{0, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}} {
		sin, cos := SinCos2Pi(float64(i) / 4)
		if sin != want[0] || cos != want[1] {
			t.Errorf("SinCos2Pi(%d/4) = %v, %v", i, sin, cos)
		}
	}
}

// TestGoldenFunctions pins the bits of 20,000 results of each function: they
// are part of numerics 1. The digests were made by this package on amd64.
func TestGoldenFunctions(t *testing.T) {
	for _, c := range []struct {
		name, want string
		f          func(s *Stream) float64
	}{
		{"exp", "9783b195de36a589", func(s *Stream) float64 { return Exp((s.Float64() - 0.5) * 1480) }},
		{"exp near 0", "cb83e05fc91517df", func(s *Stream) float64 { return Exp((s.Float64() - 0.5) * 4) }},
		{"log", "718ecc18c858270e", func(s *Stream) float64 {
			return Log(math.Float64frombits(s.Uint64() >> 1 % (2047 << 52)))
		}},
		{"log near 1", "739c7f38d0d9b9ef", func(s *Stream) float64 { return Log(0.5 + s.Float64()) }},
		{"sin", "7667f67570c10682", func(s *Stream) float64 { v, _ := SinCos2Pi(s.Float64()); return v }},
		{"cos", "6aacb5f730a51599", func(s *Stream) float64 { _, v := SinCos2Pi(s.Float64()); return v }},
		{"normal", "9879b3c35f561722", (*Stream).Normal},
		{"sigmoid", "3a2a9957a5a02cbb", func(s *Stream) float64 {
			a, b := SigmoidPair(float32(s.Float64()-0.5) * 150)
			return math.Float64frombits(uint64(math.Float32bits(a))<<32 | uint64(math.Float32bits(b)))
		}},
	} {
		s := NewStream(NewKey(7, "golden"), 0, 0)
		var b []byte
		for range 20000 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.f(s)))
		}
		sum := sha256.Sum256(b)
		if got := hex.EncodeToString(sum[:8]); got != c.want {
			t.Errorf("%s: digest %s, want %s", c.name, got, c.want)
		}
	}
}

// TestGoldenPoints pins single results, rounded from 50 digits of Python's decimal.
func TestGoldenPoints(t *testing.T) {
	for _, c := range []struct{ x, exp, log float64 }{} {
		if got := Exp(c.x); got != c.exp {
			t.Errorf("Exp(%v) = %x, want %x", c.x, got, c.exp)
		}
		if got := Log(c.x); got != c.log {
			t.Errorf("Log(%v) = %x, want %x", c.x, got, c.log)
		}
	}
}
