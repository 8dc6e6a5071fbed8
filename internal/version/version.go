// Package version holds the version of Coppice, for provenance, handshakes and
// `coppice version`.
package version

import (
	"regexp"
	"runtime/debug"
)

// String is the version of this build.
const String = "0.1.0"

// Commit returns the commit of the sources of this program, and whether the sources had changes that are not in the
// commit. The compiler records both if it builds from a repository. The commit is empty if it is not known.
func Commit() (commit string, modified bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	return commitOf(info)
}

// pseudo matches the version of a module that has no tag, such as v0.0.0-20260709172345-9ea1abe57597.
var pseudo = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})$`)

func commitOf(info *debug.BuildInfo) (commit string, modified bool) {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if m := pseudo.FindStringSubmatch(info.Main.Version); commit == "" && m != nil {
		commit = m[1]
	}
	return commit, modified
}
