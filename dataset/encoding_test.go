package dataset

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// inUTF16 encodes text with a byte order mark.
func inUTF16(text string, order binary.AppendByteOrder) []byte {
	b := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

// TestDecodeText: the same text comes of every encoding, however it is cut.
func TestDecodeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(rapid.StringOf(rapid.RuneFrom([]rune("aé€𝒳,;\n\r\"0"))).Draw(t, "text"), "\x00", "")
		want := strings.ReplaceAll(text, "\r\n", "\x00")
		want = strings.ReplaceAll(strings.ReplaceAll(want, "\r", "\n"), "\x00", "\r\n")
		for name, b := range map[string][]byte{
			"UTF-8": []byte("\ufeff" + text), "UTF-16LE": inUTF16(text, binary.LittleEndian), "UTF-16BE": inUTF16(text, binary.BigEndian),
		} {
			for cut, in := range map[string]io.Reader{"whole": bytes.NewReader(b), "bytes": iotest.OneByteReader(bytes.NewReader(b))} {
				decoded, err := decodeText(in, false, 0)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(iotest.HalfReader(decoded)); string(got) != want || err != nil {
					t.Fatalf("%s, %s: %q, want %q (error %v)", name, cut, got, want, err)
				}
			}
		}
	})
}

func TestNoText(t *testing.T) {
	for content, says := range map[string]string{
		"PK\x03\x04...":           "spreadsheet (.xlsx)",
		"\xd0\xcf\x11\xe0...":     "spreadsheet (.xls)",
		"a\x00,\x00b\x00":         "UTF-16 without a byte order mark",
		"\xff\xfe\x00\x00a":       "UTF-32",
		"\xff\xfea":               "damaged UTF-16",
		"\xfe\xff\xd8\x00\x00a":   "damaged UTF-16",
		"\xfe\xff\xdc\x00\x00a,b": "damaged UTF-16",
	} {
		_, err := openFile(t, "a.csv", content, OpenOptions{NoLabels: true})
		mustContain(t, err, "a.csv", says)
		mustBe(t, err, ErrFormat)
	}
}

// FuzzUTF16: what has no half pair is decoded as the standard library does, and the
// rest refused, within memory for what is there.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte("a\x00\x3d\xd8\x00\xdeb\x00"), true)
	f.Add([]byte("\xd8\x3d\xde\x00\xd8"), false)
	f.Fuzz(func(t *testing.T, b []byte, little bool) {
		mark, order := "\xfe\xff", binary.ByteOrder(binary.BigEndian)
		if little {
			mark, order = "\xff\xfe", binary.LittleEndian
		}
		if bytes.HasPrefix(b, []byte{0, 0}) { // UTF-32
			return
		}
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			units = append(units, order.Uint16(b[i:]))
		}
		want := string(utf16.Decode(units))
		in, err := decodeText(iotest.HalfReader(strings.NewReader(mark+string(b))), false, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(in)
		if err != nil {
			mustBe(t, err, ErrFormat)
			if len(b)%2 == 0 && !strings.Contains(want, "\ufffd") {
				t.Fatalf("%q is refused: %v", b, err)
			}
			return
		}
		lines := strings.NewReplacer("\r", "", "\n", "")
		if lines.Replace(string(got)) != lines.Replace(want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
