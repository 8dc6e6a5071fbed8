package commands

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// BenchmarkMemory is the memory of `train --local` growing trees on one core: the
// peak of the whole process, what it is above an idle one's, and how many times the
// decoded shards that is. The set is generated, 10 MB of shards; COPPICE_MEMORY_ROWS
// takes another number of rows, and COPPICE_MEMORY_TREES of trees:
//
//	COPPICE_MEMORY_ROWS=60000 COPPICE_MEMORY_TREES=50 go test -run - -bench Memory -benchtime 1x ./cmd/commands
func BenchmarkMemory(b *testing.B) {
	const features, labels = 100, 5
	rows, trees := number(b, "COPPICE_MEMORY_ROWS", 25_000), number(b, "COPPICE_MEMORY_TREES", 8)
	file := filepath.Join(b.TempDir(), "set.npz")
	peak(b, "dataset", "generate", "--kind", "random", "--out", file, "--rows", fmt.Sprint(rows), "--features",
		fmt.Sprint(features), "--labels", fmt.Sprint(labels))
	shards := float64(4 * rows * (features + labels + 1))
	for _, samples := range []int{20, 2} {
		b.Run(fmt.Sprintf("rows=%d/trees=%d/min_samples=%d", rows, trees, samples), func(b *testing.B) {
			var idle, most float64
			for b.Loop() {
				idle = peak(b, "algorithm", "show", "structrf")
				most = peak(b, "train", "--local", "--data", file, "--algorithm", "structrf",
					"--set", fmt.Sprintf("trees=%d", trees), "--set", fmt.Sprintf("min_samples=%d", samples))
			}
			b.ReportMetric(most/1e6, "peak-MB")
			b.ReportMetric((most-idle)/1e6, "above-idle-MB")
			b.ReportMetric((most-idle)/shards, "x-shards")
		})
	}
}

func number(b *testing.B, variable string, standard int) int {
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// peakFile has a coppice process write its status to a file when it is done: the
// peak that wait(2) gives begins with that of the process that started it.
const peakFile = "COPPICE_TEST_PEAK"

const status = "/proc/self/status"

func withPeak(path string) int {
	code := Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	text, err := os.ReadFile(status)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cli.ExitFailed
	}
	return code
}

// peak runs a command in a process of its own, on one core, and returns the most
// memory that it had, in bytes.
func peak(b *testing.B, args ...string) float64 {
	b.Helper()
	if _, err := os.Stat(status); err != nil {
		b.Skip("the peak of a process is read from /proc")
	}
	out := filepath.Join(b.TempDir(), "peak")
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), cmdtest.AsCommand+"=1", peakFile+"="+out, "GOMAXPROCS=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", args, err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb * 1024
		}
	}
	b.Fatalf("no peak in %s", text)
	return 0
}
