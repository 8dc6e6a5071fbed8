package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// report is what a shard says of a seed: that it begins, or how it ended.
type report struct {
	Seed    uint64
	Ended   bool
	Check   string `json:",omitempty"`
	Text    string `json:",omitempty"`
	Cells   []int  `json:",omitempty"` // phase·faults + fault, for each run hit
	Entries int
	Virtual time.Duration
	NotRun  int `json:",omitempty"`
}

const reportMark = "simulated "

func (r *report) print() {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s%s\n", reportMark, b)
}

// runShard runs this process' seeds.
func runShard(t *testing.T) {
	var k, n int
	if _, err := fmt.Sscanf(*shard, "%d/%d", &k, &n); err != nil {
		t.Fatal(err)
	}
	for seed := k + 1; seed <= *seeds; seed += n {
		(&report{Seed: uint64(seed)}).print()
		r, story := simulateTraced(t, uint64(seed))
		out := report{Seed: uint64(seed), Ended: true, Entries: r.Entries, Virtual: r.Virtual, NotRun: r.NotRun}
		for c, hits := range r.Cells {
			for range hits {
				out.Cells = append(out.Cells, int(c.Phase)*int(faults)+int(c.Fault))
			}
		}
		if v := r.Violation; v != nil {
			out.Check, out.Text = v.Check, v.Text
			if *traces != "" {
				path := filepath.Join(*traces, fmt.Sprintf("seed-%d.txt", seed))
				if err := os.WriteFile(path, story, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
		out.print()
		if r.Violation != nil && *first {
			return
		}
	}
}

// simulateTraced is simulate, and returns what happened if -sim.traces is set.
func simulateTraced(t *testing.T, seed uint64) (r *Result, story []byte) {
	if *traces == "" {
		return simulate(t, seed, nil), nil
	}
	var mu sync.Mutex
	r = simulate(t, seed, func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		story = append(fmt.Appendf(story, format, args...), '\n')
	})
	return r, story
}

// total sums what all shards report.
type total struct {
	mu      sync.Mutex
	seeds   int
	entries int
	virtual time.Duration
	notRun  int
	cells   map[Cell]int
	broken  []string
	stop    context.CancelFunc // of all shards
}

// runShards runs seeds 1 to n in processes of their own.
func runShards(t *testing.T, n int) *total {
	t.Helper()
	sum := &total{cells: make(map[Cell]int)}
	var wait sync.WaitGroup
	var ctx context.Context
	ctx, sum.stop = context.WithCancel(t.Context())
	defer sum.stop()
	shards, dir := runtime.NumCPU(), directory(t)
	defer os.RemoveAll(dir) // whatever becomes of the processes
	for k := range shards {
		wait.Go(func() {
			if err := sum.run(ctx, dir, k, shards, n); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	return sum
}

// longestSeed is after how long a seed has hung. Most take less than a second. A
// goroutine that waits without synctest seeing it, such as for a mutex, stops virtual
// time for ever.
const longestSeed = 2 * time.Minute

// run runs one shard in another process.
func (s *total) run(ctx context.Context, dir string, k, shards, n int) error {
	args := []string{"-test.run=^TestSeeds$", "-test.timeout=0", "-sim.dir=" + dir,
		fmt.Sprintf("-sim.shard=%d/%d", k, shards), fmt.Sprintf("-sim.seeds=%d", n)}
	if *first {
		args = append(args, "-sim.first")
	}
	if *traces != "" {
		args = append(args, "-sim.traces="+*traces)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		return err
	}
	var last report
	var rest []string
	// it then says what its goroutines wait for
	hung := time.AfterFunc(longestSeed, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		hung.Reset(longestSeed)
		line, ok := strings.CutPrefix(lines.Text(), reportMark)
		if !ok {
			rest = append(rest, lines.Text())
			continue
		}
		last = report{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			return err
		}
		s.add(&last)
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		s.crashed(&last, strings.Join(rest, "\n")+errors.String())
	}
	return nil
}

func (s *total) add(r *report) {
	if !r.Ended {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.entries += r.Entries
	s.virtual += r.Virtual
	s.notRun += r.NotRun
	for _, c := range r.Cells {
		s.cells[Cell{Phase(c / int(faults)), Fault(c % int(faults))}]++
	}
	if r.Check != "" {
		s.broke(r.Seed, fmt.Sprintf("check %q: %s", r.Check, r.Text))
	}
}

// crashed notes that a process ended by a panic, a data race or a deadlock.
func (s *total) crashed(last *report, output string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seed := last.Seed
	s.broke(seed, "check \"process\": "+output[max(0, len(output)-8000):])
}

func (s *total) broke(seed uint64, text string) {
	if *first {
		s.stop()
	}
	s.broken = append(s.broken, fmt.Sprintf("seed %d: %s\nreplay: go test ./harness/sim -run TestSeeds -sim.seed=%d", seed,
		text, seed))
}
