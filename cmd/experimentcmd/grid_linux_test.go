package experimentcmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestGridOnTerminal: if both outputs are terminals, a run shows a grid of its methods and datasets. If stdout is a
// file, it shows one line.
func TestGridOnTerminal(t *testing.T) {
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [set.csv]\nfolds: 2\nmeasures: [kl]\nmethods:\n  - "+
		"{algorithm: ldlf, name: endless, settings: {steps: 1000000000, patience: 1000000}}\n  - aa-knn\n")
	for _, grid := range []bool{true, false} {
		screen, tty := clitest.Terminal(t, 80)
		cmd, _, _ := cmdtest.Process(t, dir, "experiment", "run", spec, "--local", "--threads", "2", "--dir",
			filepath.Join(dir, fmt.Sprint("cells-", grid)))
		cmd.Stderr = tty
		if grid {
			cmd.Stdout = tty
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		defer time.AfterFunc(testkit.Limit, func() { cmd.Process.Kill() }).Stop()
		// the legend of the grid; the line may name a method, if the time left is estimated from it
		sign, unseen := "of 4 runs", "done/all"
		if grid {
			sign, unseen = "aa-knn", "\x00"
		}
		text := readUntil(screen, sign, func() { cmd.Process.Signal(os.Interrupt) })
		cmd.Wait()
		if !strings.Contains(text, sign) || strings.Contains(text, unseen) || grid && !strings.Contains(text, "endless") {
			t.Errorf("grid %v: %q", grid, text)
		}
	}
}

// readUntil returns what is written to a screen until nobody has the terminal any more; seen is called once a text was
// written.
func readUntil(screen io.Reader, sign string, seen func()) string {
	var out []byte
	for b, was := make([]byte, 1<<12), false; ; {
		read, err := screen.Read(b)
		out = append(out, b[:read]...)
		if !was && strings.Contains(string(out), sign) {
			was = true
			seen()
		}
		if err != nil {
			return string(out)
		}
	}
}
