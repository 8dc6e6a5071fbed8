package fields

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// record has a field of every kind, as a job of the given sizes keeps it.
type record struct {
	phase  uint8
	any    bool
	steps  [2]uint64
	loss   float64
	theta  []float32 // floats of them
	input  []float64 // floats of them
	mean   []float64 // nil, or known of them
	blob   []byte
	parts  [][]byte // none, or parts of them
	known  int
	length int // of parts
}

func newRecord(floats, known, parts int) *record {
	return &record{theta: make([]float32, floats), input: make([]float64, floats), known: known, length: parts}
}

func (r *record) State(l *List) {
	l.Byte(&r.phase)
	l.Bool(&r.any)
	l.Uint64(&r.steps[0], &r.steps[1])
	l.Float64(&r.loss)
	l.Float32s(r.theta, r.theta[:0])
	if r.any {
		l.Float64s(r.input)
	}
	l.Known(&r.mean, r.known)
	l.Bytes(&r.blob)
	n := l.Count(len(r.parts), r.length)
	if l.Reading() && n > 0 {
		r.parts = make([][]byte, n)
	}
	for i := range r.parts {
		l.Part(len(r.parts[i]), func(dst []byte) []byte { return append(dst, r.parts[i]...) }, func(b []byte) error {
			r.parts[i] = b
			return nil
		})
	}
	l.Check(r.steps[0] != 13, "13 steps")
}

func (r *record) bytes(t interface{ Fatal(...any) }) []byte {
	b, err := Append(nil, 7, r.State)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func drawRecord(t *rapid.T) *record {
	r := newRecord(rapid.IntRange(0, 5).Draw(t, "floats"), rapid.IntRange(1, 4).Draw(t, "known"), rapid.IntRange(1, 3).
		Draw(t, "parts"))
	r.phase, r.any = rapid.Byte().Draw(t, "phase"), rapid.Bool().Draw(t, "any")
	r.steps = [2]uint64{rapid.Uint64Min(14).Draw(t, "step"), rapid.Uint64().Draw(t, "samples")}
	r.loss = math.Float64frombits(rapid.Uint64().Draw(t, "loss"))
	for i := range r.theta {
		r.theta[i] = rapid.Float32().Draw(t, "theta")
		if r.any {
			r.input[i] = rapid.Float64().Draw(t, "input")
		}
	}
	if rapid.Bool().Draw(t, "known") {
		for range r.known {
			r.mean = append(r.mean, rapid.Float64().Draw(t, "mean"))
		}
	}
	r.blob = rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "blob")
	if rapid.Bool().Draw(t, "collected") {
		for range r.length {
			r.parts = append(r.parts, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "part"))
		}
	}
	return r
}

// TestWhatIsWrittenIsRead: a state that is read is written again with the same bytes, and no
// start of it nor anything longer is a state.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		state := r.bytes(t)
		again := newRecord(len(r.theta), r.known, r.length)
		if err := Read(bytes.Clone(state), 7, again.State); err != nil {
			t.Fatal(err)
		}
		if second := again.bytes(t); !bytes.Equal(second, state) {
			t.Fatalf("%x is written again as %x", state, second)
		}
		for n := range state {
			refused(t, state[:n], newRecord(len(r.theta), r.known, r.length))
		}
		refused(t, append(bytes.Clone(state), 0), newRecord(len(r.theta), r.known, r.length))
	})
}

func refused(t interface{ Fatalf(string, ...any) }, state []byte, r *record) {
	if err := Read(state, 7, r.State); !errors.Is(err, ErrState) {
		t.Fatalf("%x: error %v, want ErrState", state, err)
	}
}

// TestBytes pins the layout of each kind of field.
func TestBytes(t *testing.T) {
	r := newRecord(1, 1, 2)
	r.phase, r.any, r.steps, r.loss = 5, true, [2]uint64{1, 2}, 1
	r.theta[0], r.input[0], r.mean, r.blob = 1, 2, []float64{-2}, []byte("ab")
	r.parts = [][]byte{nil, {9}}
	want := "07" + "05" + "01" + "0100000000000000" + "0200000000000000" + "000000000000f03f" + "0000803f" +
		"0000000000000040" +
		"01000000" + "00000000000000c0" + "0200000000000000" + "6162" + "02000000" + "0000000000000000" +
		"0100000000000000" + "09"
	if got := hex.EncodeToString(r.bytes(t)); got != want {
		t.Errorf("the state is\n%s, want\n%s", got, want)
	}
}

// TestRefusals: every error says what is wrong, and the first one stays.
func TestRefusals(t *testing.T) {
	r := newRecord(0, 2, 3)
	r.steps[0], r.mean = 14, []float64{1, 2}
	state := r.bytes(t)
	change := func(at int, b byte) []byte {
		s := bytes.Clone(state)
		s[at] = b
		return s
	}
	for want, bad := range map[string][]byte{
		"it has format 8, but this version reads format 7": change(0, 8),
		"a flag is 2":                          change(2, 2),
		"13 steps":                             change(3, 13),
		"the saved state has 1 values, want 2": change(27, 1),
		"it is truncated":                      change(53, 0xff), // the length of the blob, beyond all memory
		"1 bytes follow after its end":         append(bytes.Clone(state), 0),
	} {
		again := newRecord(0, 2, 3)
		if err := Read(bad, 7, again.State); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestPartsRefuse: the error of what decodes a part is about the state, and keeps its own kind.
func TestPartsRefuse(t *testing.T) {
	own := errors.New("not a tree")
	state := func(l *List) {
		l.Part(1, func(dst []byte) []byte { return append(dst, 1) }, func([]byte) error { return own })
	}
	b, err := Append(nil, 1, state)
	if err != nil {
		t.Fatal(err)
	}
	if err := Read(b, 1, state); !errors.Is(err, ErrState) || !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
}

// stater is a Stater that appends.
type stater func(dst []byte) ([]byte, error)

func (s stater) AppendState(dst []byte) ([]byte, error) { return s(dst) }

// writing is a Stater that writes, as it should where the state is written.
type writing struct {
	stater
	write func(w io.Writer) error
}

func (s writing) WriteState(w io.Writer) error { return s.write(w) }

// largest is a writer that keeps what is written, and the most at once.
type largest struct {
	bytes.Buffer
	most int
	err  error // of the next call
}

func (w *largest) Write(b []byte) (int, error) {
	w.most = max(w.most, len(b))
	n, _ := w.Buffer.Write(b)
	return n, w.err
}

// TestWrite: what is written is what is appended, fields of all sizes; long vectors go to the writer as they
// are, and a state behind the last field writes itself.
func TestWrite(t *testing.T) {
	for _, n := range []int{0, 1, 100, spillAt/4 - 1, spillAt / 4, spillAt} {
		r := newRecord(n, 2, 3)
		for i := range r.theta {
			r.theta[i] = float32(i)
		}
		r.any, r.blob = true, bytes.Repeat([]byte{7}, n)
		r.parts = [][]byte{bytes.Repeat([]byte{8}, n), nil, {9}}
		var inner []byte
		rest := writing{func(dst []byte) ([]byte, error) { return append(dst, 1, 2, 3), nil }, func(w io.Writer) error {
			inner = []byte{1, 2, 3}
			_, err := w.Write(inner)
			return err
		}}
		state := func(l *List) { r.State(l); l.Rest(rest, nil) }
		want, err := Append(nil, 7, state)
		if err != nil || inner != nil {
			t.Fatalf("error %v, %v", err, inner)
		}
		var got largest
		if err := Write(&got, 7, state); err != nil || !bytes.Equal(got.Bytes(), want) || inner == nil {
			t.Errorf("%d values: %d bytes written, %d appended, error %v", n, got.Len(), len(want), err)
		}
		if n == spillAt && got.most != 8*n {
			t.Errorf("at most %d bytes at once, the vector has %d", got.most, 8*n)
		}
	}
}

// TestWriteFails: an error of the writer, or of the state behind, is the error of Write, and nothing follows.
func TestWriteFails(t *testing.T) {
	full := errors.New("disk full")
	r := newRecord(3*spillAt, 1, 1)
	r.any = true
	w := &largest{err: full}
	if err := Write(w, 7, r.State); err != full || w.Len() > spillAt {
		t.Errorf("error %v after %d bytes", err, w.Len())
	}
	state := func(l *List) { l.Rest(stater(func(dst []byte) ([]byte, error) { return dst, full }), nil) }
	if err := Write(new(largest), 7, state); err != full {
		t.Errorf("error %v", err)
	}
}

// TestTailAndRest: a tail is there or not, and the rest is another's, errors and all.
func TestTailAndRest(t *testing.T) {
	own := errors.New("another's")
	var tail bool
	var value uint8
	var rest []byte
	state := func(l *List) {
		if !l.Tail(tail) {
			return
		}
		l.Byte(&value)
		l.Grow(100)
		l.Rest(stater(func(dst []byte) ([]byte, error) { return append(dst, rest...), nil }), func(b []byte) error {
			if rest = b; len(b) == 1 {
				return own
			}
			return nil
		})
	}
	for _, want := range []string{"01", "0104", "010401", "01040203"} {
		b, err := hex.DecodeString(want)
		if err != nil {
			t.Fatal(err)
		}
		rest = nil
		if err := Read(b, 1, state); len(b) == 3 && err != own || len(b) != 3 && err != nil {
			t.Errorf("%s: error %v", want, err)
		}
		tail = len(b) > 1
		if got, err := Append(nil, 1, state); hex.EncodeToString(got) != want || err != nil {
			t.Errorf("%s is written as %x, error %v", want, got, err)
		}
	}
	failing := func(l *List) { l.Rest(stater(func(dst []byte) ([]byte, error) { return dst, own }), nil) }
	if _, err := Append(nil, 1, failing); err != own {
		t.Errorf("error %v of a rest that cannot be written", err)
	}
}

// FuzzRead: any bytes are a state, which is written again as it was, or ErrState; memory
// follows the length.
func FuzzRead(f *testing.F) {
	r := newRecord(2, 3, 2)
	f.Add(r.bytes(f))
	r.any, r.mean, r.blob, r.parts = true, []float64{1, 2, 3}, []byte("blob"), [][]byte{{1}, nil}
	f.Add(r.bytes(f))
	f.Add(binary.LittleEndian.AppendUint64(r.bytes(f), math.MaxUint64))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRecord(2, 3, 2)
		var err error
		allocs.AtMost(t, 16*len(b)+64<<10, "a state", func() { err = Read(bytes.Clone(b), 7, r.State) })
		if err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again := r.bytes(t); !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}
