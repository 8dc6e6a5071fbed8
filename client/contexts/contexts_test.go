package contexts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = "current: lab\ncontexts:\n  prod:\n    server: [a:1, b:2]\n    ca: /c/ca.crt\n    token_file: \"/c/my " +
	"token\"\n  lab:\n    server: c:3\n    tls_dir: /d\n"

func TestParse(t *testing.T) {
	f, err := Parse("f", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{Path: "f", Current: "lab", Contexts: []Context{
		{Name: "lab", Server: []string{"c:3"}, TLSDir: "/d"}, {Name: "prod", Server: []string{"a:1", "b:2"}, CA: "/c/ca.crt",
			TokenFile: "/c/my token"},
	}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	again, err := Parse("f", f.Text())
	if err != nil || cmp.Diff(f, again) != "" {
		t.Errorf("%v\n%s", err, f.Text())
	}
	if f, err := Parse("f", nil); err != nil || f.Current != "" || f.Contexts != nil {
		t.Errorf("an empty file: %v, %v", f, err)
	}
}

// TestFaults: every fault is refused, and the error names the place and what is wrong.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"x: 1\n":                  `f:1:1: there is no key "x"; want current or contexts`,
		"current: [a]\n":          "f:1:1: current: want the name of a context",
		"contexts: a\n":           "f:1:1: contexts: want a section",
		"contexts: {a: 1}\n":      "f:1:12: a: want the keys of a context",
		"contexts: {a: {ca: /x}}": "f:1:12: context a: server is missing",
		"contexts: {a: {server: h:1, token: coppice_0_1}}":                   `there is no key "token" of a context; want server, ca, token_file or tls_dir`,
		"contexts: {a: {server: h:1, token_file: /t}}":                       "token_file needs ca",
		"contexts: {a: {server: h:1, ca: /c, tls_dir: /d}}":                  "tls_dir excludes ca and token_file",
		"contexts: {a: {server: h:1, token_file: /t, ca: /c, tls_dir: /d}}":  "tls_dir excludes ca and token_file",
		"contexts: {a: {server: h:1, tls_dir: d}}":                           "tls_dir: want an absolute path",
		"contexts: {a: {server: h:1, tls_dir: [/d]}}":                        "tls_dir: want one value",
		"contexts: {a b: {server: h:1}}":                                     `the name "a b" of a context is not valid`,
		"current: b\ncontexts: {a: {server: h:1}}":                           `f has no context "b"`,
		"contexts: {a: {server: h:1}, a: {server: h:2}}":                     "already defined",
		"contexts: {a: {server: h:1, server: h:2}}":                          "already defined",
		"contexts: {a: {server: }}":                                          "server",
		"contexts: {a: {server: []}}":                                        "server is missing",
		"contexts: {a: {server: [\"\"]}}\ncurrent: a\nmore: 1":               `there is no key "more"`,
		"contexts: {a: {server: {b: 1}}}":                                    "server: want one value",
		"contexts:\n  a:\n    server: h:1\n---\ncontexts:\n  b: {server: h}": "second YAML document",
	} {
		if f, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, f, err, want)
		}
	}
}

// TestFile: the file is written with the mode 0600, and refused with any other mode.
func TestFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	path := DefaultPath()
	f, err := Load(path)
	if err != nil || len(f.Contexts) > 0 {
		t.Fatalf("%v, %v", f, err)
	}
	lab := Context{Name: "lab", Server: []string{"h:1"}, CA: "/c", TokenFile: "/t\"<é>"}
	for _, c := range []Context{{Name: "prod", Server: []string{"h:2"}}, lab, {Name: "b", Server: []string{"x"}},
		{Name: "b", Server: []string{"y", "z"}}} {
		if err := f.Set(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Set(Context{Name: "c"}); err == nil {
		t.Error("a context without servers is set")
	}
	f.Current = "lab"
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil || cmp.Diff(f, again) != "" {
		t.Fatalf("%v %s", err, cmp.Diff(f, again))
	}
	if c, err := again.Find("lab"); err != nil || cmp.Diff(*c, lab) != "" {
		t.Errorf("%v, %v", c, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	if err := again.Delete("lab"); err != nil || again.Current != "" || len(again.Contexts) != 2 {
		t.Errorf("%v, %+v", err, again)
	}
	if err := again.Delete("lab"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o602, 0o610} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("HOME", "/h")
	for dir, want := range map[string]string{"": "/h/.config/coppice/contexts.yaml", "/x": "/x/coppice/contexts.yaml",
		"relative": "/h/.config/coppice/contexts.yaml"} {
		t.Setenv("XDG_CONFIG_HOME", dir)
		if got := DefaultPath(); got != want {
			t.Errorf("%q: %s", dir, got)
		}
	}
}

// FuzzParse: what is read is written and read again, and every context is valid.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("contexts: {a: {server: [\"\\u2028\", x]}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse("f", b)
		if err != nil {
			return
		}
		for _, c := range file.Contexts {
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		}
		again, err := Parse("f", file.Text())
		if diff := cmp.Diff(file, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v\n%s\n%s", err, diff, file.Text())
		}
	})
}
