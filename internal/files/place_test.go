package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whatever takes a folder or a file away under a process that has it open is noticed.
func TestGone(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"nothing":        func(string) error { return nil },
		"all deleted":    os.RemoveAll,
		"a file deleted": func(dir string) error { return os.Remove(filepath.Join(dir, "sub", "file")) },
		"moved":          func(dir string) error { return os.Rename(dir, dir+".old") },
		"a folder in its place": func(dir string) error {
			sub := filepath.Join(dir, "sub")
			return errors.Join(os.RemoveAll(sub), os.Mkdir(sub, 0o700), os.WriteFile(filepath.Join(sub, "file"), nil, 0o600))
		},
		"a file in its place": func(dir string) error {
			sub := filepath.Join(dir, "sub")
			return errors.Join(os.RemoveAll(sub), os.WriteFile(sub, nil, 0o600))
		},
		"the file replaced": func(dir string) error {
			other := filepath.Join(dir, "other")
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Rename(other, filepath.Join(dir, "sub", "file")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			sub := filepath.Join(dir, "sub")
			file := filepath.Join(sub, "file")
			if err := errors.Join(os.MkdirAll(sub, 0o700), os.WriteFile(file, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			p, err := Hold(dir, sub, file)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := errors.Join(p.Check(), p.Writable()); err != nil {
				t.Fatal(err)
			}
			if err := take(dir); err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); errors.Is(err, ErrGone) != (name != "nothing") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// What is not there cannot be held, and nothing stays open.
func TestHoldMissing(t *testing.T) {
	dir := t.TempDir()
	if p, err := Hold(dir, filepath.Join(dir, "missing")); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
	if err := Writable(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	file := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Check(file, info); err != nil {
			b.Fatal(err)
		}
	}
}
