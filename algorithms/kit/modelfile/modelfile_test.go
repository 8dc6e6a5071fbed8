package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The golden model: one tensor of each type, a scalar and an empty one.
var (
	goldenTensors = []algorithms.Tensor{
		{Name: "settings", Dims: []int{3}, U32: []uint32{1, 5, 0xfffffffe}},
		{Name: "scaling.shift", Dims: []int{2, 1}, F64: []float64{0.5, math.Copysign(0, -1)}},
		{Name: "theta", Dims: []int{2, 2}, F32: []float32{1, -2, 0.25, float32(math.Copysign(0, -1))}},
		{Name: "scalar", F32: []float32{3}},
		{Name: "empty", Dims: []int{0, 7}, F32: []float32{}},
	}
	goldenProvenance = []byte(`{"version":"0"}`)
)

const (
	goldenDigest = "18d1abf4cdba17a2ed79647d885ef2bf7406d94254db932d5f4b023d74504c14"
	goldenFile   = "636f70706963652d6d6f64656c000100000001000000046c646c66050000000873657474696e677303010300000000000000" +
		"0100000005000000feffffff0d7363616c696e672e7368696674020202000000000000000100000000000000000000000000" +
		"e03f00000000000000800574686574610102020000000000000002000000000000000000803f000000c00000803e00000080" +
		"067363616c617201000000404005656d70747901020000000000000000070000000000000018d1abf4cdba17a2ed79647d88" +
		"5ef2bf7406d94254db932d5f4b023d74504c140f000000000000007b2276657273696f6e223a2230227db376a19b90fd4434" +
		"6af1e7bff7858e8d5c0206c3d2e583694fb0e18b129ec87e"
)

func TestGolden(t *testing.T) {
	file, digest := Encode("ldlf", goldenTensors, goldenProvenance)
	if got := hex.EncodeToString(file); got != goldenFile {
		t.Errorf("file\n got %s\nwant %s", got, goldenFile)
	}
	if digest != goldenDigest || Digest("ldlf", goldenTensors) != goldenDigest {
		t.Errorf("digest %s, without a file %s, want %s", digest, Digest("ldlf", goldenTensors), goldenDigest)
	}
	if got, err := Decode(file); err != nil || got.Digest != goldenDigest {
		t.Errorf("decoded as %v, error %v", got, err)
	}
}

// TestLayout builds the golden file as FORMAT.md draws it, with none of Encode's
// code.
func TestLayout(t *testing.T) {
	u32 := func(v uint32) string { return string([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}) }
	u64 := func(v uint64) string { return u32(uint32(v)) + u32(uint32(v>>32)) }
	f32 := func(v float32) string { return u32(math.Float32bits(v)) }
	f64 := func(v float64) string { return u64(math.Float64bits(v)) }
	zero := math.Copysign(0, -1)
	want := "coppice-model\x00" + u32(1) + u32(round.Numerics) + "\x04ldlf" + u32(5) +
		"\x08settings\x03\x01" + u64(3) + u32(1) + u32(5) + u32(0xfffffffe) +
		"\x0dscaling.shift\x02\x02" + u64(2) + u64(1) + f64(0.5) + f64(zero) +
		"\x05theta\x01\x02" + u64(2) + u64(2) + f32(1) + f32(-2) + f32(0.25) + f32(float32(zero)) +
		"\x06scalar\x01\x00" + f32(3) +
		"\x05empty\x01\x02" + u64(0) + u64(7)
	digest, tail := sha256.Sum256([]byte(want)), sha256.Sum256(goldenProvenance)
	want += string(digest[:]) + u64(uint64(len(goldenProvenance))) + string(goldenProvenance) + string(tail[:])
	if got, _ := Encode("ldlf", goldenTensors, goldenProvenance); string(got) != want {
		t.Errorf("file\n got %x\nwant %x", got, want)
	}
}

// TestDigestCoversTheModelOnly: any change of the tensors or the algorithm changes
// it, the provenance does not.
func TestDigestCoversTheModelOnly(t *testing.T) {
	if _, digest := Encode("ldlf", goldenTensors, []byte("other")); digest != goldenDigest {
		t.Error("the provenance is part of the digest")
	}
	change := func(f func([]algorithms.Tensor)) string {
		file, _ := Encode("ldlf", goldenTensors, nil)
		d, err := Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		f(d.Tensors)
		return Digest("ldlf", d.Tensors)
	}
	seen := map[string]string{goldenDigest: "the golden model", Digest("sa-bfgs", goldenTensors): "the algorithm"}
	for what, f := range map[string]func([]algorithms.Tensor){
		"nothing":     func([]algorithms.Tensor) {},
		"a name":      func(v []algorithms.Tensor) { v[2].Name = "Theta" },
		"a value":     func(v []algorithms.Tensor) { v[2].F32[0] = math.Nextafter32(1, 2) },
		"a sign of 0": func(v []algorithms.Tensor) { v[2].F32[3] = 0 },
		"dimensions":  func(v []algorithms.Tensor) { v[2].Dims = []int{4, 1} },
		"a type":      func(v []algorithms.Tensor) { v[3].U32, v[3].F32 = []uint32{math.Float32bits(3)}, nil },
		"the order":   func(v []algorithms.Tensor) { v[0], v[1] = v[1], v[0] },
	} {
		digest := change(f)
		if other, ok := seen[digest]; ok != (what == "nothing") {
			t.Errorf("a change of %s gives the digest of %q", what, other)
		}
		seen[digest] = what
	}
}

func drawTensor(t *rapid.T) algorithms.Tensor {
	v := algorithms.Tensor{Name: rapid.StringN(0, 20, maxName).Draw(t, "name"), Dims: rapid.SliceOfN(rapid.IntRange(0, 3),
		0, maxDims).Draw(t, "dims")}
	n := 1
	for _, d := range v.Dims {
		n *= d
	}
	switch rapid.IntRange(0, 2).Draw(t, "type") {
	case 0:
		v.F32 = append([]float32{}, rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "values")...)
	case 1:
		v.F64 = append([]float64{}, rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "values")...)
	case 2:
		v.U32 = append([]uint32{}, rapid.SliceOfN(rapid.Uint32(), n, n).Draw(t, "values")...)
	}
	return v
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &File{
			Algorithm: rapid.StringMatching(`[a-z-]{1,20}`).Draw(t, "algorithm"), Numerics: round.Numerics,
			Provenance: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "provenance"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "tensors") {
			want.Tensors = append(want.Tensors, drawTensor(t))
		}
		file, digest := Encode(want.Algorithm, want.Tensors, want.Provenance)
		want.Digest = digest
		got, err := Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		clear(file) // the tensors share no memory with it
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestEveryFlippedBitIsFound, every cut and every byte too many.
func TestEveryFlippedBitIsFound(t *testing.T) {
	file, _ := Encode("ldlf", goldenTensors, goldenProvenance)
	refuse := func(what string, b []byte) {
		t.Helper()
		if f, err := Decode(b); !errors.Is(err, ErrCorrupt) || f != nil {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for i := range file {
		for bit := range 8 {
			b := bytes.Clone(file)
			b[i] ^= 1 << bit
			refuse(fmt.Sprintf("bit %d of byte %d flipped", bit, i), b)
		}
		refuse(fmt.Sprintf("the first %d bytes", i), file[:i:i])
	}
	refuse("a byte too many", append(bytes.Clone(file), 0))
}

// head is a file up to its tensors, whose number is n.
func head(n uint32) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), Format)
	b = binary.LittleEndian.AppendUint32(b, round.Numerics)
	return binary.LittleEndian.AppendUint32(append(b, 0), n)
}

// seal ends a file properly, whatever its tensors are.
func seal(b []byte) []byte {
	sum, tail := sha256.Sum256(b), sha256.Sum256(nil)
	b = append(b, sum[:]...)
	return append(append(b, make([]byte, 8)...), tail[:]...)
}

func tensor(dtype byte, dims []uint64, data int) []byte {
	b := []byte{1, 'x', dtype, byte(len(dims))}
	for _, d := range dims {
		b = binary.LittleEndian.AppendUint64(b, d)
	}
	return append(b, make([]byte, data)...)
}

// TestCorruptionIsNamed: the error says what is wrong, though the sums are right.
func TestCorruptionIsNamed(t *testing.T) {
	good := seal(append(head(1), tensor(dtypeF32, []uint64{2}, 8)...))
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(good)
	other[len(magic)] = 2
	flipped := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		what string
		file []byte
		says string
	}{
		{"an empty file", nil, "it does not begin with the header of a model file"},
		{"a text file", []byte("hello, this is a text"), "it does not begin with the header of a model file"},
		{"another format", other, "but this version reads format 1"},
		{"a file that ends early", good[:len(good)-40], "unexpected EOF"},
		{"a flipped bit of a tensor", flipped(len(good) - 32 - 8 - 32 - 1), "tensors do not match"},
		{"a flipped bit of the sum of the provenance", flipped(len(good) - 1), "provenance does not match"},
		{"bytes behind the end", append(bytes.Clone(good), 1), "more bytes follow after its end"},
		{"a type that is none", seal(append(head(1), tensor(9, []uint64{2}, 8)...)),
			`tensor "x" has data type 9 and 1 dimensions`},
		{"too many dimensions", seal(append(head(1), tensor(dtypeF32, make([]uint64, 9), 0)...)),
			`tensor "x" has data type 1 and 9 dimensions`},
		{"a huge tensor", seal(append(head(1), tensor(dtypeF32, []uint64{1 << 40}, 8)...)),
			`tensor "x" is larger than the file`},
		{"dimensions that wrap", seal(append(head(1), tensor(dtypeF32, []uint64{1 << 32, 1 << 32}, 8)...)),
			`tensor "x" is larger than the file`},
		{"dimensions that wrap to 1", seal(append(head(1), tensor(dtypeF32, []uint64{math.MaxUint64, math.MaxUint64}, 8)...)),
			`tensor "x" is larger than the file`},
		{"dimensions that wrap to 0", seal(append(head(1), tensor(dtypeF32, []uint64{4, 1 << 62}, 8)...)),
			`tensor "x" is larger than the file`},
		{"a negative dimension", seal(append(head(1), tensor(dtypeF32, []uint64{2, 1 << 63}, 8)...)),
			`tensor "x" is larger than the file`},
		{"more data than there is", seal(append(head(1), tensor(dtypeF64, []uint64{40}, 8)...)), "unexpected EOF"},
		{"too many tensors", seal(head(maxTensors + 1)), "1048577 tensors"},
		{"tensors that are not there", seal(head(maxTensors)), "unexpected EOF"},
	} {
		_, err := Decode(c.file)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v does not say %q", c.what, err, c.says)
		}
	}
}

// TestMistakesPanic: what no algorithm may hand over.
func TestMistakesPanic(t *testing.T) {
	for what, v := range map[string]algorithms.Tensor{
		"a long name":      {Name: strings.Repeat("x", 256), F32: []float32{1}},
		"too few values":   {Name: "x", Dims: []int{3}, F32: []float32{1, 2}},
		"no values at all": {Name: "x", Dims: []int{3}},
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "modelfile: ") {
					t.Errorf("%s: panic %q", what, text)
				}
			}()
			Encode("ldlf", []algorithms.Tensor{v}, nil)
		}()
	}
}

// FuzzDecode: a file either fails with ErrCorrupt or is encoded again to the same
// bytes (up to numerics, which are of whoever encodes); memory follows its size.
func FuzzDecode(f *testing.F) {
	file, _ := Encode("ldlf", goldenTensors, goldenProvenance)
	f.Add(file)
	f.Add(seal(append(head(1), tensor(dtypeF32, []uint64{2}, 8)...)))
	f.Add(seal(append(head(2), tensor(9, []uint64{1 << 40}, 8)...)))
	f.Add(seal(head(maxTensors)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, seal(bytes.Clone(b)), seal(append(head(3), b...))} {
			fuzzOne(t, file)
		}
	})
}

func fuzzOne(t *testing.T, file []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := Decode(file)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64*uint64(len(file))+64<<10 {
		t.Fatalf("%d bytes were allocated for a file of %d", n, len(file))
	}
	if err != nil {
		if !errors.Is(err, ErrCorrupt) || got != nil {
			t.Fatalf("error %v", err)
		}
		return
	}
	if got.Numerics != round.Numerics {
		return
	}
	if again, digest := Encode(got.Algorithm, got.Tensors, got.Provenance); !bytes.Equal(again, file) ||
		digest != got.Digest {
		t.Fatalf("encoded again as\n%x, was\n%x", again, file)
	}
}
