package read

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
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
			"UTF-8": []byte("\ufeff" + text), "UTF-16LE": inUTF16(text, binary.LittleEndian), "UTF-16BE": inUTF16(text,
				binary.BigEndian),
		} {
			for cut, in := range map[string]io.Reader{"whole": bytes.NewReader(b),
				"bytes": iotest.OneByteReader(bytes.NewReader(b))} {
				decoded, err := decodeText(in, false, 0, encodingOfMark)
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
		"\xff\xfea":               "the bytes of this line are not valid text in utf-16",
		"\xfe\xff\xd8\x00\x00a":   "the bytes of this line are not valid text in utf-16",
		"\xfe\xff\xdc\x00\x00a,b": "the bytes of this line are not valid text in utf-16",
	} {
		_, err := OpenFile(t, "a.csv", content, OpenOptions{NoLabels: true})
		datasettest.MustContain(t, err, "a.csv", says)
		datasettest.MustBe(t, err, dataset.ErrFormat)
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
		in, err := decodeText(iotest.HalfReader(strings.NewReader(mark+string(b))), false, 0, encodingOfMark)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(in)
		if err != nil {
			datasettest.MustBe(t, err, dataset.ErrFormat)
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

// asUsersSave are the same text as editors and spreadsheets save it.
func asUsersSave(text string) map[string]string {
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	return map[string]string{
		"UTF-8": text, "a mark": "\ufeff" + text, "CRLF": crlf, "CR": strings.ReplaceAll(text, "\n", "\r"),
		"UTF-16LE": string(inUTF16(crlf, binary.LittleEndian)), "UTF-16BE": string(inUTF16(text, binary.BigEndian)),
	}
}

// TestSideFiles: names and splits are read from every encoding, with the separators that data files have.
func TestSideFiles(t *testing.T) {
	for name, content := range asUsersSave("{\"labels\":\n[\"zoë\", \"😀\"]}\n") {
		if n, err := ReadNames(datasettest.WriteFile(t, "n.json", content)); err != nil ||
			!slices.Equal(n.Labels, []string{"zoë", "😀"}) {
			t.Errorf("names, %s: %+v, %v", name, n, err)
		}
	}
	for _, delimiter := range []string{",", ";", "\t", "|"} {
		for _, sep := range []string{"", "sep=" + delimiter + "\n"} {
			folds := strings.ReplaceAll(sep+"row,fold\n1,0\n0,1\n2,\"0\"\n", ",", delimiter)
			splits := strings.ReplaceAll(sep+"\"row\",first,second\n0,1,0\n1,0,0\n2,0,1\n", ",", delimiter)
			if delimiter == "," {
				folds, splits = strings.Replace(folds, "sep=,", "\"sep=,\"", 1), strings.Replace(splits, "sep=,", "\"sep=,\"", 1)
			}
			for name, content := range asUsersSave(folds) {
				got, k, err := FoldsFile(datasettest.WriteFile(t, "f.csv", content), 3)
				if err != nil || k != 2 || !slices.Equal(got, []uint16{1, 0, 0}) {
					t.Errorf("folds, %q, %s: %v, %v", delimiter, name, got, err)
				}
			}
			for name, content := range asUsersSave(splits) {
				got, err := SplitFile(datasettest.WriteFile(t, "s.csv", content), 3)
				if err != nil || got.Folds != 2 || !slices.Equal(got.Assigned, []uint16{1, 0, 2}) {
					t.Errorf("splits, %q, %s: %+v, %v", delimiter, name, got, err)
				}
			}
		}
	}
	_, err := SplitFile(datasettest.WriteFile(t, "s.csv", "sep=;\nrow;fold\n0;0\n1;x\n"), 2)
	datasettest.MustContain(t, err, "s.csv", "line 4", `fold "x"`)
}

// TestReadText: errors about the text name the file and the line.
func TestReadText(t *testing.T) {
	_, err := ReadText(datasettest.WriteFile(t, "n.json", "{\n\"a\": \"zo\xeb\"}"))
	datasettest.MustContain(t, err, "n.json", "line 2", "is not UTF-8")
	if strings.Contains(err.Error(), "--encoding") {
		t.Error(err)
	}
	_, err = ReadText(datasettest.WriteFile(t, "n.json", "{\x00\"\x00"))
	datasettest.MustContain(t, err, "n.json", "UTF-16 without a byte order mark")
	if strings.Contains(err.Error(), "--encoding") { // it is of the data file
		t.Error(err)
	}
	_, err = ReadText(datasettest.WriteFile(t, "n.json", "\xff\xfea"))
	datasettest.MustContain(t, err, "n.json", "the bytes of this line are not valid text in utf-16")
	if text, err := ReadText(datasettest.WriteFile(t, "n.json", "")); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
}
