// Package images reads PNG and JPEG files as numbers, and reads and writes maps that have a class
// for each pixel. All arithmetic is with whole numbers until the last division, so that a file
// gives the same numbers on every machine.
package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
)

// The numbers of channels that images are read with.
const (
	Grey = 1
	RGB  = 3
)

// Image is numbers from 0 (black) to 1, channel by channel, each row of pixels after the one
// above it: pixel (x, y) of channel c is Pixels[(c·Height + y)·Width + x].
type Image struct {
	Channels, Height, Width int
	Pixels                  []float32
	// Turned is true if the image is stored in another orientation than it is shown in.
	Turned bool
}

// Read reads a PNG or JPEG image with so many channels, Grey or RGB, in its own size. Transparent
// pixels are blended with black, and an image is turned as its camera noted (the tag Orientation of EXIF).
func Read(in io.ReadSeeker, channels int) (*Image, error) {
	return read(in, Image{Channels: channels}, MaxPixels)
}

// ReadSized is Read, resized to so many pixels by the mean of the area that each of them covers.
func ReadSized(in io.ReadSeeker, channels, height, width int) (*Image, error) {
	return read(in, Image{Channels: channels, Height: height, Width: width}, MaxPixels)
}

// read reads an image in the size of wanted, or in its own if that has none.
func read(in io.ReadSeeker, wanted Image, most int) (*Image, error) {
	if wanted.Channels != Grey && wanted.Channels != RGB {
		return nil, fmt.Errorf("images are read with 1 channel (grey) or 3 channels (red, green, blue), not with %d",
			wanted.Channels)
	}
	d, err := newDecoder(in, most)
	if err != nil {
		return nil, err
	}
	decoded, err := d.decode()
	if err != nil {
		return nil, err
	}
	src, ok := decoded.(image.RGBA64Image)
	if !ok {
		return nil, fmt.Errorf("the pixels of the image have an unknown type: %w", ErrFormat)
	}
	by, err := d.orientation()
	if err != nil {
		return nil, err
	}
	if by != upright {
		src, wanted.Turned = &turned{src, by}, true
	}
	size := src.Bounds().Size()
	if wanted.Height == 0 {
		wanted.Height, wanted.Width = size.Y, size.X
	}
	wanted.Pixels = make([]float32, wanted.Channels*wanted.Height*wanted.Width)
	if size.Y == wanted.Height && size.X == wanted.Width {
		wanted.copyFrom(src)
	} else {
		newResizer(&wanted, size).run(src)
	}
	return &wanted, nil
}

// copyFrom takes over the pixels of an image of the same size.
func (m *Image) copyFrom(src image.RGBA64Image) {
	row, area := make([]uint16, m.Channels*m.Width), m.Height*m.Width
	for y := range m.Height {
		levels(row, src, y, m.Channels)
		for c := range m.Channels {
			for x := range m.Width {
				m.Pixels[c*area+y*m.Width+x] = share(row[x*m.Channels+c])
			}
		}
	}
}

// levels reads row y of an image: the levels of a pixel's channels stand together.
func levels(dst []uint16, src image.RGBA64Image, y, channels int) {
	from := src.Bounds().Min
	for i := 0; i < len(dst); i += channels {
		p := src.RGBA64At(from.X+i/channels, from.Y+y)
		if channels == Grey {
			// .299 R + .587 G + .114 B (ITU-R BT.601), as in image/color
			dst[i] = uint16((19595*uint32(p.R) + 38470*uint32(p.G) + 7471*uint32(p.B) + 1<<15) >> 16)
		} else {
			dst[i], dst[i+1], dst[i+2] = p.R, p.G, p.B
		}
	}
}

// share is a level of 16 bits as a number from 0 to 1.
func share(level uint16) float32 { return float32(float64(level) / 0xffff) }

// Errors of this package; compare with errors.Is.
var (
	// ErrFormat says that a file is no image that can be read.
	ErrFormat = errors.New("not an image that can be read")
	// ErrTooLarge says that an image has more pixels than can be read.
	ErrTooLarge = errors.New("the image is too large")
)

// MaxPixels bounds the pixels of a file, which take up to 16 bytes each while it is read.
const MaxPixels = 1 << 24

// perByte bounds the pixels for each byte of a file. Deflate makes at most 1,032 bytes of one, and
// a byte holds at most eight pixels of a PNG; JPEG stays far below.
const perByte = 8 * 1032

// kind is a kind of file.
type kind struct {
	name   string
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

// The kinds of files, and how they begin.
var (
	pngFiles, jpegFiles   = kind{"PNG", png.DecodeConfig, png.Decode}, kind{"JPEG", jpeg.DecodeConfig, jpeg.Decode}
	pngStarts, jpegStarts = []byte("\x89PNG\r\n\x1a\n"), []byte("\xff\xd8\xff")
)

// kindOf returns the kind of a file by its first bytes.
func kindOf(in io.Reader) (*kind, error) {
	head := make([]byte, len(pngStarts))
	n, err := io.ReadFull(in, head)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case bytes.Equal(head, pngStarts):
		return &pngFiles, nil
	case bytes.HasPrefix(head[:n], jpegStarts):
		return &jpegFiles, nil
	case n == 0:
		return nil, fmt.Errorf("the file is empty: %w", ErrFormat)
	}
	return nil, fmt.Errorf("the file is neither PNG nor JPEG: %w", ErrFormat)
}

// decoder reads a file from its beginning, again and again.
type decoder struct {
	in    io.ReadSeeker
	most  int // pixels
	bytes int64
	kind  *kind
}

// newDecoder finds out what kind of file there is.
func newDecoder(in io.ReadSeeker, most int) (*decoder, error) {
	d := &decoder{in: in, most: most}
	var err error
	if d.bytes, err = in.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	if err := d.rewind(); err != nil {
		return nil, err
	}
	d.kind, err = kindOf(in)
	return d, err
}

func (d *decoder) rewind() error {
	_, err := d.in.Seek(0, io.SeekStart)
	return err
}

// decode reads the image once its size is known to be possible.
func (d *decoder) decode() (image.Image, error) {
	if err := d.rewind(); err != nil {
		return nil, err
	}
	c, err := d.kind.config(d.in)
	if err != nil {
		return nil, d.failed(err)
	}
	switch { // too large for this program, or for a file of so many bytes
	case c.Width < 1 || c.Height < 1:
		return nil, fmt.Errorf("an image of %d x %d pixels is not possible: %w", c.Width, c.Height, ErrFormat)
	case c.Height > d.most/c.Width:
		return nil, fmt.Errorf("the image has %d x %d pixels (width x height), at most %d pixels are allowed: make the "+
			"image smaller: %w", c.Width, c.Height, d.most, ErrTooLarge)
	case int64(c.Width)*int64(c.Height)/perByte > d.bytes:
		return nil, fmt.Errorf("the file is damaged: %d x %d pixels do not fit in %d bytes: %w", c.Width, c.Height,
			d.bytes, ErrFormat)
	}
	if err := d.rewind(); err != nil {
		return nil, err
	}
	img, err := d.kind.decode(d.in)
	if err != nil {
		return nil, d.failed(err)
	}
	if b := img.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return nil, fmt.Errorf("the %s file is damaged: its header says %d x %d pixels, but it has %d x %d: %w", d.kind.name,
			c.Width, c.Height, b.Dx(), b.Dy(), ErrFormat)
	}
	return img, nil
}

// failed says what is wrong with the bytes.
func (d *decoder) failed(err error) error {
	var damaged png.FormatError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &damaged) &&
		string(damaged) == io.ErrUnexpectedEOF.Error() {
		return fmt.Errorf("the %s file is truncated: %w", d.kind.name, ErrFormat)
	}
	return fmt.Errorf("%w: %w", err, ErrFormat)
}

// resizer makes each pixel of dst the mean of the area of the source that it covers. Along a
// side of s source pixels and d pixels of dst, a source pixel is d units long and one of dst s
// units, so that overlaps are whole numbers; sums stay below 2^16 · MaxPixels.
type resizer struct {
	dst  *Image
	size image.Point // of the source
	row  []uint16    // levels of a row of the source
	line []uint64    // sums along that row, by pixel of dst and channel
	sums []uint64    // by pixel of dst and channel
}

func newResizer(dst *Image, size image.Point) *resizer {
	return &resizer{
		dst: dst, size: size, row: make([]uint16, dst.Channels*size.X), line: make([]uint64, dst.Channels*dst.Width),
		sums: make([]uint64, len(dst.Pixels)),
	}
}

// run sets the pixels of dst.
func (r *resizer) run(src image.RGBA64Image) {
	dst, along := r.dst, overlaps(r.size.X, r.dst.Width)
	read := -1
	for _, o := range overlaps(r.size.Y, dst.Height) {
		if o.from != read {
			read = o.from
			levels(r.row, src, read, dst.Channels)
			clear(r.line)
			for _, a := range along {
				line, row := r.line[a.to*dst.Channels:(a.to+1)*dst.Channels], r.row[a.from*dst.Channels:(a.from+1)*dst.Channels]
				for c, v := range row {
					line[c] += a.units * uint64(v)
				}
			}
		}
		sums := r.sums[o.to*len(r.line) : (o.to+1)*len(r.line)]
		for k, v := range r.line {
			sums[k] += o.units * v
		}
	}
	all, area := uint64(r.size.X)*uint64(r.size.Y), dst.Height*dst.Width
	for i, sum := range r.sums {
		dst.Pixels[i%dst.Channels*area+i/dst.Channels] = share(uint16((sum + all/2) / all))
	}
}

// overlap says how many units pixel from of the source and pixel to of the result have together.
type overlap struct {
	from, to int
	units    uint64
}

// overlaps lists the overlaps along a side of s pixels that becomes one of d, in ascending order.
func overlaps(s, d int) []overlap {
	list := make([]overlap, 0, s+d)
	for from, to := 0, 0; from < s && to < d; {
		end := min((from+1)*d, (to+1)*s)
		list = append(list, overlap{from, to, uint64(end - max(from*d, to*s))})
		if end == (from+1)*d {
			from++
		}
		if end == (to+1)*s {
			to++
		}
	}
	return list
}

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
