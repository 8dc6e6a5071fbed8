package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes the files of a module and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26.0\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// faults checks all packages of a module.
func faults(t *testing.T, dir, system, architecture string) string {
	t.Helper()
	all, err := list(dir, system, architecture, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(all, architecture); err != nil {
		return err.Error()
	}
	return ""
}

// What is wrong for one system alone is found there, and nowhere else.
func TestFaultsOfOneSystem(t *testing.T) {
	for name, c := range map[string]struct{ darwin, says string }{
		"right":     {"package a\n\nimport \"example.com/m/b\"\n\nfunc f() int { return b.Two }\n", ""},
		"undefined": {"package a\n\nfunc g() int { return 2 }\n", "undefined: f"},
		"type":      {"package a\n\nfunc f() string { return \"2\" }\n", "cannot use f()"},
		"body":      {"package a\n\nfunc f() int\n", "f has no body"},
		"inside":    {"package a\n\nfunc f() int { return h() }\n", "undefined: h"},
		"import":    {"package a\n\nimport \"example.com/m/b\"\n\nfunc f() int { return 2 }\n", "imported and not used"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := module(t, map[string]string{
				"a/a.go": "package a\n\nvar All int = f()\n", "a/f_linux.go": "package a\n\nfunc f() int { return 1 }\n", "a/f_darwin.go": c.darwin,
				"b/b.go": "package b\n\nconst Two = 2\n",
			})
			if got := faults(t, dir, "linux", "amd64"); got != "" {
				t.Errorf("for linux: %s", got)
			}
			if got := faults(t, dir, "darwin", "arm64"); c.says == "" && got != "" || !strings.Contains(got, c.says) {
				t.Errorf("for darwin: %q, want %q", got, c.says)
			}
		})
	}
}

// A package with assembly of the architecture has to be built.
func TestAssembly(t *testing.T) {
	dir := module(t, map[string]string{"a.go": "package a\n\nfunc f()\n", "a_arm64.s": "TEXT ·f(SB),4,$0-0\n\tRET\n"})
	if got := faults(t, dir, "darwin", "arm64"); !strings.Contains(got, "has assembly for arm64") {
		t.Errorf("for arm64: %q", got)
	}
	if got := faults(t, dir, "linux", "amd64"); !strings.Contains(got, "f has no body") {
		t.Errorf("for amd64: %q", got)
	}
}
