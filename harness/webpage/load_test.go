package webpage_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// The flags of TestLoad, which only runs if it is asked for, on a machine with nothing else to do:
//
//	go test ./harness/webpage -run TestLoad -v -timeout 1h -args -pairs 6
var (
	pairs  = flag.Int("pairs", 0, "pairs of runs, one with and one without open pages, of TestLoad; 0: none")
	window = flag.Duration("window", 30*time.Second, "length of a run of TestLoad")
	loadAt = flag.String("load-at", "all", "coordinators whose page TestLoad opens: all, leader or followers")
)

const (
	openPages      = 200
	viewsPerSecond = 50
	// mostCost is the fraction of its speed that a job may lose.
	mostCost = 0.05
	settling = 2 * time.Second // after the load has changed
)

// livePages are the pages that are open, in turns, and viewedPages those that are visited.
var (
	livePages   = []string{"/jobs/load", "/jobs", "/workers", "/jobs/load?by=seconds", "/jobs?state=running"}
	viewedPages = []string{"/jobs/load", "/jobs", "/workers", "", "/coordinators", "/submit"}
)

// TestLoad measures what 200 open pages and 50 visits a second cost a running job of ldlf. Runs with and without this
// load take turns; every second pair begins with the load.
func TestLoad(t *testing.T) {
	if *pairs == 0 {
		t.Skip("the load is measured with -args -pairs N")
	}
	testkit.WithoutRace(t)
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 3, Workers: 2, WorkerArgs: []string{"--slots", "1"}})
	t.Setenv("COPPICE_SERVER", c.Servers())
	dir := t.TempDir()
	cmdtest.Works(t, "dataset", "import", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 4000, 1), "--name", "set")
	cmdtest.Works(t, "job", "submit", "--dataset", "set", "--algorithm", "ldlf", "--name", "load", "--test-fraction",
		"0.1", "--steps", "100000000", "--set", "patience=100000000", "--set", "batch_size=256")
	testkit.Until(t, "the first steps", func() bool { return step(t, c) > 100 })
	m := &loadMeasure{t: t, c: c, pids: make(map[string][]int)}
	for _, n := range c.Coordinators {
		m.pids["coordinators"] = append(m.pids["coordinators"], n.Pid())
	}
	for _, n := range c.Workers {
		m.pids["workers"] = append(m.pids["workers"], n.Pid())
	}
	m.pids["load generator"] = []int{os.Getpid()}
	m.run() // not counted
	fmt.Printf("%d open pages and %d visits a second at %s; runs of %v\n", openPages, viewsPerSecond, *loadAt, *window)
	var costs []float64
	for i := range *pairs {
		var with, without loadRun
		var l *load
		measure := func(loaded bool) {
			if !loaded {
				time.Sleep(settling)
				without = m.run()
				return
			}
			l = startLoad(t, m.addresses())
			time.Sleep(settling)
			l.reset()
			with = m.run()
			l.stop()
		}
		measure(i%2 == 1)
		measure(i%2 == 0)
		cost := 1 - with.speed/without.speed
		costs = append(costs, cost)
		const what = "coordinators"
		cores := with.cpu[what] - without.cpu[what]*with.speed/without.speed // as many steps take as much
		fmt.Printf("pair %d: without %v\n        with    %v\n        %v\n        the load costs %.1f %% of the speed, and the "+
			"%s %.3f cores\n", i+1, without, with, l.report(with.took), 100*cost, what, cores)
	}
	slices.Sort(costs)
	median := (costs[(len(costs)-1)/2] + costs[len(costs)/2]) / 2
	fmt.Printf("median cost of %d pairs: %.1f %% (%.1f to %.1f)\n", *pairs, 100*median, 100*costs[0], 100*costs[len(costs)-1])
	if median > mostCost {
		t.Errorf("the load costs %.1f %% of the speed, and %.0f %% are allowed", 100*median, 100*mostCost)
	}
	cmdtest.Works(t, "job", "cancel", "load")
}

// step returns the step of the job.
func step(t *testing.T, c *proc.Cluster) uint64 {
	t.Helper()
	j, err := c.Client().Jobs().Get(t.Context(), "load")
	if err != nil {
		t.Fatal(err)
	}
	if j.State.Final() {
		t.Fatalf("the job is %s: %s", j.State, j.Error)
	}
	if j.Progress == nil {
		return 0
	}
	return j.Progress.Step
}

// loadMeasure measures runs.
type loadMeasure struct {
	t    *testing.T
	c    *proc.Cluster
	pids map[string][]int // of processes, by what they are
}

// loadRun is what a run has found.
type loadRun struct {
	took  time.Duration
	speed float64            // steps of the job a second
	cpu   map[string]float64 // cores that processes used on average
}

// String implements fmt.Stringer.
func (r loadRun) String() string {
	text := fmt.Sprintf("%8.1f steps/s; cores:", r.speed)
	for _, what := range []string{"coordinators", "workers", "load generator"} {
		text += fmt.Sprintf(" %s %.3f", what, r.cpu[what])
	}
	return text
}

// run measures the job for a while.
func (m *loadMeasure) run() loadRun {
	used := func() map[string]time.Duration {
		all := make(map[string]time.Duration)
		for what, pids := range m.pids {
			for _, pid := range pids {
				all[what] += cmdtest.CPUTime(m.t, pid)
			}
		}
		return all
	}
	began, cpu, first := time.Now(), used(), step(m.t, m.c)
	time.Sleep(*window)
	last, after := step(m.t, m.c), used()
	r := loadRun{took: time.Since(began), cpu: make(map[string]float64)}
	r.speed = float64(last-first) / r.took.Seconds()
	for what := range after {
		r.cpu[what] = (after[what] - cpu[what]).Seconds() / r.took.Seconds()
	}
	return r
}

// addresses returns the coordinators whose page is opened.
func (m *loadMeasure) addresses() (all []string) {
	leader := cmdtest.Leader(m.t, m.c)
	for _, n := range m.c.Coordinators {
		if *loadAt == "all" || (*loadAt == "leader") == (n == leader) {
			all = append(all, "http://"+m.c.HTTP(n)+"/ui")
		}
	}
	return all
}

// load is open pages and visits.
type load struct {
	cancel func()
	all    sync.WaitGroup
	client *http.Client

	events, received, lost, failed atomic.Int64
	mu                             sync.Mutex
	took                           []time.Duration // of visits
	why                            error           // the first failure
}

// startLoad opens the pages and begins with the visits. It returns once all pages are open.
func startLoad(t *testing.T, roots []string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: viewsPerSecond}}}
	opened := make(chan error, openPages)
	for i := range openPages {
		l.all.Go(func() {
			l.open(ctx, roots[i%len(roots)]+"/live"+livePages[i/len(roots)%len(livePages)], opened)
		})
	}
	for range openPages {
		if err := <-opened; err != nil {
			l.stop()
			t.Fatal(err)
		}
	}
	l.all.Go(func() {
		tick := time.NewTicker(time.Second / viewsPerSecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.all.Go(func() { l.visit(ctx, roots[i%len(roots)]+viewedPages[i/len(roots)%len(viewedPages)]) })
			}
		}
	})
	return l
}

// open reads a stream of changes until the end. It reports its first event, or an error, to opened.
func (l *load) open(ctx context.Context, address string, opened chan<- error) {
	response, err := l.get(ctx, address)
	if err != nil {
		opened <- err
		return
	}
	defer response.Body.Close()
	lines, begun := bufio.NewReaderSize(response.Body, 64<<10), false
	for {
		line, err := lines.ReadSlice('\n')
		l.received.Add(int64(len(line)))
		if strings.HasPrefix(string(line[:min(len(line), 16)]), "event: regions") {
			l.events.Add(1)
			if !begun {
				begun = true
				opened <- nil
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if !begun {
				opened <- fmt.Errorf("%s: %w", address, err)
			} else if ctx.Err() == nil {
				l.fail(&l.lost, fmt.Errorf("%s: %w", address, err))
			}
			return
		}
	}
}

// visit reads a page.
func (l *load) visit(ctx context.Context, address string) {
	began := time.Now()
	response, err := l.get(ctx, address)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.fail(&l.failed, err)
	default:
		l.mu.Lock()
		l.took = append(l.took, time.Since(began))
		l.mu.Unlock()
	}
}

// get begins to read an address, which must answer with status 200.
func (l *load) get(ctx context.Context, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s", address, response.Status)
	}
	return response, nil
}

func (l *load) fail(count *atomic.Int64, err error) {
	count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = err
	}
}

// reset begins to count.
func (l *load) reset() {
	l.events.Store(0)
	l.received.Store(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = nil
}

// stop closes all pages.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
	l.client.CloseIdleConnections()
}

// report says what the load was, over a time.
func (l *load) report(over time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.took)
	part := func(p float64) time.Duration {
		if len(l.took) == 0 {
			return 0
		}
		return l.took[int(math.Ceil(p*float64(len(l.took))))-1].Round(100 * time.Microsecond)
	}
	text := fmt.Sprintf("%.1f visits/s, median %v, 99 %% within %v, %d failed; %.0f events/s, %.2f MB/s, %d pages lost",
		float64(len(l.took))/over.Seconds(), part(.5), part(.99), l.failed.Load(), float64(l.events.Load())/over.Seconds(),
		float64(l.received.Load())/1e6/over.Seconds(), l.lost.Load())
	if l.why != nil {
		text += ": " + l.why.Error()
	}
	return text
}
