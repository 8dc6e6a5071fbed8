package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A coordinator starts in a folder of its own, or in an empty one, and leaves every
// other as it is.
func TestFolderOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		files []string
		lacks string // what the refusal names; empty: accepted
	}{
		"empty":                    {nil, ""},
		"a new disk":               {[]string{"lost+found"}, ""},
		"its own":                  {[]string{"CLUSTER", "hog"}, ""},
		"emptied but for blobs":    {[]string{"blobs"}, ""},
		"a first start that ended": {[]string{"MEMBERS.tmp"}, ""},
		"a worker's":               {[]string{"FORMAT", "ID", "LOCK"}, "coppice worker"},
		"a user's":                 {[]string{"lost+found", "thesis.tex"}, "thesis.tex"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("coppice worker 2\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkFolder(dir)
			if test.lacks == "" && err != nil {
				t.Fatal(err)
			}
			if test.lacks != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.lacks)) {
				t.Fatalf("%v; it should name %q", err, test.lacks)
			}
			if _, err := (Config{ID: "a", Dir: dir}).prepared(false); (err != nil) != (test.lacks != "") {
				t.Fatalf("a coordinator there: %v", err)
			}
		})
	}
	if err := checkFolder(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Error(err)
	}
}
