package served

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/protocol"
)

// bulk adds the records of all runs of a layout to a folder, without waiting for the disk.
func bulk(t testing.TB, dir string, l *experiment.Layout) {
	t.Helper()
	write(t, dir, l, 1, 0)
	path := filepath.Join(dir, runsFile)
	line, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, key := range l.Keys {
		text := bytes.Replace(bytes.TrimSuffix(line[9:], []byte("\n")), []byte(l.Keys[0]), []byte(key), 1)
		fmt.Fprintf(&b, "%08x %s\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)), text)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// cpu returns the CPU time that the process has used.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFolder measures the CPU time of the first and later lists of a folder with an experiment of 100,000 runs
// and with 3,000 small experiments, and of the report of the large one.
func BenchmarkFolder(b *testing.B) {
	dir := b.TempDir()
	large := planOf("large", 500, 100)
	bulk(b, filepath.Join(dir, "large.experiment"), large)
	for i := range 3000 {
		bulk(b, filepath.Join(dir, fmt.Sprintf("small%d.experiment", i)), planOf("small", 2, 5))
	}
	var times [6]time.Duration
	for b.Loop() {
		_, s := open(b, dir)
		var list protocol.ExperimentList
		var x protocol.Experiment
		var g protocol.ExperimentGrid
		for i, ask := range []func(){
			func() { get(b, s, "/v1/experiments?limit=100", &list) },
			func() { get(b, s, "/v1/experiments/large", &x) },
			func() { get(b, s, "/v1/experiments/large/grid?limit=100", &g) },
			func() { get(b, s, "/v1/experiments?state=done&limit=100", &list) },
			func() { get(b, s, "/v1/experiments?limit=100", &list) },
			func() { get(b, s, "/v1/experiments/large/report?format=csv", nil) },
		} {
			began := cpu(b)
			ask()
			times[i] += cpu(b) - began
		}
		if list.Total != 3001 || x.Done != 100_000 || g.Runs.Done != 100_000 {
			b.Fatal(list.Total, x.Done, g.Runs)
		}
		s.Close()
	}
	for i, name := range []string{"first-list", "large", "grid", "all-states", "later-list", "report"} {
		b.ReportMetric(float64(times[i].Milliseconds())/float64(b.N), name+"-cpu-ms")
	}
}
