package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"slices"
	"strings"
	"testing"
)

// exif is a TIFF directory with another tag and the orientation v, as a number of 16 or 32 bits.
func exif(order binary.AppendByteOrder, v uint32, long bool) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 10) // where the directory is
	b = append(b, 0, 0)
	b = order.AppendUint16(b, 2)
	b = append(order.AppendUint32(order.AppendUint16(order.AppendUint16(b, 0x010f), 2), 1), 'x', 0, 0, 0)
	b = order.AppendUint16(b, 0x0112)
	if long {
		return order.AppendUint32(order.AppendUint32(order.AppendUint16(b, 4), 1), v)
	}
	return append(order.AppendUint16(order.AppendUint32(order.AppendUint16(b, 3), 1), uint16(v)), 0, 0)
}

// inPNG puts EXIF into a PNG file: before its pixels, or after them.
func inPNG(file, exif []byte, after bool) []byte {
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(exif))), "eXIf"...)
	chunk = append(chunk, exif...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	at := len(pngStarts) + 25
	if after {
		at = len(file) - 12
	}
	return slices.Concat(file[:at], chunk, file[at:])
}

// inJPEG puts EXIF into a JPEG file, behind another segment and fill bytes.
func inJPEG(file, exif []byte) []byte {
	segment := append([]byte("Exif\x00\x00"), exif...)
	head := []byte{0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xe1, 0, 6, 'h', 't', 't', 'p', 0xff, 0xff, 0xff, 0xe1}
	head = binary.BigEndian.AppendUint16(head, uint16(len(segment)+2))
	return slices.Concat(file[:2], head, segment, file[2:])
}

// shown are the six levels, 0 to 5 fifths of white, that are shown of the rows 0 1 2 and 3 4 5 by each orientation, row
// by row.
var shown = [9]struct {
	height, width int
	levels        []int
}{
	1: {2, 3, []int{0, 1, 2, 3, 4, 5}},
	2: {2, 3, []int{2, 1, 0, 5, 4, 3}},
	3: {2, 3, []int{5, 4, 3, 2, 1, 0}},
	4: {2, 3, []int{3, 4, 5, 0, 1, 2}},
	5: {3, 2, []int{0, 3, 1, 4, 2, 5}},
	6: {3, 2, []int{3, 0, 4, 1, 5, 2}},
	7: {3, 2, []int{5, 2, 4, 1, 3, 0}},
	8: {3, 2, []int{2, 5, 1, 4, 0, 3}},
}

// TestOrientations: images are turned as each orientation says, from PNG and JPEG files, in their own size and resized.
func TestOrientations(t *testing.T) {
	const block = 8 // pixels of a level along each side, so that JPEG files keep levels
	stored := image.NewGray(image.Rect(0, 0, 3*block, 2*block))
	for i := range stored.Pix {
		stored.Pix[i] = uint8(51 * (i%stored.Stride/block + 3*(i/stored.Stride/block)))
	}
	asPNG, asJPEG := file(t, stored), jpegFile(t, stored)
	for v := 1; v <= 8; v++ {
		for name, b := range map[string][]byte{
			"PNG": inPNG(asPNG, exif(binary.BigEndian, uint32(v), false), false), "PNG, after": inPNG(asPNG,
				exif(binary.LittleEndian, uint32(v), true), true),
			"JPEG": inJPEG(asJPEG, exif(binary.LittleEndian, uint32(v), false)), "JPEG, big": inJPEG(asJPEG,
				exif(binary.BigEndian, uint32(v), true)),
		} {
			want := shown[v]
			m, err := ReadSized(bytes.NewReader(b), Grey, want.height, want.width)
			if err != nil {
				t.Fatal(err)
			}
			var levels []int
			for _, p := range m.Pixels {
				levels = append(levels, int(p*5+0.5))
			}
			whole, err := Read(bytes.NewReader(b), RGB)
			if err != nil {
				t.Fatal(err)
			}
			corner := int(whole.Pixels[whole.Width-1]*5 + 0.5)
			if !slices.Equal(levels, want.levels) || m.Turned != (v > 1) || whole.Height != want.height*block ||
				whole.Width != want.width*block || corner != want.levels[want.width-1] {
				t.Errorf("%s, orientation %d: %v, want %v; %d x %d, corner %d", name, v, levels, want.levels, whole.Width,
					whole.Height, corner)
			}
		}
	}
}

// TestNoOrientation: what is no orientation turns nothing.
func TestNoOrientation(t *testing.T) {
	upright, order := file(t, coloured()), binary.LittleEndian
	good := exif(order, 6, false)
	want, err := Read(bytes.NewReader(upright), RGB)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"0": exif(order, 0, false), "9": exif(order, 9, false), "70000": exif(order, 70000, true), "nothing": {},
		"cut short":    good[:30],
		"no directory": good[:8], "far away": append([]byte("II*\x00\xff\xff\xff\xff"), good[8:]...),
		"no TIFF": append([]byte("II+\x00"), good[4:]...),
	} {
		m, err := Read(bytes.NewReader(inPNG(upright, b, false)), RGB)
		if err != nil || m.Turned || !slices.Equal(m.Pixels, want.Pixels) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestTurnedMap: a map whose pixels are shown in another order than they are stored in is refused.
func TestTurnedMap(t *testing.T) {
	grey := file(t, image.NewGray(image.Rect(0, 0, 2, 1)))
	if _, err := ReadMap(bytes.NewReader(inPNG(grey, exif(binary.BigEndian, 3, false), false))); !errors.Is(err,
		ErrFormat) || !strings.Contains(err.Error(), "orientation") {
		t.Errorf("%v", err)
	}
	if _, err := ReadMap(bytes.NewReader(inPNG(grey, exif(binary.BigEndian, 1, false), false))); err != nil {
		t.Error(err)
	}
}
