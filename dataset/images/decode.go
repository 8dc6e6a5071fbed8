package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
)

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
		return nil, fmt.Errorf("the image has %d x %d pixels (width x height), at most %d pixels are allowed: make the image smaller: %w", c.Width, c.Height, d.most, ErrTooLarge)
	case int64(c.Width)*int64(c.Height)/perByte > d.bytes:
		return nil, fmt.Errorf("the file is damaged: %d x %d pixels do not fit in %d bytes: %w", c.Width, c.Height, d.bytes, ErrFormat)
	}
	if err := d.rewind(); err != nil {
		return nil, err
	}
	img, err := d.kind.decode(d.in)
	if err != nil {
		return nil, d.failed(err)
	}
	if b := img.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return nil, fmt.Errorf("the %s file is damaged: its header says %d x %d pixels, but it has %d x %d: %w", d.kind.name, c.Width, c.Height, b.Dx(), b.Dy(), ErrFormat)
	}
	return img, nil
}

// failed says what is wrong with the bytes.
func (d *decoder) failed(err error) error {
	var damaged png.FormatError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &damaged) && string(damaged) == io.ErrUnexpectedEOF.Error() {
		return fmt.Errorf("the %s file is truncated: %w", d.kind.name, ErrFormat)
	}
	return fmt.Errorf("%w: %w", err, ErrFormat)
}
