package traincmd

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Progress on a narrow terminal is one line that never wraps.
func TestProgressFitsTheTerminal(t *testing.T) {
	const columns = 40
	screen, tty := clitest.Terminal(t, columns)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	cmd, _, _ := cmdtest.Process(t, dir, "train", "--local", "--data", data, "--steps", "1000000000", "--set",
		"patience=1000000")
	cmd.Stderr = tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	defer time.AfterFunc(testkit.Limit, func() { cmd.Process.Kill() }).Stop()
	drawn := drawnOn(screen, 6, func() { cmd.Process.Signal(os.Interrupt) })
	cmd.Wait()
	if len(drawn) < 6 {
		t.Fatalf("progress was drawn %d times: %q", len(drawn), drawn)
	}
	cut := 0
	for _, line := range drawn {
		if n := len([]rune(line[1])); n >= columns {
			t.Errorf("%d columns of %d: %q", n, columns, line[1])
		}
		if strings.HasSuffix(line[1], "…") {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no line was cut: this shows nothing")
	}
}

// drawnOn returns the lines of progress that are drawn on a screen until nobody has the
// terminal any more; enough is called once there are so many.
func drawnOn(screen io.Reader, n int, enough func()) (drawn [][]string) {
	line := regexp.MustCompile(`\r\x1b\[K([^\r\n]*)`)
	var out []byte
	for b := make([]byte, 1<<12); ; {
		read, err := screen.Read(b)
		out = append(out, b[:read]...)
		before := len(drawn)
		if drawn = line.FindAllStringSubmatch(string(out), -1); before < n && len(drawn) >= n {
			enough()
		}
		if err != nil {
			return drawn
		}
	}
}
