package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What stands in a coordinator's folder, beside the files in which a new version is
// written before it gets its name. All of it is a coordinator's own.
var folderNames = []string{"blobs", "raft", clusterName, clusterCopy, membersName, membersCopy, restoringName}

// checkFolder refuses a folder that is of somebody else: a worker's, or one that has
// files and none of a coordinator. Nothing is opened or written.
func checkFolder(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "FORMAT"))
	if err == nil {
		return fmt.Errorf("%w: %s is not a folder of a coordinator: its FORMAT file says %.80q", ErrUsage, dir, strings.TrimSpace(string(b)))
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	other := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case slices.Contains(folderNames, strings.TrimSuffix(name, ".tmp")):
			return nil
		case name != "lost+found":
			other = name
		}
	}
	if other != "" {
		return fmt.Errorf("%w: %s is not a folder of a coordinator: it holds %q; give a folder that is empty or does not exist", ErrUsage, dir, other)
	}
	return nil
}
