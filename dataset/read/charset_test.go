package read

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// utf16Text writes text as UTF-16, after a mark.
func utf16Text(text, mark string, big bool) string {
	b := []byte(mark)
	for _, c := range utf16.Encode([]rune(text)) {
		low, high := byte(c), byte(c>>8)
		if big {
			low, high = high, low
		}
		b = append(b, low, high)
	}
	return string(b)
}

// TestEncodings: a table is the same in each encoding that has its characters, packed or not.
func TestEncodings(t *testing.T) {
	encoded := func(e interface{ String(string) (string, error) }, text string) string {
		s, err := e.String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const western, quotes, kanji, hanzi = "größe,café,label_ä,label_é\n1,2,.25,.75\n3,4,.5,.5\n",
		"“größe”,10 €,label_ä,label_é\n1,2,.25,.75\n", "身長,体重,label_喜,label_悲\n1,2,.25,.75\n",
		"身高,体重,label_喜,label_悲\n1,2,.25,.75\n"
	for _, c := range []struct{ name, encoding, text, bytes string }{
		{"UTF-8", "utf-8", western, western},
		{"UTF-8 with a mark", "UTF8", western, "\xef\xbb\xbf" + western},
		{"Latin-1", "latin-1", western, encoded(charmap.ISO8859_1.NewEncoder(), western)},
		{"Latin-1 as Python calls it", "latin_1", western, encoded(charmap.ISO8859_1.NewEncoder(), western)},
		{"Windows-1252", "windows-1252", quotes, encoded(charmap.Windows1252.NewEncoder(), quotes)},
		{"cp1252", "CP1252", quotes, encoded(charmap.Windows1252.NewEncoder(), quotes)},
		{"Latin-9", "iso-8859-15", strings.NewReplacer("“", "", "”", "").Replace(quotes),
			encoded(charmap.ISO8859_15.NewEncoder(), strings.NewReplacer("“", "", "”", "").Replace(quotes))},
		{"Macintosh", "mac_roman", western, encoded(charmap.Macintosh.NewEncoder(), western)},
		{"Shift JIS", "shift_jis", kanji, encoded(japanese.ShiftJIS.NewEncoder(), kanji)},
		{"GBK", "gbk", hanzi, encoded(simplifiedchinese.GBK.NewEncoder(), hanzi)},
		{"UTF-16 with a mark", "utf-16", kanji, utf16Text(kanji, "\xff\xfe", false)},
		{"UTF-16, big-endian with a mark", "utf-16", kanji, utf16Text(kanji, "\xfe\xff", true)},
		{"UTF-16LE", "utf-16le", kanji, utf16Text(kanji, "", false)},
		{"UTF-16BE", "utf-16be", kanji, utf16Text(kanji, "", true)},
		{"UTF-16BE with a mark", "utf-16-be", kanji, utf16Text(kanji, "\xfe\xff", true)},
	} {
		want, err := OpenFile(t, "a.csv", c.text, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		encoding, err := ParseEncoding(c.encoding)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(c.bytes))
		z.Close()
		for file, b := range map[string]string{"a.csv": c.bytes, "a.csv.gz": packed.String()} {
			src, err := OpenFile(t, file, b, OpenOptions{Encoding: encoding})
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, file, err)
				continue
			}
			if got := Describe(t, src); got != Describe(t, want) {
				t.Errorf("%s, %s: %s", c.name, file, got)
			}
		}
	}
}

// TestEncodingsRefused: bytes that are no text in the encoding that is given are refused, and so is
// what a mark contradicts. The advice works.
func TestEncodingsRefused(t *testing.T) {
	latin, err := charmap.ISO8859_1.NewEncoder().String("größe,label_ä,label_é\n1,.25,.75\n")
	if err != nil {
		t.Fatal(err)
	}
	wide := "a,label_b\n" + strings.Repeat("1,1\n", 50)
	for _, c := range []struct {
		name, text, encoding, advised string
		parts                         []string
	}{
		{"no UTF-8", latin, "", "windows-1252", []string{"is not UTF-8", "--encoding windows-1252"}},
		{"another encoding", "voilà,label_a,label_b\n1,.25,.75\n", "shift_jis", "utf-8",
			[]string{"line 1", "the bytes of this line are not valid text in shift_jis", "--encoding"}},
		{"UTF-16 as bytes", utf16Text(wide, "", false), "latin-1", "utf-16le",
			[]string{"line 1", "the bytes of this line are not valid text in iso-8859-1"}},
		{"no mark", utf16Text(wide, "", false), "", "utf-16le", []string{"--encoding utf-16le"}},
		{"UTF-16 of either order", utf16Text(wide, "", true), "utf-16", "utf-16be",
			[]string{"--encoding utf-16le or --encoding utf-16be"}},
		{"another mark", utf16Text(wide, "\xff\xfe", false), "latin-1", "utf-16le", []string{"byte order mark of utf-16le",
			"--encoding utf-16le"}},
		{"a later line", wide + "\x81,1\n", "windows-1252", "", []string{"line 52", "windows-1252"}},
	} {
		encoding := ""
		if c.encoding != "" {
			if encoding, err = ParseEncoding(c.encoding); err != nil {
				t.Fatal(err)
			}
		}
		read := func(encoding string) error {
			src, err := OpenFile(t, "a.csv", c.text, OpenOptions{Encoding: encoding})
			if err == nil {
				err = src.Scan(func(*dataset.Row) error { return nil })
			}
			return err
		}
		datasettest.MustContain(t, read(encoding), c.parts...)
		if c.advised != "" {
			if err := read(c.advised); err != nil {
				t.Errorf("%s, as advised: %v", c.name, err)
			}
		}
	}
	for _, name := range []string{"utf-32", "nothing", "replacement", "x-user-defined"} {
		_, err := ParseEncoding(name)
		datasettest.MustContain(t, err, name, "windows-1252")
	}
	_, err = OpenFile(t, "a.npz", "PK", OpenOptions{Encoding: "gbk"})
	datasettest.MustContain(t, err, "--encoding can only be used with text files")
}

// TestCutCharacters: a replacement character is found wherever reads are cut.
func TestCutCharacters(t *testing.T) {
	r := &wholeText{in: iotest.OneByteReader(strings.NewReader("a\nb\nc\ufffd\n")), name: "x", line: 1}
	var b bytes.Buffer
	_, err := b.ReadFrom(r)
	datasettest.MustContain(t, err, "line 3")
}

// TestEncodingOfModels: a later file is read in the encoding of the model's file, unless a mark
// or a flag says otherwise.
func TestEncodingOfModels(t *testing.T) {
	const text = "größe,x,label_ä,label_é\n1,2,.25,.75\n"
	latin, err := charmap.ISO8859_1.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	s := modelOf(t, latin, OpenOptions{Encoding: "iso-8859-1"})
	for _, c := range []struct{ name, text, encoding string }{
		{"the same", latin, ""}, {"a mark", "\xef\xbb\xbf" + text, ""}, {"a flag", text, "utf-8"},
	} {
		if _, _, err := OpenForModel(t, "new.csv", c.text, OpenOptions{Encoding: c.encoding}, s); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("\xef\xbb\xbf" + text))
	z.Close()
	if _, _, err := OpenForModel(t, "new.csv.gz", packed.String(), OpenOptions{}, s); err != nil {
		t.Errorf("a mark, packed: %v", err)
	}
	_, _, err = OpenForModel(t, "new.csv", text, OpenOptions{}, s)
	datasettest.MustContain(t, err, "read with the options of the training file: --encoding iso-8859-1 (options that "+
		"are given override these)")
}

// TestLibsvmIsUTF8: classes and names of rows in a libsvm file are text, as those of a CSV file are.
func TestLibsvmIsUTF8(t *testing.T) {
	for file, o := range map[string]OpenOptions{
		"gr\xfcn 1:1\nrot 1:2\n":                  {Labels: LabelOptions{Kind: dataset.Class}},
		".5,.5 1:1 # K\xf6ln\n.5,.5 1:2 # Bonn\n": {},
	} {
		_, err := OpenBytes(t, "a.svm", []byte(file), o)
		datasettest.MustContain(t, err, "row 0", "line 1", "is not UTF-8", "--encoding windows-1252")
		o.Encoding = "windows-1252"
		src, err := OpenBytes(t, "a.svm", []byte(file), o)
		if err != nil {
			t.Errorf("%q: %v", file, err)
			continue
		}
		if rows := datasettest.Collect(t, src); rows[0].Name != "Köln" && src.Info().LabelNames[0] != "grün" {
			t.Errorf("%q: %+v", file, rows)
		}
	}
}

// Encoded returns text in an encoding.
func Encoded(t *testing.T, text, name string) string {
	t.Helper()
	if name == encodingUTF16LE || name == encodingUTF16BE {
		return utf16Text(text, "", name == encodingUTF16BE)
	}
	s, err := charset(name).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TryOpen reads a file as an import does.
func TryOpen(path string, o OpenOptions) (*dataset.Manifest, error) {
	src, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	m, _, err := importer.Build(src, importer.Options{})
	return m, err
}
