package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
)

func TestReadingLine(t *testing.T) {
	for _, test := range []struct {
		doing    string
		p, first dataset.Progress
		seconds  float64
		want     string
	}{
		{"predicting", dataset.Progress{Phase: "read", Done: 4096, Of: 10000, Part: .4096}, dataset.Progress{}, 2, " 41 %  predicting: 4,096 of 10,000 samples  2,048 samples/s  ETA 2.9 s"},
		{"evaluating", dataset.Progress{Phase: "read", Done: 1200, Of: -1, Part: .75}, dataset.Progress{Done: 200, Part: .5}, 4, " 75 %  evaluating: 1,200 samples  250 samples/s  ETA 4.0 s"},
		{"reading data", dataset.Progress{Phase: "check", Done: 512, Of: -1, Part: -1}, dataset.Progress{Part: -1}, 1, "reading data (check): 512 samples  512 samples/s"},
		{"reading data", dataset.Progress{Phase: "store", Done: 3, Of: 4, Part: .75}, dataset.Progress{Done: 1, Part: .25}, 2, " 75 %  reading data (store): 3 of 4 shards  ETA 1.0 s"},
		{"writing", dataset.Progress{Phase: "write", Done: 10, Of: 10, Part: 1}, dataset.Progress{Phase: "write", Done: 10, Of: 10, Part: 1}, 0, "100 %  writing: 10 of 10 samples"},
	} {
		if got := readingLine(test.doing, test.p, test.first, time.Duration(test.seconds*float64(time.Second))); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Rates count from the beginning of each phase.
func TestReadingPhases(t *testing.T) {
	m, out, pass := slowMeter(false)
	o := readingFor(t.Context(), "reading data", dataset.Checks{}, m)
	pass(quiet)
	for _, phase := range []string{"check", "sort"} {
		for i := range 4 {
			o.Progress(dataset.Progress{Phase: phase, Done: 1000 * i, Of: 4000, Part: float64(i) / 4})
			pass(lineEvery)
		}
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if want := " 75 %  reading data (sort): 3,000 of 4,000 samples  500 samples/s  ETA 2.0 s"; len(lines) != 8 || lines[7] != want {
		t.Errorf("got %q", lines)
	}
}

// A command that goes through a file in a format whose number of rows only its end tells says
// how much of it is done, more often than its blocks of rows end; one that is quick says nothing.
func TestPredictProgress(t *testing.T) {
	dir := t.TempDir()
	data := artificialFile(t, dir, "set.csv", 3000, 1)
	src, err := dataset.Open(data, dataset.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, out, pass := slowMeter(false)
	o := readingFor(t.Context(), "predicting", dataset.Checks{}, m)
	show := o.Progress
	o.Progress = func(p dataset.Progress) { pass(lineEvery); show(p) }
	if err := dataset.Blocks(src, blockRows, o, func(*dataset.Rows, []string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) < 3000/512 {
		t.Errorf("%d lines for 3,000 samples", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(line, " %  predicting: ") || !strings.HasSuffix(strings.Fields(line)[0], "0") && len(strings.Fields(line)) < 4 {
			t.Errorf("got %q", line)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "100 %") {
		t.Errorf("at the end %q", last)
	}
	model := write(t, dir, "m.coppice", "")
	works(t, append([]string{"train", "--local", "--data", data, "--model-out", model}, small...)...)
	for _, args := range [][]string{
		{"predict", "--model", model, "--data", data, "--out", dir + "/out.csv"}, {"evaluate", "--model", model, "--data", data},
	} {
		if e := coppice(t, args...); e.code != exitOK || bytes.Contains([]byte(e.stderr), []byte("rows/s")) {
			t.Errorf("%v: exit code %d, %s", args, e.code, e.stderr)
		}
	}
}
