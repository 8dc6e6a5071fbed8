package chaos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	c := Config{Seed: 4, Rounds: 2}
	r := newReport(&c, []*fault{find("leader-kill"), find("worker-kill")}, nil)
	for i, ms := range []int{400, 300, 500} {
		s := Strike{Round: 1, Fault: "leader-kill", Interval: 0.2}
		s.took(recovery{after: time.Duration(ms) * time.Millisecond, redone: uint64(100 * i)})
		r.Strikes = append(r.Strikes, s)
	}
	r.Strikes = append(r.Strikes, Strike{Round: 2, Fault: "leader-kill"})
	if err := r.missing(); err != nil && !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	r.summed()
	want := Row{
		Fault: "leader-kill", Injected: 4, Recovered: 3, Median: 0.4, Worst: 0.5,
		RedoneMedian: 100, RedoneWorst: 200,
	}
	if diff := cmp.Diff(want, r.Faults[0]); diff != "" {
		t.Error(diff)
	}
	if err := r.missing(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "worker-kill") {
		t.Errorf("a fault that was never injected: %v", err)
	}
}

func TestUsage(t *testing.T) {
	good := Config{Rounds: 1, Workers: 2}
	for name, change := range map[string]func(*Config){
		"no rounds":        func(c *Config) { c.Rounds = 0 },
		"one worker":       func(c *Config) { c.Workers = 1 },
		"unknown fault":    func(c *Config) { c.Faults = []string{"earthquake"} },
		"a fault twice":    func(c *Config) { c.Faults = []string{"worker-kill", "worker-kill"} },
		"other algorithms": func(c *Config) { c.Algorithm = "rf" },
	} {
		c := good
		change(&c)
		if _, err := Run(context.Background(), c); !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := good.prepared(); err != nil {
		t.Error(err)
	}
}
