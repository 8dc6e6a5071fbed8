package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// binaryStarts are the first bytes of files that are no text, with what to do.
var binaryStarts = []struct{ start, advice string }{
	{"PK\x03\x04", "a spreadsheet (.xlsx) or another zip archive, not text; save the sheet as CSV"},
	{"\xd0\xcf\x11\xe0", "a spreadsheet (.xls), not text; save the sheet as CSV"},
	{"\x89HDF", "an HDF5 file, not text"},
	{"\x93NUMPY", "a NumPy array, not text; its name must end in .npy"},
	{"MATLAB 5.0", "a MATLAB file, not text; its name must end in .mat"},
	{"PAR1\x15", "a Parquet file, not text; save it as CSV or .npz"},
	{"\x80\x04\x95", "a Python pickle, not text; save it as CSV or .npz"},
	{"\xff\xfe\x00\x00", "UTF-32; save it as UTF-8"},
	{"\x00\x00\xfe\xff", "UTF-32; save it as UTF-8"},
}

// binaryStart says what a file is that begins with start and is no text; empty: it may be text.
func binaryStart(start []byte) string {
	for _, b := range binaryStarts {
		if bytes.HasPrefix(start, []byte(b.start)) {
			return b.advice
		}
	}
	return ""
}

const unmarkedUTF16 = "this is not text, or it is UTF-16 without a byte order mark; save it as UTF-8"

// decodeMarked skips a byte order mark and decodes UTF-16; text without a mark is UTF-8.
// Bytes that are not text are an error.
func decodeMarked(in *bufio.Reader) (*bufio.Reader, error) {
	start, _ := in.Peek(16)
	if b := binaryStart(start); b != "" {
		return nil, kindErrorf(ErrFormat, "this is %s", b)
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, err := in.Discard(3)
		return in, err
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		order = binary.BigEndian
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
	case bytes.IndexByte(start, 0) >= 0:
		return nil, kindErrorf(ErrFormat, "%s", unmarkedUTF16)
	default:
		return in, nil
	}
	_, err := in.Discard(2)
	return bufio.NewReaderSize(&utf16Reader{in: in, order: order}, 1<<16), err
}

// utf16Reader turns UTF-16 into UTF-8. A half pair or an odd last byte is an error.
type utf16Reader struct {
	in    io.Reader
	order binary.ByteOrder
	raw   [1 << 12]byte
	kept  int // bytes at the start of raw that wait for more
	out   []byte
	buf   []byte // whose end out is
	err   error
}

// Read implements io.Reader.
func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.fill()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// fill decodes the next bytes.
func (r *utf16Reader) fill() {
	n, err := r.in.Read(r.raw[r.kept:])
	n += r.kept
	used, broken := r.decode(r.raw[:n])
	r.kept = copy(r.raw[:], r.raw[used:n])
	switch {
	case broken || errors.Is(err, io.EOF) && r.kept > 0:
		r.err = fmt.Errorf("the UTF-16 text is damaged: %w", ErrFormat)
	case err != nil:
		r.err = err
	}
}

// decode sets out to the text of b, without an incomplete character at its end, and returns
// the number of bytes used.
func (r *utf16Reader) decode(b []byte) (used int, broken bool) {
	r.buf = r.buf[:0]
	for len(b)-used >= 2 && !broken {
		c, size := rune(r.order.Uint16(b[used:])), 2
		if utf16.IsSurrogate(c) {
			if len(b)-used < 4 {
				break
			}
			c, size = utf16.DecodeRune(c, rune(r.order.Uint16(b[used+2:]))), 4
			broken = c == utf8.RuneError
		}
		if !broken {
			r.buf = utf8.AppendRune(r.buf, c)
			used += size
		}
	}
	r.out = r.buf
	return used, broken
}

// textStart returns the first bytes of a text file, unpacked; whole is true if that is all of the file.
func textStart(path string, size int) (start []byte, whole bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, true
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if packed, _ := in.Peek(2); string(packed) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, true
		}
		in = bufio.NewReader(z)
	}
	start = make([]byte, size)
	n, err := io.ReadFull(in, start)
	return start[:n], err != nil
}

// encodingOf says how a text file is written, as its first bytes tell; empty: it cannot be read.
func encodingOf(path string) string {
	start, whole := textStart(path, 1<<20)
	if start == nil {
		return ""
	}
	switch markOf(start) {
	case encodingUTF8:
		return "UTF-8 with a byte order mark"
	case encodingUTF16BE:
		return "UTF-16, big-endian"
	case encodingUTF16LE:
		return "UTF-16, little-endian"
	}
	if !whole { // the last character may be cut
		start = start[:bytes.LastIndexByte(start, '\n')+1]
	}
	if !utf8.Valid(start) {
		return "not UTF-8"
	}
	return "UTF-8"
}

// notUTF8 reports text of a data file that is not UTF-8, with the encodings in which it may be.
func notUTF8(what, s string) error {
	err := notUTF8Beside(what, s)
	if err == nil {
		return nil
	}
	e, readings := &WaysError{}, []string{}
	for _, name := range likelyEncodings([]byte(s)) {
		text, _ := decoded([]byte(s), name)
		e.Ways = append(e.Ways, encodingWay(name))
		readings = append(readings, fmt.Sprintf("with --encoding %s it is %.40q", name, text))
	}
	if e.text = err.Error() + ", or give the encoding of the file with --encoding"; len(readings) > 0 {
		e.text = fmt.Sprintf("%v, or give the encoding of the file: %s", err, strings.Join(readings, ", "))
	}
	return e
}

// notUTF8Beside reports text that is not UTF-8 in a side file, whose encoding no flag says.
func notUTF8Beside(what, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("%s, %.40q, is not UTF-8; save the file as UTF-8", what, s)
}
