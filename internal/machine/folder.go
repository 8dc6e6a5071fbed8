package machine

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// OpenToOthers says of a folder of data that other users of the machine may read or change
// it, with the command that closes it. It is empty where they may not, and where there is
// no such folder. The group of an owner may read, as for a user that makes backups; where
// the folder is another user's, its group may do all, as volumes of containers are given.
func OpenToOthers(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return ""
	}
	forbidden, change := os.FileMode(0o027), "700"
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		forbidden, change = 0o007, "o-rwx"
	}
	if info.Mode().Perm()&forbidden == 0 {
		return ""
	}
	return fmt.Sprintf("other users of this machine can read the data in the folder %s (mode %#o); to prevent that: chmod %s %s", dir, info.Mode().Perm(), change, quoted(dir))
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
