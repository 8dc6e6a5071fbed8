// Package machine says what people want to know of the machine that a process runs on.
package machine

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// MaxName bounds a machine's name, in bytes.
const MaxName = 253

// Name returns the machine's name, cut to MaxName; empty where it has none.
func Name() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name[:min(len(name), MaxName)]
}

// Load returns the average number of processes that wanted a processor in the last
// minute; 0 where the system does not tell.
func Load() float64 {
	b, err := os.ReadFile("/proc/loadavg") // Linux only
	if err != nil {
		return 0
	}
	return parseLoad(string(b))
}

func parseLoad(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || !(load >= 0) || math.IsInf(load, 0) {
		return 0
	}
	return load
}

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
	return fmt.Sprintf("other users of this machine can read the data in the folder %s (mode %#o); to prevent that: "+
		"chmod %s %s", dir, info.Mode().Perm(), change, quoted(dir))
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
