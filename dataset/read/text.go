package read

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// openText opens a text file as UTF-8 with line feeds: it unpacks gzip, decodes the text as decode does, and turns lone
// carriage returns into line feeds. Its errors do not name the file.
func openText(path, encoding string) (*bufio.Reader, *measuredFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	var in io.Reader
	info, err := f.Stat()
	file := &measuredFile{File: f}
	if err == nil {
		file.size = info.Size()
		in, err = decodeText(file, strings.HasSuffix(strings.ToLower(path), ".gz"), fileSize(file.size), encoding)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return bufio.NewReaderSize(in, 1<<16), file, nil
}

// ReadText reads a text file into memory as data files are read: unpacked if it is gzip, with or without a byte order
// mark, UTF-8 or UTF-16, with lines that end as on any system. It returns UTF-8. Errors name the file.
func ReadText(path string) ([]byte, error) {
	in, closer, err := openText(path, encodingOfMark)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer closer.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, pathError(path, textError(err))
	}
	if utf8.Valid(text) {
		return text, nil
	}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			return nil, pathError(path, errNotUTF8(fmt.Sprintf("line %d", n+1), string(line)))
		}
	}
	return text, nil
}

// measuredFile is a file that counts the bytes read.
type measuredFile struct {
	*os.File
	size, read int64
}

// Read implements io.Reader.
func (f *measuredFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.read += int64(n)
	return n, err
}

// ReadShare implements dataset.Measured.
func (f *measuredFile) ReadShare() float64 {
	if f.size <= 0 {
		return -1
	}
	return min(1, float64(f.read)/float64(f.size))
}

// decodeText is openText for an open file of so many bytes; packed: the file must be gzip.
func decodeText(f io.Reader, packed bool, size fileSize, encoding string) (io.Reader, error) {
	in := bufio.NewReaderSize(f, 1<<16)
	if start, _ := in.Peek(2); packed || string(start) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, textError(err)
		}
		in = bufio.NewReaderSize(&unpacking{z, size.unpacked()}, 1<<16)
	}
	in, err := decode(in, encoding)
	if err != nil {
		return nil, err
	}
	return &lineEnds{in}, nil
}

// binaryStarts are the first bytes of files that are no text, with what to do.
var binaryStarts = []struct{ start, advice string }{
	{"PK\x03\x04", "a spreadsheet (.xlsx) or another zip archive, not text; save the sheet as CSV"},
	{"\xd0\xcf\x11\xe0", "a spreadsheet (.xls), not text; save the sheet as CSV"},
	{"\x89HDF", "an HDF5 file, not text; its name must end in .h5 or, if MATLAB wrote it, in .mat"},
	{"\x93NUMPY", "a NumPy array, not text; its name must end in .npy"},
	{"MATLAB 5.0", "a MATLAB file, not text; its name must end in .mat"},
	{"PAR1\x15", "a Parquet file, not text; its name must end in .parquet"},
	{"\x80\x04\x95", "a Python pickle, not text; save it as CSV or .npz"},
	{"\xff\xfe\x00\x00", "UTF-32; save it as UTF-8"},
	{"\x00\x00\xfe\xff", "UTF-32; save it as UTF-8"},
}

// decode decodes text in an encoding that ParseEncoding knows or encodingOfMark. If that is empty, text with a byte
// order mark is what the mark says, and other text UTF-8. Bytes that are not text are an error.
func decode(in *bufio.Reader, name string) (*bufio.Reader, error) {
	start, _ := in.Peek(16)
	for _, b := range binaryStarts {
		if bytes.HasPrefix(start, []byte(b.start)) {
			return nil, dataset.Errorf(dataset.ErrFormat, "this is %s", b.advice)
		}
	}
	marked, zero := markOf(start), bytes.IndexByte(start, 0) >= 0
	given := name != "" && name != encodingOfMark
	const noText = "this is not text, or it is UTF-16 without a byte order mark; save it as UTF-8"
	switch {
	case marked != "" && given && marked != name && (name != encodingUTF16 || marked == encodingUTF8):
		return nil, dataset.Errorf(dataset.ErrFormat, "the file begins with the byte order mark of %s, but {encoding} is "+
			"%s: omit {encoding}, or give {encoding=%s}", marked, name, marked)
	case marked == encodingUTF8:
		_, err := in.Discard(3)
		return in, err
	case marked != "":
		name = marked
		if _, err := in.Discard(2); err != nil {
			return nil, err
		}
	case name == "" && zero:
		advised := encodingUTF16LE
		if start[0] == 0 {
			advised = encodingUTF16BE
		}
		return nil, dataset.Errorf(dataset.ErrFormat, "%w",
			&dataset.WaysError{Text: errtext.Sprintf("%s, or give {encoding=%s}", noText, advised),
				Ways: []dataset.Way{encodingWay(advised)}})
	case (!given || name == encodingUTF8) && zero:
		return nil, dataset.Errorf(dataset.ErrFormat, "%s", noText)
	case !given, name == encodingUTF8:
		return in, nil
	case name == encodingUTF16:
		return nil, dataset.Errorf(dataset.ErrFormat, "the file is UTF-16 without a byte order mark: give its byte order "+
			"with {encoding=utf-16le} or {encoding=utf-16be}")
	}
	e := charset(name)
	if e == nil {
		return nil, fmt.Errorf("encoding %q is unknown", name)
	}
	return bufio.NewReaderSize(&wholeText{in: e.NewDecoder().Reader(in), name: name, line: 1}, 1<<16), nil
}

// lineEnds turns carriage returns without a line feed after them into line feeds.
type lineEnds struct{ in *bufio.Reader }

// Read implements io.Reader.
func (l *lineEnds) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := 0; ; i++ {
		at := bytes.IndexByte(p[i:n], '\r')
		if at < 0 {
			return n, err
		}
		i += at
		next := p[i+1 : n]
		if len(next) == 0 {
			next, _ = l.in.Peek(1)
		}
		if len(next) == 0 || next[0] != '\n' {
			p[i] = '\n'
		}
	}
}

// textError makes the errors of a damaged .gz file wrap ErrFormat.
func textError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", err, dataset.ErrFormat)
	}
	return err
}

// pathError adds the name of the file to an error that does not have it.
func pathError(name string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// The encodings that this package reads itself.
const (
	encodingUTF8    = "utf-8"
	encodingUTF16   = "utf-16" // the byte order mark says which
	encodingUTF16LE = "utf-16le"
	encodingUTF16BE = "utf-16be"

	// encodingOfMark is what the byte order mark says, or else UTF-8: no flag gives another encoding.
	encodingOfMark = "mark"
)

// encodingNames are names of encodings that the list of the WHATWG lacks, or has for another one.
var encodingNames = map[string]string{
	"utf8": encodingUTF8, "utf-8-sig": encodingUTF8, "utf16": encodingUTF16, "utf-16-le": encodingUTF16LE,
	"utf-16-be": encodingUTF16BE,
	"latin-1":   "iso-8859-1", "latin1": "iso-8859-1", "l1": "iso-8859-1", "mac-roman": "macintosh", "cp932": "shift_jis",
	"cp936": "gbk", "cp949": "euc-kr", "cp950": "big5",
}

// ParseEncoding reads the name of an encoding of text, such as utf-8, utf-16le, latin-1,
// windows-1252 or shift_jis, and returns the name that OpenOptions.Encoding has.
func ParseEncoding(name string) (string, error) {
	s := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	if known := encodingNames[s]; known != "" {
		s = known
	}
	if slices.Contains([]string{encodingUTF8, encodingUTF16, encodingUTF16LE, encodingUTF16BE}, s) {
		return s, nil
	}
	for _, spelling := range []string{s, strings.ReplaceAll(s, "-", "_")} {
		if e := charset(spelling); e == charmap.ISO8859_1 {
			return spelling, nil
		} else if e != nil {
			return htmlindex.Name(e)
		}
	}
	return "", fmt.Errorf("encoding %q is unknown; want utf-8, utf-16, latin-1, windows-1252, macintosh, shift_jis, gbk "+
		"or another name of the WHATWG encoding standard", name)
}

// charset returns the encoding of a name; nil: there is none.
func charset(name string) encoding.Encoding {
	switch name {
	case "iso-8859-1": // of the WHATWG it is windows-1252
		return charmap.ISO8859_1
	case encodingUTF16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case encodingUTF16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	e, err := htmlindex.Get(name)
	if name, known := htmlindex.Name(e); err != nil || known != nil || name == "replacement" || name == "x-user-defined" {
		return nil
	}
	return e
}

// likelyEncodings lists the encodings, of those that text which is not UTF-8 most often has, in which bytes are text.
func likelyEncodings(text []byte) (names []string) {
	for _, name := range []string{"windows-1252", "shift_jis", "gbk"} {
		if _, ok := decoded(text, name); ok {
			names = append(names, name)
		}
	}
	return names
}

// decoded returns text of an encoding as UTF-8. ok is false if the encoding has no characters for some bytes, or only
// such as no text has: control characters and characters of private use.
func decoded(text []byte, name string) (s string, ok bool) {
	b, err := charset(name).NewDecoder().Bytes(text)
	s = string(b)
	return s, err == nil && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || r == 0 || r >= 0x80 && r < 0xa0 || r >= 0xe000 && r < 0xf900
	})
}

// encodingWay is the way to read a file in an encoding.
func encodingWay(name string) dataset.Way { return oneWay("--encoding", name, "the text is %s", name) }

// markOf returns the encoding whose byte order mark a file begins with; empty: none.
func markOf(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		return encodingUTF8
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		return encodingUTF16BE
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
		return encodingUTF16LE
	}
	return ""
}

// wholeText refuses decoded text with a replacement character, which stands for bytes that the
// encoding does not have, and with a zero byte.
type wholeText struct {
	in   io.Reader
	name string
	line int
	last []byte // the end of what was read before, if a character may be cut there
	err  error
}

var replacement = []byte(string(utf8.RuneError))

// Read implements io.Reader.
func (r *wholeText) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.in.Read(p)
	text := append(r.last, p[:n]...)
	at := bytes.Index(text, replacement)
	if zero := bytes.IndexByte(text, 0); zero >= 0 && (at < 0 || zero < at) {
		at = zero
	}
	if at >= 0 {
		r.err = dataset.Errorf(dataset.ErrFormat, "line %d: the bytes of this line are not valid text in %s; give the "+
			"right encoding with {encoding}", r.line+bytes.Count(text[len(r.last):max(at, len(r.last))], []byte("\n")), r.name)
		return 0, r.err
	}
	r.line += bytes.Count(p[:n], []byte("\n"))
	r.last = append(r.last[:0], text[max(0, len(text)-2):]...)
	return n, err
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

// EncodingOf says how a text file is written, as its first bytes tell; empty: it cannot be read.
func EncodingOf(path string) string {
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
	if utf8.ValidString(s) {
		return nil
	}
	err := errNotUTF8(what, s)
	e, readings := &dataset.WaysError{}, []errtext.Text{}
	for _, name := range likelyEncodings([]byte(s)) {
		text, _ := decoded([]byte(s), name)
		e.Ways = append(e.Ways, encodingWay(name))
		readings = append(readings, errtext.Sprintf("with {encoding=%s} it is %.40q", name, text))
	}
	if e.Text = errtext.Sprintf("%w, or give the encoding of the file with {encoding}", err); len(readings) > 0 {
		e.Text = errtext.Sprintf("%w, or give the encoding of the file: %s", err, errtext.Join(readings, ", "))
	}
	return e
}

// errNotUTF8 is the error for text that is not UTF-8 if no flag says the encoding of its file.
func errNotUTF8(what, s string) error {
	return fmt.Errorf("%s, %.40q, is not UTF-8; save the file as UTF-8", what, s)
}
