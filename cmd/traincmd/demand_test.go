package traincmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// An exact fit that takes more memory than is allowed is refused, and says what takes less.
func TestExactFitsAreBounded(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "x.csv", 40, 1)
	for memory, refused := range map[string]bool{"25599": true, "25600": false} { // 16 bytes for each of 40 x 40 pairs
		e := cmdtest.Run(t, "train", "--local", "--data", filepath.Join(dir, "x.csv"), "--algorithm", "ldsvr", "--memory", memory)
		if (e.Code == cli.ExitFailed) != refused || refused && !strings.Contains(e.Stderr, "landmarks") {
			t.Errorf("--memory %s: exit code %d, %s", memory, e.Code, e.Stderr)
		}
	}
	cmdtest.Works(t, "train", "--local", "--data", filepath.Join(dir, "x.csv"), "--algorithm", "ldsvr", "--memory", "1KiB", "--set", "landmarks=10")
}
