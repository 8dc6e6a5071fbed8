package main

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
)

// While a job tells nothing there is a line every two seconds all the same: how long the job has
// been training, then what the job told last.
func TestPulse(t *testing.T) {
	m, out, pass := slowMeter(false)
	p := &pulse{meter: m, began: m.now()}
	wait := func() {
		for range 10 {
			pass(500 * time.Millisecond)
			p.again()
		}
	}
	wait()
	p.training(round.Progress{Step: 1, Steps: 3, Loss: -1, Phase: "growing trees"})
	wait()
	want := []string{"training for 2.0 s", "training for 4.0 s", "33 %  step 1 of 3  growing trees", "33 %  step 1 of 3  growing trees", "33 %  step 1 of 3  growing trees"}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines in 10 s:\n%s", len(got), out)
	}
	for i := range got {
		if strings.TrimSpace(got[i]) != want[i] {
			t.Errorf("line %d is %q, want %q", i, got[i], want[i])
		}
	}
}
