package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/round"
)

// train -o jsonl prints the progress line by line, which never goes back, and at last the result
// that -o json prints.
func TestTrainLines(t *testing.T) {
	dir := t.TempDir()
	args := []string{"train", "--local", "--data", artificialFile(t, dir, "set.csv", 200, 1), "--algorithm", "structrf", "--set", "trees=20", "--threads", "1"}
	var want struct {
		Digest string `json:"model_digest"`
		Steps  uint64 `json:"steps"`
	}
	inJSON(t, &want, args...)
	got := want
	got.Digest = ""
	var at uint64
	all := strings.Split(strings.TrimSpace(works(t, append(args, "-o", "jsonl")...)), "\n")
	for i, text := range all {
		line := struct {
			Progress *round.Progress `json:"progress"`
			Result   any             `json:"result"`
		}{}
		if i == len(all)-1 {
			line.Result = &got
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("line %d, %s: %v", i, text, err)
		}
		if line.Progress == nil {
			continue
		}
		if line.Progress.Step < at || i == len(all)-1 {
			t.Errorf("line %d of %d is step %d, after step %d", i, len(all), line.Progress.Step, at)
		}
		at = line.Progress.Step
	}
	if diff := cmp.Diff(want, got); diff != "" || len(all) < 2 || at != want.Steps {
		t.Errorf("%d lines, the last progress is step %d of %d; %s", len(all), at, want.Steps, diff)
	}
}

// What has not changed is no new line.
func TestProgressLinesOnce(t *testing.T) {
	var out strings.Builder
	l := (&app{output: outputJSONL, data: &out}).newProgressLines()
	for range 3 {
		l.put(round.Progress{Step: 1})
	}
	l.put(round.Progress{Step: 2})
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
