package matfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// readAll reads every array that it can and returns the numbers and strings.
func readAll(b []byte) (numbers map[string][]float64, texts map[string][]string, err error) {
	numbers, texts = map[string][]float64{}, map[string][]string{}
	r, err := matfile.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil, err
	}
	for {
		a, err := r.Next()
		if errors.Is(err, io.EOF) {
			return numbers, texts, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch {
		case a.Class == matfile.Sparse:
			m, err := a.ReadSparse(1 << 20)
			if err != nil {
				return nil, nil, err
			}
			numbers[a.Name] = m.Values
		case a.Numeric() && a.Rows*a.Columns == 0: // without an element of numbers
		case a.Numeric():
			h, in, err := a.Numbers()
			if err != nil {
				return nil, nil, err
			}
			r := npy.NewReaderOf(h, in)
			for range min(a.Rows*a.Columns, 1<<20) {
				var v [1]float64
				if err := r.ReadFloats(v[:]); err != nil {
					return nil, nil, err
				}
				numbers[a.Name] = append(numbers[a.Name], v[0])
			}
			if err := r.End(); err != nil {
				return nil, nil, err
			}
		default:
			if texts[a.Name], err = a.Strings(); err != nil {
				return nil, nil, err
			}
		}
	}
}

func eachKind(f func(*mattest.File)) {
	for _, big := range []bool{false, true} {
		for _, compress := range []bool{false, true} {
			f(&mattest.File{Big: big, Compress: compress})
		}
	}
}

func sample(f *mattest.File) []byte {
	f.AddDoubles("m", 2, 3, 1, 2, 3, 4, 5, 6)
	f.AddBytes("small", 1, 3, 7, 8, 9)
	f.AddBytes("bytes", 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 255)
	f.AddSparse("s", 4, 3, []int32{0, 3, 2, 9}, []int32{0, 2, 2, 3}, []float64{5, -6, 7.5, 0})
	f.AddCells("cells", "calm", "", "Zoë")
	f.Add(f.Head(6, "empty", 0, 0))
	return f.Bytes()
}

func TestRead(t *testing.T) {
	eachKind(func(f *mattest.File) {
		b := sample(f)
		// An empty array has an element without data.
		numbers, texts, err := readAll(b)
		if err != nil {
			t.Fatalf("big %v, compressed %v: %v", f.Big, f.Compress, err)
		}
		for name, want := range map[string][]float64{
			"m": {1, 2, 3, 4, 5, 6}, "small": {7, 8, 9}, "bytes": {1, 2, 3, 4, 5, 6, 7, 8, 255}, "s": {5, -6, 7.5},
		} {
			if !slices.Equal(numbers[name], want) {
				t.Errorf("%s: %v, want %v", name, numbers[name], want)
			}
		}
		if want := []string{"calm", "", "Zoë"}; !slices.Equal(texts["cells"], want) {
			t.Errorf("%q, want %q", texts["cells"], want)
		}
	})
}

// Every numeric type that MATLAB stores, with its greatest and least value.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		kind uint32
		data any
		want []float64
	}{
		{1, []int8{-128, 127}, []float64{-128, 127}},
		{2, []uint8{0, 255}, []float64{0, 255}},
		{3, []int16{-32768, 32767}, []float64{-32768, 32767}},
		{4, []uint16{0, 65535}, []float64{0, 65535}},
		{5, []int32{-1 << 31, 1<<31 - 1}, []float64{-1 << 31, 1<<31 - 1}},
		{6, []uint32{0, 1<<32 - 1}, []float64{0, 1<<32 - 1}},
		{7, []float32{-1.5, 3e38}, []float64{-1.5, float64(float32(3e38))}},
		{9, []float64{-1e300, 0.1}, []float64{-1e300, 0.1}},
		{12, []int64{-1 << 63, 1 << 53}, []float64{-1 << 63, 1 << 53}},
		{13, []uint64{0, 1 << 63}, []float64{0, 1 << 63}},
	} {
		eachKind(func(f *mattest.File) {
			var order binary.ByteOrder = binary.LittleEndian
			if f.Big {
				order = binary.BigEndian
			}
			var data bytes.Buffer
			binary.Write(&data, order, c.data)
			f.Add(append(f.Head(6, "v", 1, 2), f.Element(c.kind, data.Bytes())...))
			numbers, _, err := readAll(f.Bytes())
			if err != nil || !slices.Equal(numbers["v"], c.want) {
				t.Errorf("type %d: %v, %v, want %v", c.kind, numbers["v"], err, c.want)
			}
		})
	}
}

func TestCharacterMatrix(t *testing.T) {
	f := &mattest.File{}
	f.Add(append(f.Head(4, "names", 2, 3), f.Element(16, []byte("abce  "))...)) // columns ab, ce, two blanks
	_, texts, err := readAll(f.Bytes())
	if want := []string{"ac", "be"}; err != nil || !slices.Equal(texts["names"], want) {
		t.Errorf("%q, %v", texts["names"], err)
	}
}

func TestSkippedArrays(t *testing.T) {
	eachKind(func(f *mattest.File) {
		r, err := matfile.NewReader(bytes.NewReader(sample(f)))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for {
			a, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, a.Name)
		}
		if want := []string{"m", "small", "bytes", "s", "cells", "empty"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
	})
}

func TestOtherFiles(t *testing.T) {
	v73 := append([]byte("MATLAB 7.3 MAT-file, Platform: GLNXA64"), make([]byte, 600)...)
	version2 := (&mattest.File{}).Bytes()
	version2[125] = 2
	version9 := (&mattest.File{}).Bytes()
	version9[125] = 9
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":     {nil, matfile.ErrFormat},
		"text":        {[]byte("row,fold\n"), matfile.ErrFormat},
		"zeros":       {make([]byte, 500), matfile.ErrFormat},
		"HDF5":        {append([]byte("\x89HDF\r\n\x1a\n"), make([]byte, 200)...), matfile.ErrHDF5},
		"v7.3":        {v73, matfile.ErrHDF5},
		"version 2":   {version2, matfile.ErrHDF5},
		"v4":          {v4(binary.LittleEndian, 0), matfile.ErrV4},
		"v4, big":     {v4(binary.BigEndian, 1000), matfile.ErrV4},
		"no v4":       {v4(binary.BigEndian, 7000), matfile.ErrFormat},
		"version 9":   {version9, matfile.ErrFormat},
		"half a head": {version9[:60], matfile.ErrTruncated},
	} {
		if _, err := matfile.NewReader(bytes.NewReader(c.b)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestTruncated(t *testing.T) {
	eachKind(func(f *mattest.File) {
		f.AddDoubles("m", 2, 3, 1, 2, 3, 4, 5, 6)
		b := f.Bytes()
		for n := range len(b) {
			_, _, err := readAll(b[:n])
			if n == 128 { // a file without arrays
				if err != nil {
					t.Error(err)
				}
				continue
			}
			if !errors.Is(err, matfile.ErrTruncated) && !errors.Is(err, matfile.ErrFormat) {
				t.Fatalf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	})
}

func TestDamagedChecksum(t *testing.T) {
	f := &mattest.File{Compress: true}
	f.AddDoubles("m", 2, 3, 1, 2, 3, 4, 5, 6)
	b := f.Bytes()
	b[len(b)-1] ^= 1
	if _, _, err := readAll(b); !errors.Is(err, matfile.ErrFormat) {
		t.Errorf("%v", err)
	}
}

func TestDamagedArrays(t *testing.T) {
	for name, add := range map[string]func(*mattest.File){
		"few values":     func(f *mattest.File) { f.AddDoubles("m", 2, 3, 1, 2, 3, 4, 5) },
		"many values":    func(f *mattest.File) { f.AddDoubles("m", 1, 1, 1, 2) },
		"huge":           func(f *mattest.File) { f.AddDoubles("m", 1<<30, 1<<30, 1) },
		"negative":       func(f *mattest.File) { f.AddDoubles("m", -1, 3, 1) },
		"one dimension":  func(f *mattest.File) { f.Add(append(f.Head(6, "m", 2), f.Doubles(1, 2)...)) },
		"three":          func(f *mattest.File) { f.Add(append(f.Head(6, "m", 1, 1, 2), f.Doubles(1, 2)...)) },
		"complex":        func(f *mattest.File) { f.Add(append(f.Head(6|0x0800, "m", 1, 2), f.Doubles(1, 2)...)) },
		"structure":      func(f *mattest.File) { f.Add(f.Head(2, "m", 1, 2)) },
		"opaque":         func(f *mattest.File) { f.Add(f.Head(17, "m", 1, 2)) },
		"sparse row":     func(f *mattest.File) { f.AddSparse("m", 2, 1, []int32{2}, []int32{0, 1}, []float64{1}) },
		"sparse order":   func(f *mattest.File) { f.AddSparse("m", 2, 1, []int32{1, 0}, []int32{0, 2}, []float64{1, 1}) },
		"sparse starts":  func(f *mattest.File) { f.AddSparse("m", 2, 2, []int32{0, 1}, []int32{0, 2, 1}, []float64{1, 1}) },
		"sparse columns": func(f *mattest.File) { f.AddSparse("m", 2, 2, []int32{0, 1}, []int32{0, 1}, []float64{1, 1}) },
		"sparse values":  func(f *mattest.File) { f.AddSparse("m", 2, 1, []int32{0, 1}, []int32{0, 2}, []float64{1}) },
		"sparse minus":   func(f *mattest.File) { f.AddSparse("m", 2, 1, []int32{-1}, []int32{0, 1}, []float64{1}) },
		"cell of number": func(f *mattest.File) {
			inside := append(f.Head(6, "", 1, 1), f.Doubles(1)...)
			f.Add(append(f.Head(1, "m", 1, 1), f.Element(14, inside)...))
		},
	} {
		f := &mattest.File{}
		add(f)
		if _, _, err := readAll(f.Bytes()); !errors.Is(err, matfile.ErrFormat) && !errors.Is(err, matfile.ErrKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	eachKind(func(m *mattest.File) { f.Add(sample(m)) })
	eachKind(func(m *mattest.File) {
		objects(m)
		m.AddCells("names", "a😀", "")
		f.Add(m.Bytes())
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<16 { // zlib inflates to a thousand times as much
			allocs.AtMost(t, 32*1100*len(b)+1<<20, "a MAT file", func() { readAll(b) })
		}
	})
}

// v4 is a matrix as MATLAB v4 writes it: one double named x.
func v4(order binary.AppendByteOrder, kind uint32) []byte {
	var b []byte
	for _, v := range []uint32{kind, 1, 1, 0, 2} { // type, rows, columns, complex, length of the name
		b = order.AppendUint32(b, v)
	}
	b = append(b, "x\x00"...)
	return order.AppendUint64(b, math.Float64bits(1))
}

func TestClassNames(t *testing.T) {
	for class, want := range map[matfile.Class]string{
		matfile.Cell: "cell", matfile.Sparse: "sparse double", matfile.Double: "double", matfile.Uint64: "uint64",
		0: "unknown", 99: "unknown",
	} {
		if got := class.String(); got != want {
			t.Errorf("class %d is %q, want %q", class, got, want)
		}
	}
}
