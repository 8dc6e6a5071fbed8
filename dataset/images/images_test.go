package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// file encodes an image as PNG.
func file(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// jpegFile encodes an image as JPEG.
func jpegFile(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// coloured is an image of two rows and three columns.
func coloured() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	for i, c := range []color.NRGBA{{R: 255, G: 0, B: 0, A: 255}, {R: 0, G: 255, B: 0, A: 255}, {R: 0, G: 0, B: 255,
		A: 255}, {R: 255, G: 255, B: 255, A: 255}, {R: 51, G: 102, B: 153, A: 255}, {R: 255, G: 255, B: 255, A: 0}} {
		m.SetNRGBA(i%3, i/3, c)
	}
	return m
}

func TestRead(t *testing.T) {
	m, err := Read(bytes.NewReader(file(t, coloured())), RGB)
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{1, 0, 0, 1, 0.2, 0, 0, 1, 0, 1, 0.4, 0, 0, 0, 1, 1, 0.6, 0}
	if m.Channels != 3 || m.Height != 2 || m.Width != 3 || !slices.Equal(m.Pixels, want) {
		t.Errorf("%+v, want %v", m, want)
	}
	m, err = Read(bytes.NewReader(file(t, coloured())), Grey)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{.299, .587, .114, 1, .299*.2 + .587*.4 + .114*.6, 0} {
		if math.Abs(float64(m.Pixels[i])-want) > 2e-5 {
			t.Errorf("grey pixel %d is %v, want %v", i, m.Pixels[i], want)
		}
	}
}

// TestGrey: what WriteGrey writes is read back within half a level, and levels of 8 bits are
// k / 255.
func TestGrey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Image{Channels: 1, Height: rapid.IntRange(1, 5).Draw(t, "height"), Width: rapid.IntRange(1, 5).Draw(t, "width")}
		for range m.Height * m.Width {
			m.Pixels = append(m.Pixels, rapid.Float32Range(-0.2, 1.2).Draw(t, "pixel"))
		}
		var b bytes.Buffer
		if err := WriteGrey(&b, m); err != nil {
			t.Fatal(err)
		}
		back, err := Read(bytes.NewReader(b.Bytes()), Grey)
		if err != nil || back.Height != m.Height || back.Width != m.Width {
			t.Fatalf("%+v, %v", back, err)
		}
		for i, v := range m.Pixels {
			if d := float64(back.Pixels[i]) - float64(max(0, min(1, v))); math.Abs(d) > 0.5001/0xffff {
				t.Errorf("pixel %d was %v and is %v", i, v, back.Pixels[i])
			}
		}
	})
	g := image.NewGray(image.Rect(0, 0, 256, 1))
	for i := range g.Pix {
		g.Pix[i] = uint8(i)
	}
	m, err := Read(bytes.NewReader(file(t, g)), Grey)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range m.Pixels {
		if v != float32(float64(i)/255) {
			t.Errorf("level %d is %v", i, v)
		}
	}
}

func TestReadJPEG(t *testing.T) {
	g := image.NewRGBA(image.Rect(0, 0, 40, 24))
	for i := range g.Pix {
		g.Pix[i] = 128
	}
	m, err := ReadSized(bytes.NewReader(jpegFile(t, g)), RGB, 6, 8)
	if err != nil || len(m.Pixels) != 3*6*8 {
		t.Fatal(err)
	}
	for _, v := range m.Pixels {
		if math.Abs(float64(v)-128.0/255) > 0.02 {
			t.Fatalf("a pixel is %v", v)
		}
	}
}

// TestResizeIsMeanOfAreas: each pixel is the mean of the area that it covers, in floating point.
func TestResizeIsMeanOfAreas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 9)
		sh, sw, dh, dw := side.Draw(t, "height"), side.Draw(t, "width"), side.Draw(t, "to height"), side.Draw(t, "to width")
		g := image.NewGray16(image.Rect(3, 5, 3+sw, 5+sh))
		for i := range g.Pix {
			g.Pix[i] = rapid.Byte().Draw(t, "level")
		}
		m := &Image{Channels: 1, Height: dh, Width: dw, Pixels: make([]float32, dh*dw)}
		newResizer(m, image.Pt(sw, sh)).run(g)
		for y := range dh {
			for x := range dw {
				want := slowMean(g, float64(y)/float64(dh), float64(y+1)/float64(dh), float64(x)/float64(dw),
					float64(x+1)/float64(dw))
				if got := float64(m.Pixels[y*dw+x]); math.Abs(got-want) > 0.51/0xffff {
					t.Errorf("pixel (%d, %d) of %d x %d from %d x %d is %v, want %v", x, y, dh, dw, sh, sw, got, want)
				}
			}
		}
	})
}

// slowMean is the mean of a part of an image, whose borders are shares of its sides.
func slowMean(g *image.Gray16, top, bottom, left, right float64) float64 {
	size, from := g.Bounds().Size(), g.Bounds().Min
	sum, all := 0.0, 0.0
	for y := range size.Y {
		for x := range size.X {
			h := min(bottom*float64(size.Y), float64(y+1)) - max(top*float64(size.Y), float64(y))
			w := min(right*float64(size.X), float64(x+1)) - max(left*float64(size.X), float64(x))
			if h > 0 && w > 0 {
				sum += h * w * float64(g.Gray16At(from.X+x, from.Y+y).Y)
				all += h * w
			}
		}
	}
	return sum / all / 0xffff
}

func TestReadMap(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 2, 1), color.Palette{color.Black, color.White, color.White})
	palette.Pix[1] = 2
	grey := image.NewGray(image.Rect(0, 0, 2, 1))
	grey.Pix[1] = 7
	wide := image.NewGray16(image.Rect(0, 0, 2, 1))
	wide.Pix[2], wide.Pix[3] = 1, 4
	for want, m := range map[string]image.Image{"0 2": palette, "0 7": grey, "0 260": wide, "#ff0000 #00ff00": coloured().
		SubImage(image.Rect(0, 0, 2, 1))} {
		got, err := ReadMap(bytes.NewReader(file(t, m)))
		if err != nil || got.Height != 1 || got.Width != 2 || got.Classes[0].String()+" "+got.Classes[1].String() != want {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	_, err := ReadMap(bytes.NewReader(jpegFile(t, grey)))
	if err == nil || !strings.Contains(err.Error(), "JPEG") {
		t.Errorf("a JPEG map: %v", err)
	}
	deep := image.NewNRGBA64(image.Rect(0, 0, 2, 1))
	if _, err := ReadMap(bytes.NewReader(file(t, deep))); !errors.Is(err, ErrFormat) {
		t.Errorf("16 bits a channel: %v", err)
	}
}

// TestPalette: numbers are kept as numbers of the palette, colours as colours, and other names
// are numbered.
func TestPalette(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{{[]string{"3", "0", "17"}, "0 3 17"}, {[]string{"sky", "tree", "sea"}, "1 0 2"},
		{[]string{"#102030", "#ffffff", "sea"}, "1 0 2"}, {[]string{"1", "01", "2"}, "1 0 2"}} {
		p, err := NewPalette(c.names)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.Write(&b, 1, 3, []uint8{1, 0, 2}); err != nil {
			t.Fatal(err)
		}
		m, err := ReadMap(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Classes[0].String() + " " + m.Classes[1].String() + " " + m.Classes[2].String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.names, got, c.want)
		}
		img, _ := png.Decode(bytes.NewReader(b.Bytes()))
		if got := color.NRGBAModel.Convert(img.At(1, 0)); c.names[0] == "#102030" &&
			got != (color.NRGBA{R: 0x10, G: 0x20, B: 0x30, A: 255}) {
			t.Errorf("%s is written as %v", c.names[0], got)
		}
	}
	for _, n := range []int{0, 257} {
		if _, err := NewPalette(make([]string, n)); err == nil {
			t.Errorf("a palette of %d classes", n)
		}
	}
	seen := map[color.RGBA]bool{}
	for i := range maxPalette {
		seen[spread(i)] = true
	}
	if len(seen) != maxPalette || spread(1) != (color.RGBA{R: 128, G: 0, B: 0, A: 255}) ||
		spread(4) != (color.RGBA{R: 0, G: 0, B: 128, A: 255}) {
		t.Errorf("%d colours, %v", len(seen), spread(1))
	}
}

func TestRefused(t *testing.T) {
	good := file(t, coloured())
	huge := bytes.Clone(file(t, image.NewGray(image.Rect(0, 0, 5000, 4000))))
	claim := bytes.Clone(good)
	claim[18], claim[22] = 1, 1 // width and height
	for name, c := range map[string]struct {
		b    []byte
		want error
		says string
	}{
		"empty":     {nil, ErrFormat, "empty"},
		"text":      {[]byte("GIF89a"), ErrFormat, "neither"},
		"cut short": {good[:len(good)-20], ErrFormat, "truncated"},
		"too large": {huge, ErrTooLarge, "5000 x 4000"},
		"claims":    {claim, ErrFormat, ""},
		"half jpeg": {jpegFile(t, coloured())[:300], ErrFormat, "truncated"},
	} {
		if _, err := Read(bytes.NewReader(c.b), Grey); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ReadMap(bytes.NewReader(c.b)); err == nil {
			t.Errorf("%s is a map", name)
		}
	}
	if _, err := Read(bytes.NewReader(good), 4); err == nil {
		t.Error("four channels")
	}
}

// FuzzRead: images and maps take at most 64 bytes for each pixel that is allowed, and 64 KiB.
func FuzzRead(f *testing.F) {
	f.Add(file(f, coloured()))
	f.Add(file(f, image.NewGray16(image.Rect(0, 0, 7, 5))))
	f.Add(file(f, image.NewPaletted(image.Rect(0, 0, 7, 5), color.Palette{color.Black, color.White})))
	f.Add(jpegFile(f, coloured()))
	f.Add(inJPEG(jpegFile(f, coloured()), exif(binary.LittleEndian, 6, false)))
	f.Add(inPNG(file(f, coloured()), exif(binary.BigEndian, 8, true), true))
	f.Add(jpegFile(f, image.NewGray(image.Rect(0, 0, 9, 9))))
	const most = 1 << 12
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 3*(64*most+16*len(b)+128<<10), "an image", func() {
			for _, wanted := range []Image{{Channels: Grey}, {Channels: RGB, Height: 5, Width: 4}} {
				m, err := read(bytes.NewReader(b), wanted, most)
				if err != nil {
					continue
				}
				if len(m.Pixels) != m.Channels*m.Height*m.Width {
					t.Fatalf("%d pixels of %d x %d x %d", len(m.Pixels), m.Channels, m.Height, m.Width)
				}
				for _, v := range m.Pixels {
					if !(v >= 0 && v <= 1) {
						t.Fatalf("a pixel is %v", v)
					}
				}
			}
			if m, err := readMap(bytes.NewReader(b), most); err == nil && len(m.Classes) != m.Height*m.Width {
				t.Fatalf("%d pixels of %d x %d", len(m.Classes), m.Height, m.Width)
			}
		})
	})
}
