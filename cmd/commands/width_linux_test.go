package commands

import (
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"

	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Progress on a narrow terminal is one line that never wraps.
func TestProgressFitsTheTerminal(t *testing.T) {
	const columns = 40
	screen, tty := clitest.Terminal(t, columns)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	cmd, _, _ := cmdtest.Process(t, dir, "train", "--local", "--data", data, "--steps", "1000000000", "--set", "patience=1000000")
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

// TestGridOnTerminal: where both outputs are terminals, a run shows its rows and datasets; where stdout is a file, one
// line.
func TestGridOnTerminal(t *testing.T) {
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [set.csv]\nfolds: 2\nmeasures: [kl]\nmethods:\n  - {algorithm: ldlf, name: endless, settings: {steps: 1000000000, patience: 1000000}}\n  - aa-knn\n")
	for _, grid := range []bool{true, false} {
		screen, tty := clitest.Terminal(t, 80)
		cmd, _, _ := cmdtest.Process(t, dir, "experiment", "run", spec, "--local", "--threads", "2", "--dir", filepath.Join(dir, fmt.Sprint("cells-", grid)))
		cmd.Stderr = tty
		if grid {
			cmd.Stdout = tty
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		defer time.AfterFunc(testkit.Limit, func() { cmd.Process.Kill() }).Stop()
		sign, unseen := "of 4 runs", "aa-knn"
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
