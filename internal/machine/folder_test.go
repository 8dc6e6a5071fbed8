package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that others may read is told of, with the command that closes it.
func TestOpenToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's")
	if text := OpenToOthers(dir); text != "" {
		t.Errorf("none is there: %s", text)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, open := range map[fs.FileMode]bool{0o700: false, 0o750: false, 0o755: true, 0o770: true, 0o701: true,
		0o777: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		text := OpenToOthers(dir)
		if (text != "") != open || open && (!strings.Contains(text, fmt.Sprintf("%#o", mode)) ||
			!strings.HasSuffix(text, `chmod 700 '`+strings.ReplaceAll(dir, "'", `'\''`)+"'")) {
			t.Errorf("mode %o: %q", mode, text)
		}
	}
	if got := quoted("/var/lib/coppice-1"); got != "/var/lib/coppice-1" {
		t.Error(got)
	}
}
