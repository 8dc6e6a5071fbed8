package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// ReadOnly makes a folder read-only until writable is called, or the test ends. Root may
// write wherever the file system can be written, so for root it is mounted read-only; the
// test is skipped if that is impossible.
func ReadOnly(t testing.TB, dir string) (writable func()) {
	t.Helper()
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		writable = func() { os.Chmod(dir, 0o700) }
		t.Cleanup(writable)
		return writable
	}
	mount := func(args ...string) error { return exec.Command("mount", args...).Run() }
	if err := mount("--bind", dir, dir); err != nil {
		t.Skipf("a folder cannot be made read-only for root: %v", err)
	}
	mounted := true
	writable = func() {
		if mounted {
			mounted = false
			if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		}
	}
	t.Cleanup(writable)
	if err := mount("-o", "remount,ro,bind", dir); err != nil {
		t.Skipf("a folder cannot be made read-only for root: %v", err)
	}
	return writable
}
