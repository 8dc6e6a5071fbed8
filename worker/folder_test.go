package worker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A worker takes an empty folder, one that is a new disk, and one that a crash left
// unfinished, and no other.
func TestFolderOfOthers(t *testing.T) {
	for name, x := range map[string]struct {
		files []string
		want  error
	}{
		"an empty one":    {nil, nil},
		"a new disk":      {[]string{"lost+found/"}, nil},
		"an unfinished":   {[]string{"FORMAT.tmp", "lost+found/"}, nil},
		"a user's":        {[]string{"lost+found/", "thesis.tex"}, ErrFolder},
		"a coordinator's": {[]string{"CLUSTER", "raft/"}, ErrFolder},
	} {
		dir := t.TempDir()
		for _, file := range x.files {
			path := filepath.Join(dir, file)
			create := func() error { return os.WriteFile(path, nil, 0o644) }
			if strings.HasSuffix(file, "/") {
				create = func() error { return os.Mkdir(path, 0o755) }
			}
			if err := create(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // also once it is its own
			f, err := openFolder(dir, slog.New(slog.DiscardHandler))
			if !errors.Is(err, x.want) {
				t.Errorf("%s: got %v, want %v", name, err, x.want)
			}
			if err == nil {
				f.close()
			}
		}
	}
}
