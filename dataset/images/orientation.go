package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"
)

// orientation is how a camera noted that an image is to be shown: the tag Orientation of EXIF, from 1 to 8.
type orientation int

// upright is the orientation of an image that is shown as it is stored.
const upright orientation = 1

// swapped reports whether an image that is turned has the height of the stored one as its width.
func (o orientation) swapped() bool { return o >= 5 }

// from returns the pixel of the stored image, of so many pixels, that is shown at (x, y).
func (o orientation) from(x, y, width, height int) (sx, sy int) {
	if o.swapped() {
		x, y = y, x
	}
	if o == 2 || o == 3 || o == 7 || o == 8 {
		x = width - 1 - x
	}
	if o == 3 || o == 4 || o == 6 || o == 7 {
		y = height - 1 - y
	}
	return x, y
}

// turned is an image as it is shown.
type turned struct {
	image.RGBA64Image
	by orientation
}

// Bounds implements image.Image.
func (t *turned) Bounds() image.Rectangle {
	size := t.RGBA64Image.Bounds().Size()
	if t.by.swapped() {
		size.X, size.Y = size.Y, size.X
	}
	return image.Rectangle{Max: size}
}

// RGBA64At implements image.RGBA64Image.
func (t *turned) RGBA64At(x, y int) color.RGBA64 {
	b := t.RGBA64Image.Bounds()
	sx, sy := t.by.from(x, y, b.Dx(), b.Dy())
	return t.RGBA64Image.RGBA64At(b.Min.X+sx, b.Min.Y+sy)
}

// maxEXIF bounds the bytes of EXIF that are read: a segment of a JPEG file has at most so many.
const maxEXIF = 1 << 16

// orientation reads the orientation that the file notes; damaged or missing notes say that it is upright.
func (d *decoder) orientation() (orientation, error) {
	if err := d.rewind(); err != nil {
		return upright, err
	}
	find := jpegEXIF
	if d.kind == &pngFiles {
		find = pngEXIF
	}
	exif, err := find(d.in)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // decode tells a file that is cut short
		return upright, nil
	}
	return orientationOf(exif), err
}

var exifStart = []byte("Exif\x00\x00")

// jpegEXIF returns the first EXIF segment before the pixels of a JPEG file; nil: there is none.
func jpegEXIF(in io.ReadSeeker) ([]byte, error) {
	const startOfScan, endOfImage, app1 = 0xda, 0xd9, 0xe1
	if _, err := in.Seek(2, io.SeekStart); err != nil {
		return nil, err
	}
	for {
		var head [4]byte // 0xff, marker, length
		if _, err := io.ReadFull(in, head[:2]); err != nil {
			return nil, err
		}
		for head[0] == 0xff && head[1] == 0xff { // fill bytes
			if _, err := io.ReadFull(in, head[1:2]); err != nil {
				return nil, err
			}
		}
		if head[0] != 0xff || head[1] == startOfScan || head[1] == endOfImage {
			return nil, nil
		}
		if _, err := io.ReadFull(in, head[2:]); err != nil {
			return nil, err
		}
		size := int(binary.BigEndian.Uint16(head[2:])) - 2
		if size < 0 {
			return nil, nil
		}
		if head[1] != app1 {
			if _, err := in.Seek(int64(size), io.SeekCurrent); err != nil {
				return nil, err
			}
			continue
		}
		segment := make([]byte, size)
		if _, err := io.ReadFull(in, segment); err != nil {
			return nil, err
		}
		if exif, ok := bytes.CutPrefix(segment, exifStart); ok {
			return exif, nil
		}
	}
}

// pngEXIF returns the chunk eXIf of a PNG file; nil: there is none.
func pngEXIF(in io.ReadSeeker) ([]byte, error) {
	if _, err := in.Seek(int64(len(pngStarts)), io.SeekStart); err != nil {
		return nil, err
	}
	for {
		var head [8]byte // length, type
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil, err
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		switch string(head[4:]) {
		case "IEND":
			return nil, nil
		case "eXIf":
			exif := make([]byte, min(size, maxEXIF))
			_, err := io.ReadFull(in, exif)
			return exif, err
		}
		if _, err := in.Seek(size+4, io.SeekCurrent); err != nil { // and its checksum
			return nil, err
		}
	}
}

// orientationOf reads the tag Orientation of the first directory of EXIF, which is a TIFF file without pixels.
func orientationOf(exif []byte) orientation {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(exif, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(exif, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return upright
	}
	const tag, entry, short, long = 0x0112, 12, 3, 4
	if len(exif) < 8 {
		return upright
	}
	at := int64(order.Uint32(exif[4:]))
	if at+2 > int64(len(exif)) {
		return upright
	}
	n, entries := int(order.Uint16(exif[at:])), exif[at+2:]
	for ; n > 0 && len(entries) >= entry; n, entries = n-1, entries[entry:] {
		if order.Uint16(entries) != tag {
			continue
		}
		v := uint32(0)
		switch order.Uint16(entries[2:]) {
		case short:
			v = uint32(order.Uint16(entries[8:]))
		case long: // as some programs write it
			v = order.Uint32(entries[8:])
		}
		if v >= 1 && v <= 8 {
			return orientation(v)
		}
		break
	}
	return upright
}
