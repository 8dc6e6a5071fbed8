package patches

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
)

// numbered is images whose pixels are numbered over all channels, and whose maps have the classes
// 0 to 2 by column and 9 in the last column.
type numbered struct{ channels, height, width, count int }

func (n numbered) Name() string        { return "numbered" }
func (n numbered) Len() int            { return n.count }
func (n numbered) NameOf(i int) string { return string(rune('a' + i)) }
func (n numbered) Channels() int       { return n.channels }

func (n numbered) Image(i int) (*images.Image, error) {
	m := &images.Image{Channels: n.channels, Height: n.height, Width: n.width}
	for k := range n.channels * n.height * n.width {
		m.Pixels = append(m.Pixels, float32(1000*i+k))
	}
	return m, nil
}

func (n numbered) Map(int) (*images.Map, error) {
	m := &images.Map{Height: n.height, Width: n.width}
	for k := range n.height * n.width {
		class := images.Class(k % n.width % 3)
		if k%n.width == n.width-1 {
			class = 9
		}
		m.Classes = append(m.Classes, class)
	}
	return m, nil
}

// rowsOf returns copies of all rows.
func rowsOf(t testing.TB, src dataset.Source) (rows []dataset.Row) {
	t.Helper()
	err := src.Scan(func(r *dataset.Row) error {
		row := *r
		row.Values, row.Labels = slices.Clone(r.Values), slices.Clone(r.Labels)
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRows: patches have the pixels and the class of their places, and the group of their image.
func TestRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		small := rapid.IntRange(1, 4)
		n := numbered{channels: rapid.SampledFrom([]int{1, 3}).Draw(rt, "channels"), height: 0, width: 0, count: 3}
		c := Cut{small.Draw(rt, "size"), small.Draw(rt, "stride")}
		n.height, n.width = c.Size+small.Draw(rt, "height"), c.Size+small.Draw(rt, "width")
		p, err := New(n, Options{Cut: c})
		if err != nil {
			rt.Fatal(err)
		}
		src := p.Rows(1, 3)
		rows, at := rowsOf(t, src), 0
		info := src.Info()
		for i := 1; i < 3; i++ {
			m, _ := n.Image(i)
			classes, _ := n.Map(i)
			for top := 0; top+c.Size <= n.height; top += c.Stride {
				for left := 0; left+c.Size <= n.width; left += c.Stride {
					r := rows[at]
					class := classes.Classes[(top+c.Size/2)*n.width+left+c.Size/2].String()
					if r.Number != at || r.Group != n.NameOf(i) || info.LabelNames[slices.Index(r.Labels, 1)] != class {
						rt.Fatalf("row %d: %+v, want class %s of %v", at, r, class, info.LabelNames)
					}
					for k, v := range r.Values {
						channel, y, x := k/c.Size/c.Size, k/c.Size%c.Size, k%c.Size
						if want := m.Pixels[(channel*n.height+top+y)*n.width+left+x]; v != float64(want) {
							rt.Fatalf("row %d, value %d is %v, want %v", at, k, v, want)
						}
					}
					at++
				}
			}
		}
		if at != len(rows) || info.Rows != at ||
			info.Shape != (dataset.Shape{Channels: n.channels, Height: c.Size, Width: c.Size}) {
			rt.Fatalf("%d rows, %d are announced, %d expected", len(rows), info.Rows, at)
		}
	})
}

func TestIgnore(t *testing.T) {
	n := numbered{channels: 1, height: 2, width: 5, count: 2}
	p, err := New(n, Options{Cut: Cut{1, 1}, Ignore: []string{"9", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	src := p.Rows(0, 2)
	if rows := rowsOf(t, src); len(rows) != 12 || src.Info().Rows != 12 ||
		!slices.Equal(src.Info().LabelNames, []string{"0", "2"}) {
		t.Errorf("%d rows, %+v", len(rows), src.Info())
	}
	if _, err := New(n, Options{Cut: Cut{1, 1}, Ignore: []string{"7"}}); err == nil {
		t.Error("a class that does not occur is ignored")
	}
	if _, err := New(n, Options{Cut: Cut{1, 1}, Ignore: []string{"0", "1", "2", "9"}}); err == nil {
		t.Error("all classes are ignored")
	}
}

// TestWhole: there is a row for each pixel, whose patch has that pixel at its centre and mirrors
// what is beyond the borders.
func TestWhole(t *testing.T) {
	m := &images.Image{Channels: 1, Height: 2, Width: 3, Pixels: []float32{0, 1, 2, 3, 4, 5}}
	src, err := Whole(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, src)
	if len(rows) != 6 || src.Info().Rows != 6 {
		t.Fatalf("%d rows", len(rows))
	}
	if want := []float64{4, 3, 4, 1, 0, 1, 4, 3, 4}; !slices.Equal(rows[0].Values, want) {
		t.Errorf("%v, want %v", rows[0].Values, want)
	}
	if want := []float64{1, 2, 1, 4, 5, 4, 1, 2, 1}; !slices.Equal(rows[5].Values, want) {
		t.Errorf("%v, want %v", rows[5].Values, want)
	}
	for _, size := range []int{1, 2, 7, 8} {
		src, err := Whole(m, size)
		if err != nil {
			t.Fatal(err)
		}
		rows := rowsOf(t, src)
		if len(rows) != 6 {
			t.Errorf("size %d: %d rows", size, len(rows))
		}
		for i, r := range rows {
			if r.Values[(size/2)*size+size/2] != float64(i) {
				t.Errorf("size %d: the centre of row %d is another pixel: %v", size, i, r.Values)
			}
		}
	}
}

func TestCheckModel(t *testing.T) {
	if n, err := CheckModel(dataset.Shape{Channels: 3, Height: 9, Width: 9}); n != 9 || err != nil {
		t.Error(n, err)
	}
	for _, s := range []dataset.Shape{{}, {Channels: 1, Height: 8, Width: 9}, {Channels: 2, Height: 9, Width: 9},
		{Channels: 1, Height: 2000, Width: 2000}} {
		if _, err := CheckModel(s); err == nil {
			t.Errorf("%v is a patch", s)
		}
	}
}

// TestTexturesPinned holds images and maps to the digests of their first version.
func TestTexturesPinned(t *testing.T) {
	set := Textures(1)
	h := sha256.New()
	for _, i := range []int{0, 59} {
		m, _ := set.Image(i)
		classes, _ := set.Map(i)
		for k, v := range m.Pixels {
			h.Write([]byte{byte(math.Float32bits(v)), byte(math.Float32bits(v) >> 8), byte(math.Float32bits(v) >> 16),
				byte(math.Float32bits(v) >> 24), byte(classes.Classes[k])})
		}
	}
	const golden = "aabf7d9bd58c123f"
	if got := hex.EncodeToString(h.Sum(nil)[:8]); got != golden {
		t.Errorf("digest %s, want %s", got, golden)
	}
}

// TestTextures: a cell's wave repeats after 4 pixels along its direction and tones have the
// deviation of wave, offset and noise; one pixel says nothing about its texture.
func TestTextures(t *testing.T) {
	set := Textures(2)
	var sum, square, count [textureKinds]float64
	for i := range set.Len() {
		m, _ := set.Image(i)
		classes, _ := set.Map(i)
		for k, v := range m.Pixels {
			c := classes.Classes[k]
			sum[c] += float64(v)
			square[c] += float64(v) * float64(v)
			count[c]++
		}
	}
	for c := range count {
		mean := sum[c] / count[c]
		if deviation := math.Sqrt(square[c]/count[c] - mean*mean); math.Abs(mean) > 0.2 || math.Abs(deviation-1) > 0.1 {
			t.Errorf("texture %d: tones %.3f ± %.3f of %v pixels, want about 0 ± 1", c, mean, deviation, count[c])
		}
	}
	for k := range textureKinds {
		one := cell{texture: k, phase: 0.3}
		sin, cos := math.Sincos(float64(k) * math.Pi / 4)
		if d := one.tone(5+4*cos, 7+4*sin) - one.tone(5, 7); math.Abs(d) > 1e-12 {
			t.Errorf("texture %d changes by %v along a wave", k, d)
		}
		if d := one.tone(5-3*sin, 7+3*cos) - one.tone(5, 7); math.Abs(d) > 1e-12 {
			t.Errorf("texture %d changes by %v across", k, d)
		}
	}
}

// put writes an image into a folder.
func put(t *testing.T, dir, name string, m image.Image) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// note notes in a PNG file that it is shown upside down (EXIF orientation 3).
func note(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = 8 + 25 // with the first chunk
	chunk := []byte("eXIfII*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00")
	size := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk))
	if err := os.WriteFile(path, slices.Concat(b[:head], size, chunk, sum, b[head:]), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	pictures, maps := filepath.Join(dir, "images"), filepath.Join(dir, "maps")
	size := image.Rect(0, 0, 4, 3)
	put(t, pictures, "b.png", image.NewGray(size))
	put(t, pictures, "a.PNG", image.NewGray(size))
	classes := image.NewNRGBA(size)
	classes.SetNRGBA(3, 2, color.NRGBA{R: 255, G: 128, B: 0, A: 255})
	put(t, maps, "a.png", classes)
	put(t, maps, "b.png", classes)
	set, err := OpenFolder(pictures, maps, images.RGB)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(set, Options{Cut: Cut{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	src := p.Rows(0, 2)
	rows := rowsOf(t, src)
	if len(rows) != 24 || rows[0].Group != "a" || rows[12].Group != "b" || len(rows[0].Values) != 3 ||
		rows[11].Labels[1] != 1 ||
		!slices.Equal(src.Info().LabelNames, []string{"#000000", "#ff8000"}) {
		t.Errorf("%d rows, %+v", len(rows), src.Info())
	}
	put(t, maps, "b.png", image.NewGray(image.Rect(0, 0, 4, 4)))
	if err := p.Rows(0, 2).Scan(func(*dataset.Row) error {
		return nil
	}); err == nil || !strings.Contains(err.Error(), "4 x 3") || !strings.Contains(err.Error(), "image b") {
		t.Errorf("a map of another size: %v", err)
	}
}

func TestFolderRefused(t *testing.T) {
	size := image.Rect(0, 0, 4, 3)
	for name, c := range map[string]struct {
		make func(pictures, maps string)
		says []string
	}{
		"no map": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(size))
			put(t, m, "b.png", image.NewGray(size))
		}, []string{"a.png", "is missing"}},
		"no image": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(size))
			put(t, m, "a.png", image.NewGray(size))
			put(t, m, "b.png", image.NewGray(size))
		}, []string{"b.png", "the image of this map is missing"}},
		"nothing": {func(p, m string) { put(t, p, "a.txt", image.NewGray(size)) }, []string{"has no file that ends"}},
		"twice": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(size))
			put(t, p, "a.jpg", image.NewGray(size))
		}, []string{"a.png", "a.jpg"}},
		"no folder": {func(p, m string) {}, []string{"images"}},
		"too small": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(size))
			put(t, m, "a.png", image.NewGray(size))
		}, []string{"4 x 3", "a"}},
		"turned": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(image.Rect(0, 0, 9, 9)))
			put(t, m, "a.png", image.NewGray(image.Rect(0, 0, 9, 9)))
			note(t, filepath.Join(p, "a.png"))
		}, []string{"a.png", "orientation (EXIF)", "mogrify -auto-orient"}},
		"turned map": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(image.Rect(0, 0, 9, 9)))
			put(t, m, "a.png", image.NewGray(image.Rect(0, 0, 9, 9)))
			note(t, filepath.Join(m, "a.png"))
		}, []string{"a.png", "orientation (EXIF)"}},
		"not a map": {func(p, m string) {
			put(t, p, "a.png", image.NewGray(size))
			os.MkdirAll(m, 0o777)
			os.WriteFile(filepath.Join(m, "a.png"), []byte("hello"), 0o666)
		}, []string{"a.png", "neither"}},
		"not a image": {func(p, m string) {
			put(t, m, "a.png", image.NewGray(image.Rect(0, 0, 9, 9)))
			os.MkdirAll(p, 0o777)
			os.WriteFile(filepath.Join(p, "a.png"), []byte("hello"), 0o666)
		}, []string{"a.png", "neither"}},
	} {
		dir := t.TempDir()
		pictures, maps := filepath.Join(dir, "images"), filepath.Join(dir, "maps")
		c.make(pictures, maps)
		set, err := OpenFolder(pictures, maps, images.Grey)
		var p *Patches
		if err == nil {
			p, err = New(set, Options{Cut: Cut{5, 1}})
		}
		if err == nil {
			err = p.Rows(0, 1).Scan(func(*dataset.Row) error { return nil })
		}
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", name, err, text)
			}
		}
	}
}

// TestNewStops: the error of Progress ends the pass over the maps.
func TestNewStops(t *testing.T) {
	end := errors.New("end")
	_, err := New(numbered{channels: 1, height: 3, width: 3, count: 2},
		Options{Cut: Cut{1, 1}, Progress: func(done, of int) error {
			return end
		}})
	if !errors.Is(err, end) {
		t.Error(err)
	}
	for _, c := range []Cut{{0, 1}, {1, 0}, {5000, 1}, {1, 5000}} {
		if _, err := New(numbered{channels: 1, height: 3, width: 3, count: 2}, Options{Cut: c}); err == nil {
			t.Errorf("%+v", c)
		}
	}
}
