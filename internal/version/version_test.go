package version

import (
	"runtime/debug"
	"testing"
)

func TestCommitOf(t *testing.T) {
	const full = "0123456789abcdef0123456789abcdef01234567"
	for _, test := range []struct {
		version, revision, modified string
		commit                      string
		changed                     bool
	}{
		{"(devel)", full, "false", full, false},
		{"v0.1.1-0.20260709172345-9ea1abe57597+dirty", full, "true", full, true},
		{"v0.0.0-20260709172345-9ea1abe57597", "", "", "9ea1abe57597", false}, // go install of a commit
		{"v0.1.1-0.20260709172345-9ea1abe57597", "", "", "9ea1abe57597", false},
		{"v0.1.0", "", "", "", false},
		{"", "", "", "", false},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: test.version}}
		if test.revision != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: test.revision},
				{Key: "vcs.modified", Value: test.modified}}
		}
		if commit, changed := commitOf(info); commit != test.commit || changed != test.changed {
			t.Errorf("%+v: commit %q, changed %v", test, commit, changed)
		}
	}
}
