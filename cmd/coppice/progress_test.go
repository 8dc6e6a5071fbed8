package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// slowMeter returns a meter and what moves its clock.
func slowMeter(terminal bool) (m *meter, out *bytes.Buffer, pass func(time.Duration)) {
	now := time.Unix(0, 0)
	out = new(bytes.Buffer)
	m = &meter{w: out, terminal: terminal, size: func() (columns, lines int) { return 0, 0 }, now: func() time.Time { return now }, start: now}
	return m, out, func(d time.Duration) { now = now.Add(d) }
}

// What takes under two seconds shows nothing; then there is a line every two.
func TestMeterLines(t *testing.T) {
	m, out, pass := slowMeter(false)
	for i := range 100 {
		m.training(round.Progress{Step: uint64(i), Steps: 100, Samples: uint64(i) * 64, Loss: 0.5, Phase: "training"})
		if i == 19 && out.Len() > 0 {
			t.Errorf("after 1.9 s it has shown %q", out)
		}
		pass(100 * time.Millisecond)
	}
	m.clear()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines in 10 s:\n%s", len(lines), out)
	}
	if want := "40 %  step 40 of 100  K-L 0.50000  640 samples/s  ETA 6.0 s  training"; strings.TrimSpace(lines[1]) != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
}

// On a terminal there is one line, which goes at the end.
func TestMeterTerminal(t *testing.T) {
	m, out, pass := slowMeter(true)
	for range 50 {
		m.show("text")
		pass(100 * time.Millisecond)
	}
	m.clear()
	if text := out.String(); strings.Contains(text, "\n") || strings.Count(text, "text") < 10 || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("got %q", text)
	}
}

func TestMeterJob(t *testing.T) {
	for _, test := range []struct {
		job  protocol.JobInfo
		want string
	}{
		{protocol.JobInfo{Name: "x", State: protocol.Queued}, "job x is queued"},
		{
			protocol.JobInfo{
				State: protocol.Running, Tasks: 8, Gathered: 2, InFlight: 3,
				Progress: &round.Progress{Step: 2, Steps: 8, Loss: 0.5, Phase: "growing trees"},
			}, " 25 %  step 2 of 8  K-L 0.50000  growing trees",
		},
		{protocol.JobInfo{State: protocol.Running, Progress: &round.Progress{Step: 5, Loss: -1}}, "step 5"},
		{
			protocol.JobInfo{
				State: protocol.Running, Job: &round.Job{Folds: 3}, Tasks: 3, Gathered: 1,
				Progress: &round.Progress{Step: 50, Steps: 100, Loss: -1, Phase: "1 of 3 folds done"},
			}, " 50 %  step 50 of 100  1 of 3 folds done",
		},
	} {
		m, out, pass := slowMeter(false)
		pass(quiet)
		m.job(&test.job)
		if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestWriting(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(-1234): "-1,234", count(999): "999", count(1000): "1,000", count(uint64(1234567)): "1,234,567",
		size(999): "999 B", size(1536): "1.5 KiB", size(3 << 30): "3.0 GiB",
		duration(0.0421): "42 ms", duration(3.21): "3.2 s", duration(185): "3m05s", duration(7500): "2h05m",
		figure(0): "0.00000", figure(1.1e-16): "1.1e-16", figure(-4e-9): "-4.0e-09", figure(0.12345678): "0.12346", figure(0.0000333): "0.0000333",
		plural(1, "row"): "1 row", plural(2, "row"): "2 rows", plural(1500, "entry"): "1,500 entries",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDatasetName(t *testing.T) {
	for path, want := range map[string]string{
		"/a/Yeast_alpha.mat": "Yeast_alpha", "digits.csv.gz": "digits", "my data (2).csv": "my_data_2_",
		"2024.csv": "data_2024", ".csv": "data_", "ä.csv": "data__",
	} {
		if got := datasetName(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for want, got := range map[string]string{
		"step 1": fit("step 1", 7), "step…": fit("step 1", 6), "long line": fit("long line", 0), "Σ d…": fit("Σ d ln", 5), "…": fit("abc", 2),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
