package tempdir_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/internal/tempdir"
)

// asProcess has the test binary make a folder, print its path, and wait for the end of stdin.
const asProcess = "COPPICE_TEST_TEMPDIR"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) == "" {
		os.Exit(m.Run())
	}
	f, err := tempdir.Make("import")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(f.Path + "\n")
	io.Copy(io.Discard, os.Stdin)
}

// process starts a process that has a folder, and returns what kills it.
func process(t *testing.T) (path string, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestLeftovers: the folder of a process that was killed goes with the next folder that is made; those of living
// processes, and new ones without a lock, stay.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	dead, kill := process(t)
	if err := os.WriteFile(filepath.Join(dead, "data"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	living, _ := process(t)
	other, err := tempdir.Make("stdin")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := tempdir.Kept("import")
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "coppice-import-link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "coppice-import-old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if ago := time.Now().Add(-25 * time.Hour); os.Chtimes(old, ago, ago) != nil {
		t.Fatal("the age of a folder cannot be set")
	}
	kill()
	if !exists(dead) {
		t.Fatal("the folder of a process that was killed is not there")
	}
	own, err := tempdir.Make("import")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, old: false, living: true, other.Path: true, kept: true,
		link: true, target: true, own.Path: true} {
		if exists(path) != want {
			t.Errorf("%s is there: %v, want %v", path, !want, want)
		}
	}
	if err := own.Remove(); err != nil || exists(own.Path) {
		t.Errorf("removed: %v", err)
	}
	if err := other.Remove(); err != nil {
		t.Error(err)
	}
}

// TestMakeTogether: folders that are made at one time do not remove each other.
func TestMakeTogether(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				f, err := tempdir.Make("import")
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(f.Path, "data"), []byte("x"), 0o600); err != nil {
					t.Error(err)
				}
				if err := f.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestUnusableFolder: errors name TMPDIR, its value and what to do.
func TestUnusableFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for tmp, reason := range map[string]string{filepath.Join(dir, "none"): "the folder does not exist",
		file: "not a directory"} {
		t.Setenv("TMPDIR", tmp)
		_, made := tempdir.Make("import")
		_, kept := tempdir.Kept("import")
		_, unnamed := tempdir.File("columns")
		for _, err := range []error{made, kept, unnamed} {
			if want := "TMPDIR is " + tmp + ": " + reason + "; set TMPDIR to a folder that exists and is writable"; err == nil ||
				err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// TestFile: a file has no name from the beginning.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := tempdir.File("columns")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
