package npy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/allocs"
	npyio "github.com/sbinet/npyio/npy"
)

// file makes an array by hand: a header with the given text, then the data.
func file(header string, data any) []byte {
	b := append([]byte("\x93NUMPY"), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)+1))
	b = append(append(b, header...), '\n')
	var body bytes.Buffer
	order := binary.ByteOrder(binary.LittleEndian)
	if bytes.Contains(b, []byte("'>")) {
		order = binary.BigEndian
	}
	binary.Write(&body, order, data)
	return append(b, body.Bytes()...)
}

func dict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		descr string
		data  any
		want  []float64
	}{
		{"<f4", []float32{-1.5, 3}, []float64{-1.5, 3}},
		{">f4", []float32{-1.5, 3}, []float64{-1.5, 3}},
		{"<f8", []float64{-0.1, 1e300}, []float64{-0.1, 1e300}},
		{">f8", []float64{-0.1, 1e300}, []float64{-0.1, 1e300}},
		{"|b1", []uint8{0, 1}, []float64{0, 1}},
		{"|i1", []int8{-128, 127}, []float64{-128, 127}},
		{"|u1", []uint8{0, 255}, []float64{0, 255}},
		{"<i2", []int16{-32768, 2}, []float64{-32768, 2}},
		{">u2", []uint16{0, 65535}, []float64{0, 65535}},
		{"<i4", []int32{-1 << 31, 2}, []float64{-1 << 31, 2}},
		{"<u4", []uint32{0, 1<<32 - 1}, []float64{0, 1<<32 - 1}},
		{"<i8", []int64{-1 << 63, 2}, []float64{-1 << 63, 2}},
		{">u8", []uint64{0, 1 << 63}, []float64{0, 1 << 63}},
	} {
		r, err := npy.NewReader(bytes.NewReader(file(dict(c.descr, "False", "(2,)"), c.data)))
		if err != nil {
			t.Errorf("%s: %v", c.descr, err)
			continue
		}
		got := make([]float64, 2)
		if err := errors.Join(r.ReadFloats(got), r.End()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.descr, got, err, c.want)
		}
	}
}

func TestHeader(t *testing.T) {
	r, err := npy.NewReader(bytes.NewReader(file("{'shape': (3L, 40), 'fortran_order': True, 'descr': '<f8'}", []byte{})))
	if err != nil {
		t.Fatal(err)
	}
	rows, columns, ok := r.Dims()
	if rows != 3 || columns != 40 || !ok || !r.Fortran || r.Kind != 'f' || r.Size != 8 {
		t.Errorf("%+v", r.Header)
	}
}

func TestDamage(t *testing.T) {
	good := file(dict("<f8", "False", "(2,)"), []float64{1, 2})
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":       {nil, npy.ErrFormat},
		"text":          {[]byte("row,fold\n1,2\n"), npy.ErrFormat},
		"version 9":     {append([]byte("\x93NUMPY\x09\x00"), good[8:]...), npy.ErrFormat},
		"half header":   {good[:20], npy.ErrTruncated},
		"half data":     {good[:len(good)-1], npy.ErrTruncated},
		"more data":     {append(bytes.Clone(good), 0), npy.ErrFormat},
		"no shape":      {file("{'descr': '<f8', 'fortran_order': False}", []byte{}), npy.ErrFormat},
		"no end":        {file("{'descr': '<f8', 'fortran_order': False, 'shape': (2,", []byte{}), npy.ErrFormat},
		"negative":      {file(dict("<f8", "False", "(-2,)"), []byte{}), npy.ErrFormat},
		"order":         {file(dict("<f8", "Maybe", "(2,)"), []byte{}), npy.ErrFormat},
		"long doubles":  {file(dict("<f16", "False", "(2,)"), []byte{}), npy.ErrType},
		"complex":       {file(dict("<c8", "False", "(2,)"), []byte{}), npy.ErrType},
		"objects":       {file(dict("|O", "False", "(2,)"), []byte{}), npy.ErrType},
		"structure":     {file("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}", []byte{}), npy.ErrType},
		"strings":       {file(dict("<U3", "False", "(2,)"), make([]byte, 24)), npy.ErrType},
		"claimed bytes": {file(dict("<f8", "False", "(999999999999,)"), []float64{1}), npy.ErrTruncated},
	} {
		if err := readFloats(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestHalf: floats of 16 bits: one, minus two, the greatest, the least normal and
// the least above 0, minus 0, and what is not finite.
func TestHalf(t *testing.T) {
	bits := []uint16{0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x3555}
	want := []float64{1, -2, 65504, 0x1p-14, 0x1p-24, 0, math.Inf(1), math.Inf(-1), math.NaN(), 0.333251953125}
	r, err := npy.NewReader(bytes.NewReader(file(dict("<f2", "False", "(10,)"), bits)))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float64, len(bits))
	if err := r.ReadFloats(got); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != want[i] && !(math.IsNaN(v) && math.IsNaN(want[i])) {
			t.Errorf("%#04x is %v, want %v", bits[i], v, want[i])
		}
	}
}

func readFloats(b []byte) error {
	r, err := npy.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	rows, columns, _ := r.Dims()
	for range min(rows*columns, 1<<20) {
		if err := r.ReadFloats(make([]float64, 1)); err != nil {
			return err
		}
	}
	return r.End()
}

func TestStrings(t *testing.T) {
	want := []string{"calm", "", "Zoë", "日本"}
	var b bytes.Buffer
	each := func(f func(string) error) (err error) {
		for _, s := range want {
			err = errors.Join(err, f(s))
		}
		return err
	}
	if err := npy.WriteStrings(&b, len(want), each); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][]byte{
		"U": b.Bytes(),
		"S": file(dict("|S6", "False", "(4,)"), []byte("calm\x00\x00\x00\x00\x00\x00\x00\x00Zoë\x00\x00日本")),
	} {
		r, err := npy.NewReader(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadStrings(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestStringErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"numbers":    file(dict("<f8", "False", "(1,)"), []float64{1}),
		"truncated":  file(dict("<U3", "False", "(2,)"), make([]byte, 23)),
		"dimensions": file(dict("<U3", "False", "(1, 2)"), make([]byte, 24)),
		"empty":      file(dict("<U0", "False", "(999999999,)"), []byte{}),
	} {
		r, err := npy.NewReader(bytes.NewReader(b))
		if err == nil {
			_, err = r.ReadStrings()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What we write, another implementation reads, and the other way round.
func TestAgainstNpyio(t *testing.T) {
	want := []float32{1, -2.5, 3e-20, 0, 5, 6}
	var b bytes.Buffer
	w, err := npy.NewWriter[float32](&b, 2, 3)
	if err := errors.Join(err, w.Write(want[:4]), w.Write(want[4:]), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexByte(b.Bytes(), '\n') + 1; i%64 != 0 {
		t.Errorf("the elements begin at %d", i)
	}
	theirs, err := npyio.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	if err := theirs.Read(&got); err != nil || !slices.Equal(got, want) ||
		!slices.Equal(theirs.Header.Descr.Shape, []int{2, 3}) {
		t.Errorf("%v, %v, %+v", got, err, theirs.Header)
	}
	b.Reset()
	if err := npyio.Write(&b, []float64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	ours, err := npy.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	back := make([]float64, 3)
	if err := errors.Join(ours.ReadFloats(back), ours.End()); err != nil || !slices.Equal(back, []float64{1, 2, 3}) {
		t.Errorf("%v, %v", back, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(dict("<f8", "False", "(2,)"), []float64{1, 2}))
	f.Add(file(dict(">i2", "True", "(1, 2)"), []int16{1, 2}))
	f.Add(file(dict("<U3", "False", "(2,)"), make([]byte, 24)))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 256*len(b)+8<<20, "an array", func() {
			readFloats(b)
			if r, err := npy.NewReader(bytes.NewReader(b)); err == nil {
				r.ReadStrings()
			}
		})
	})
}
