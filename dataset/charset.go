package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// The encodings that this package reads itself.
const (
	encodingUTF8    = "utf-8"
	encodingUTF16   = "utf-16" // the byte order mark says which
	encodingUTF16LE = "utf-16le"
	encodingUTF16BE = "utf-16be"
)

// encodingNames are names of encodings that the list of the WHATWG lacks, or has for another one.
var encodingNames = map[string]string{
	"utf8": encodingUTF8, "utf-8-sig": encodingUTF8, "utf16": encodingUTF16, "utf-16-le": encodingUTF16LE, "utf-16-be": encodingUTF16BE,
	"latin-1": "iso-8859-1", "latin1": "iso-8859-1", "l1": "iso-8859-1", "mac-roman": "macintosh", "cp932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5",
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
	return "", fmt.Errorf("encoding %q is unknown; want utf-8, utf-16, latin-1, windows-1252, macintosh, shift_jis, gbk or another name of the WHATWG encoding standard", name)
}

// charset returns the encoding of a name; nil: there is none.
func charset(name string) encoding.Encoding {
	if name == "iso-8859-1" { // of the WHATWG it is windows-1252
		return charmap.ISO8859_1
	}
	e, err := htmlindex.Get(name)
	if name, known := htmlindex.Name(e); err != nil || known != nil || name == "replacement" || name == "x-user-defined" {
		return nil
	}
	return e
}

// The encodings that text which is not UTF-8 most often has.
const (
	encodingWindows  = "windows-1252"
	encodingShiftJIS = "shift_jis"
	encodingGBK      = "gbk"
)

// likelyEncodings lists the encodings, of those above, in which bytes are text, the likeliest first.
func likelyEncodings(text []byte) (names []string) {
	odd := map[string]float64{}
	for _, name := range []string{encodingWindows, encodingShiftJIS, encodingGBK} {
		if decoded, ok := decoded(text, name); ok {
			odd[name] = oddity(decoded, name)
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(odd[a], odd[b]) })
	return names
}

// decoded returns text of an encoding as UTF-8. ok is false if the encoding has no characters for some bytes, or only such as
// no text has: control characters and those of private use.
func decoded(text []byte, name string) (s string, ok bool) {
	b, err := charset(name).NewDecoder().Bytes(text)
	s = string(b)
	return s, err == nil && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || r == 0 || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Co, r)
	})
}

// oddity returns how unlikely the characters beyond ASCII are in text of an encoding, from 0 to 1: the mean over these
// characters of 1 for one that hardly stands there, and of a part of 1 for one that is rare.
func oddity(text, name string) float64 {
	before, sum, n := ' ', 0.0, 0
	east := name != encodingWindows
	for i, r := range text {
		if r >= utf8.RuneSelf {
			n++
			after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			switch {
			case east && (asciiLetter(before) || asciiLetter(after)):
				sum++
			case east && !common(r, name):
				sum += .5
			case east:
			case strings.ContainsRune("\u0192\u201a", r), unicode.IsUpper(r) && unicode.IsLower(before), before >= utf8.RuneSelf && !unicode.IsLetter(r):
				sum++
			case before >= utf8.RuneSelf:
				sum += .25
			}
		}
		before = r
	}
	return sum / float64(max(n, 1))
}

func asciiLetter(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) }

// common reports whether a character is one of those that a Japanese or Chinese encoding has for everyday text: kana, marks,
// and the ideographs of its first level.
func common(r rune, name string) bool {
	b, err := charset(name).NewEncoder().Bytes([]byte(string(r)))
	switch {
	case err != nil || len(b) != 2:
		return false
	case name == encodingShiftJIS:
		return b[0] >= 0x81 && b[0] <= 0x83 || b[0] >= 0x88 && b[0] <= 0x97
	}
	return b[1] >= 0xa1 && (b[0] >= 0xa1 && b[0] <= 0xa3 || b[0] >= 0xb0 && b[0] <= 0xd7)
}

// encodingWay is the way to read a file in an encoding.
func encodingWay(name string) Way { return oneWay("--encoding", name, "the text is %s", name) }

// encodingWays lists the ways to read a text file that is not UTF-8, the likeliest first: the encodings in which all of it is
// text.
func encodingWays(path string) (ways []Way) {
	start, whole := textStart(path, 1<<16)
	if !whole { // the last character may be cut
		start = start[:bytes.LastIndexByte(start, '\n')+1]
	}
	for _, name := range likelyEncodings(start) {
		in, file, err := openTextIn(path, name)
		if err != nil {
			continue
		}
		if _, err = io.Copy(io.Discard, in); err == nil {
			ways = append(ways, encodingWay(name))
		}
		file.Close()
	}
	return ways
}

// decodeAs decodes text in an encoding. If that is empty, text with a byte order mark is what the
// mark says, and other text UTF-8.
func decodeAs(in *bufio.Reader, name string) (*bufio.Reader, error) {
	start, _ := in.Peek(16)
	if name == "" {
		out, err := decodeMarked(in)
		if err != nil && bytes.IndexByte(start, 0) >= 0 && binaryStart(start) == "" && markOf(start) == "" {
			advised := encodingUTF16LE
			if start[0] == 0 {
				advised = encodingUTF16BE
			}
			err = kindErrorf(ErrFormat, "%w", &WaysError{fmt.Sprintf("%v, or give --encoding %s", err, advised), []Way{encodingWay(advised)}})
		}
		return out, err
	}
	if b := binaryStart(start); b != "" {
		return nil, kindErrorf(ErrFormat, "this is %s", b)
	}
	marked := markOf(start)
	agrees := marked == "" || marked == name || name == encodingUTF16 && marked != encodingUTF8
	switch {
	case !agrees:
		return nil, kindErrorf(ErrFormat, "the file begins with the byte order mark of %s, but --encoding is %s: omit --encoding, or give --encoding %s", marked, name, marked)
	case marked != "" || name == encodingUTF8:
		return decodeMarked(in)
	case name == encodingUTF16:
		return nil, kindErrorf(ErrFormat, "the file is UTF-16 without a byte order mark: give its byte order with --encoding utf-16le or --encoding utf-16be")
	case name == encodingUTF16LE:
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.LittleEndian}, 1<<16), nil
	case name == encodingUTF16BE:
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.BigEndian}, 1<<16), nil
	}
	e := charset(name)
	if e == nil {
		return nil, fmt.Errorf("encoding %q is unknown", name)
	}
	return bufio.NewReaderSize(&wholeText{in: e.NewDecoder().Reader(in), name: name, line: 1}, 1<<16), nil
}

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

// beginsWithMark reports whether a text file begins with a byte order mark.
func beginsWithMark(path string) bool {
	start, _ := textStart(path, 4)
	return markOf(start) != ""
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
		r.err = kindErrorf(ErrFormat, "line %d: the bytes of this line are not valid text in %s; give the right encoding with --encoding", r.line+bytes.Count(text[len(r.last):max(at, len(r.last))], []byte("\n")), r.name)
		return 0, r.err
	}
	r.line += bytes.Count(p[:n], []byte("\n"))
	r.last = append(r.last[:0], text[max(0, len(text)-2):]...)
	return n, err
}
