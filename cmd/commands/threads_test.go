package commands

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestThreads: training, prediction and evaluation give the same bytes on any number of
// threads, and rows stay in their order.
func TestThreads(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 5*blockRows/2, 1)
	model := filepath.Join(dir, "m.model")
	var first result
	cmdtest.JSON(t, &first, trainArgs(data, "--threads", "1", "--model-out", model)...)
	for _, n := range []string{"2", "5"} {
		var r result
		cmdtest.JSON(t, &r, trainArgs(data, "--threads", n)...)
		if r.ModelDigest != first.ModelDigest {
			t.Errorf("%s threads: model %.12s, one: %.12s", n, r.ModelDigest, first.ModelDigest)
		}
	}
	outputs := func(threads string) string {
		out := filepath.Join(dir, "p"+threads+".csv")
		cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out, "--threads", threads)
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--threads", threads, "-o", "json")
	}
	want := outputs("1")
	for _, n := range []string{"0", "2", "7"} {
		if outputs(n) != want {
			t.Errorf("%s threads predict other bytes than one", n)
		}
	}
}

func TestThreadsUsage(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 100, 1)
	for want, args := range map[string][]string{
		"need --local":        {"train", "--dataset", "x", "--threads", "2"},
		"--kept-memory":       {"train", "--dataset", "x", "--kept-memory", "1GiB"},
		"--threads -1":        trainArgs(data, "--threads=-1"),
		"--threads 1000000: ": {"predict", "--model", "m", "--data", data, "--out", "o.csv", "--threads", "1000000"},
	} {
		if e := cmdtest.Run(t, args...); e.Code != ExitUsage || !strings.Contains(e.Stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

// lagging predicts the number of a block, the first ones slowest.
type lagging struct {
	algorithms.Model
	at, most atomic.Int32
}

func (*lagging) Shape() (int, int) { return 1, 1 }
func (*lagging) NewScratch() any   { return nil }

func (l *lagging) Predict(dst []float32, _ []dataset.RowRef, shard func(uint32) *dataset.Rows, _ any) {
	if n := l.at.Add(1); n > l.most.Load() {
		l.most.Store(n)
	}
	number := shard(0).Row[0]
	time.Sleep(time.Duration(20-number) * 100 * time.Microsecond)
	dst[0] = float32(number)
	l.at.Add(-1)
}

// TestPredictorKeepsOrder: blocks are handed on in the order in which they came, also where
// later ones are predicted before; an error ends it.
func TestPredictorKeepsOrder(t *testing.T) {
	l, next := &lagging{}, float32(0)
	stop := errors.New("stop")
	for _, last := range []float32{20, 7} {
		next = 0
		p := newPredictor(l, 1, 4, func(b *predicted) error {
			if b.values[0] != next {
				t.Errorf("block %v came as number %v", b.values[0], next)
			}
			if next++; next == last {
				return stop
			}
			return nil
		})
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = p.add(&dataset.Rows{N: 1, Row: []uint32{uint32(i)}}, nil)
		}
		if failed := p.end(); !errors.Is(failed, stop) || next != last {
			t.Errorf("it ended with %v after block %v", failed, next)
		}
	}
	if l.most.Load() < 2 {
		t.Error("no two blocks were predicted side by side")
	}
}

// TestSpentLine: where the time went is the end of the text, and in the JSON.
func TestSpentLine(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1)
	text := strings.TrimSpace(cmdtest.Works(t, trainArgs(data)...))
	lines := strings.Split(text, "\n")
	last := lines[len(lines)-1]
	for _, word := range []string{"time spent on", "steps ", "leaf updates ", "validation ", "waiting "} {
		if !strings.Contains(last, word) {
			t.Errorf("the last line %q lacks %q", last, word)
		}
	}
	for name, args := range map[string][]string{
		"one job": trainArgs(data), "folds": trainArgs(data, "--folds", "3", "--threads", "2"),
		"forest": {"train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=3"},
	} {
		var r result
		cmdtest.JSON(t, &r, args...)
		kinds := []string{"step", "leaf update", "validation", "evaluation", pipeline.Waiting}
		if name == "forest" {
			kinds = []string{"tree", "evaluation", pipeline.Waiting}
		}
		sum := 0.0
		for _, v := range r.Spent {
			sum += v
		}
		for _, kind := range kinds {
			if _, ok := r.Spent[kind]; !ok {
				t.Errorf("%s: no time of %q in %v", name, kind, r.Spent)
			}
		}
		lanes := 1.0
		if name == "folds" {
			lanes = 2
		}
		if sum > lanes*r.Seconds*1.01+0.01 || sum < lanes*r.Seconds*0.5 {
			t.Errorf("%s: %v s of %v s on %v lanes", name, sum, r.Seconds, lanes)
		}
	}
	if got := spentLine(map[string]float64{"zeal": 1, "tree": 65, pipeline.Waiting: 0.5, "evaluation": 2}); !strings.HasPrefix(got, "trees ") ||
		strings.Index(got, "evaluation") > strings.Index(got, "zeal") || !strings.Contains(got, ", waiting ") {
		t.Errorf("%q", got)
	}
}
