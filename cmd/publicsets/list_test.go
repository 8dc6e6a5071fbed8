package publicsets

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// digest is a SHA-256 of some file.
var digest = strings.Repeat("0123456789abcdef", 4)

func TestBuiltIn(t *testing.T) {
	sets := BuiltIn()
	if len(sets) < 20 {
		t.Fatalf("%d datasets", len(sets))
	}
	for _, s := range sets {
		for _, f := range s.Files {
			if s.Licence == "" || s.Content == "" || !strings.HasPrefix(f.Address, "https://") {
				t.Errorf("%+v", s)
			}
			if (f.SHA256 == "") != (f.Bytes == 0) || f.SHA256 == "" && s.Name != "Human_Gene" && s.Name != "Natural_Scene" {
				t.Errorf("%s: %d bytes, SHA-256 %q", s.Name, f.Bytes, f.SHA256)
			}
		}
	}
}

func TestParse(t *testing.T) {
	text := "\uFEFF# a list\r\nname\tfile\taddress\tsha256\tmember\tread\tchecked\r\n\r\n" +
		"a\ta.csv\thttp://host:81/a.csv?x=1\r\n" +
		"b\tb.arff\thttps://host/b.zip\t" + strings.ToUpper(digest) + "\tin/b.arff\t--labels class --normalize\t2026-08-31\n" +
		"b\tb.xml\thttps://host/b.zip\t" + digest + "\tin/b.xml\n"
	sets, err := Parse("list", strings.NewReader(text))
	if err != nil || len(sets) != 2 {
		t.Fatalf("%+v, %v", sets, err)
	}
	if a := sets[0]; len(a.Files) != 1 || a.Files[0] != (File{Name: "a.csv", Address: "http://host:81/a.csv?x=1",
		Checked: Never}) {
		t.Errorf("%+v", a)
	}
	b := sets[1]
	if b.Flags != "--labels class --normalize" || len(b.Files) != 2 || b.Files[0] != (File{Name: "b.arff",
		Address: "https://host/b.zip", Member: "in/b.arff", SHA256: digest, Checked: "2026-08-31"}) ||
		b.Files[1].Member != "in/b.xml" {
		t.Errorf("%+v", b)
	}
}

// TestParseRefuses: what is wrong with a list is an error with the line and the column.
func TestParseRefuses(t *testing.T) {
	const head = "name\tfile\taddress\tbytes\tsha256\tmember\tread\tchecked\n"
	for text, want := range map[string]string{
		"":                                       "the list has no datasets",
		"# x":                                    "the list has no datasets",
		"a\tb":                                   `line 1: column "a": want names of columns`,
		"name\tname\tfile\taddress\n":            `line 1: column "name" is there twice`,
		"name\tfile\n":                           `line 1: column "address" is missing`,
		head + "a\ta.csv\n":                      `line 2: column "address" is missing`,
		head + "../a\ta.csv\thttp://h/\n":        `line 2: column "name": "../a": want a name`,
		head + "a\t../a.csv\thttp://h/\n":        `column "file": "../a.csv"`,
		head + "a\t.bashrc\thttp://h/\n":         `column "file": ".bashrc"`,
		head + "a\tb/a.csv\thttp://h/\n":         `column "file": "b/a.csv"`,
		head + "a\ta.csv\tfile:///etc/passwd\n":  "want an address that begins with https:// or http://",
		head + "a\ta.csv\tftp://h/a\n":           "want an address",
		head + "a\ta.csv\thttp:///a\n":           "want an address",
		head + "a\ta.csv\thttp://u:secret@h/a\n": "a user or a password is not allowed",
		head + "a\ta.csv\thttp://h/\t-1\n":       `column "bytes": "-1"`,
		head + "a\ta.csv\thttp://h/\t99999999999999999999\n":                   `column "bytes"`,
		head + "a\ta.csv\thttp://h/\t1\tabc\n":                                 "want a SHA-256, which has 64 hexadecimal digits",
		head + "a\ta.csv\thttp://h/\t\t\t\t--server x\n":                       `column "read": "--server"`,
		head + "a\ta.csv\thttp://h/\t\t\t\t--labels\n":                         "an option has no value",
		head + "a\ta.csv\thttp://h/\t\t\t\tclass\n":                            `"class": want options`,
		head + "a\ta.csv\thttp://h/\t\t\t\t\tyesterday\n":                      "want a day such as 2026-08-31, or never",
		head + "a\ta.csv\thttp://h/\n\na\tb.csv\thttp://h/\n":                  "line 4: a has several files, so each of them needs a sha256",
		head + "a\ta.csv\thttp://h/\na\tA.csv\thttp://h/\n":                    "line 3: a: the file A.csv is there twice",
		head + "a\ta.csv\thttp://h/" + strings.Repeat("\t", 9):                 "12 columns, but the first line names 8",
		head + "a\ta.csv\thttp://h/\t\t\ta\x1b[2Jb\n":                          "has control characters",
		head + "a\ta.csv\thttp://h/\t\t\t\xff\n":                               "of UTF-8",
		head + "a\ta.csv\thttp://h/\t\t\t" + strings.Repeat("x", maxLine):      "bytes of UTF-8",
		strings.Repeat("#\n", maxList):                                         "the list has more than",
		head + "a\ta.csv\thttp://h/\na\tb.csv\thttp://h/\t\t\t\t--normalize\n": "only the first line of a dataset",
	} {
		_, err := Parse("list.tsv", strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), "list.tsv: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v; want %s", text, err, want)
		}
	}
}

// FuzzParse: no bytes make Parse panic or take much memory, and names of files stay in a folder.
func FuzzParse(f *testing.F) {
	f.Add(builtIn)
	f.Add([]byte("name\tfile\taddress\tmember\nb\tb.csv\thttp://h/b.zip\t../b.csv\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var sets []Set
		var err error
		allocs.AtMost(t, 128*len(b)+64<<10, "Parse", func() { sets, err = Parse("list", bytes.NewReader(b)) })
		if (err == nil) != (len(sets) > 0) {
			t.Fatalf("%d sets, %v", len(sets), err)
		}
		for _, s := range sets {
			for _, file := range s.Files {
				if filepath.Base(file.Name) != file.Name || file.Name == ".." || file.Name == "." {
					t.Fatalf("%q", file.Name)
				}
			}
		}
	})
}
