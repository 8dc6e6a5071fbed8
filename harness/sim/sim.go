package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Times of a run, virtual.
const (
	// strikeFor is how long faults strike.
	strikeFor = 8 * time.Second
	// apart is the time between two starts.
	apart = 1234567 * time.Nanosecond
	// Within is how long all jobs may take to end once the last fault has ended.
	Within = 60 * time.Second
)

// Sim is one run. Its fields are made before anything runs, or guarded by mu.
type Sim struct {
	seed  uint64
	dir   string
	out   func(format string, args ...any) // nil: quiet
	given *material
	dice  *dice
	net   *network
	log   *raftLog
	began time.Time

	coordinators, workers []*process
	spare                 *process // a worker that joins late
	tasks                 sync.WaitGroup
	failed                chan struct{} // closed with broken
	stopped               chan struct{} // closed with over
	hasty, nameless       bool          // how clients are
	audit                 uint32        // what jobs ask for, in millionths

	ending atomic.Int64 // faults that have not ended

	mu       sync.Mutex
	broken   *Violation
	over     bool // everything stops
	calm     bool // no fault strikes any more
	armed    []*armed
	hit      map[Cell]int
	index    uint64 // of the latest state seen anywhere
	last     map[uint64]*state.Job
	deleting map[uint64]bool       // jobs that a client asked to delete
	gone     map[uint64]bool       // jobs that were deleted
	refs     map[uint64]*reference // by job
	ended    map[round.Cell]uint64 // the job in which a cell of the experiment ended
	records  map[unitOf]uint64     // the entry that recorded a unit of a job of cells, or that it is not run
	notRun   map[unitOf]bool       // units that are not run, since their budget is used up
	promised []ack
	heard    map[*host]uint64 // the highest epoch that a worker's life was sent
	orders   map[order]bool   // of an epoch that was over
}

// Result is what became of a run.
type Result struct {
	Violation *Violation // nil: every promise was kept
	Cells     map[Cell]int
	Entries   int           // of the log
	Virtual   time.Duration // that the run took
	NotRun    int           // units that budgets left out
}

// Run runs the simulation of a seed, in the bubble of the caller, with its disks
// below dir. out, where not nil, is told what happens.
func Run(seed uint64, dir string, out func(format string, args ...any)) (*Result, error) {
	given, err := theMaterial()
	if err != nil {
		return nil, err
	}
	s := &Sim{
		seed: seed, dir: dir, out: out, given: given, dice: newDice(seed, "faults"),
		net: newNetwork(seed), began: time.Now(), failed: make(chan struct{}),
		hit: make(map[Cell]int), last: make(map[uint64]*state.Job), deleting: make(map[uint64]bool), gone: make(map[uint64]bool), refs: make(map[uint64]*reference),
		ended: make(map[round.Cell]uint64), records: make(map[unitOf]uint64), notRun: make(map[unitOf]bool),
		heard: make(map[*host]uint64), orders: make(map[order]bool), stopped: make(chan struct{}),
	}
	s.net.tap = s.arrives
	if err := s.furnish(); err != nil {
		return nil, err
	}
	var w watcher = s
	watching.Store(&w)
	defer watching.Store(nil)
	s.run()
	r := &Result{Violation: s.broken, Cells: s.hit, Entries: len(s.log.after(0)), Virtual: time.Since(s.began), NotRun: len(s.notRun)}
	return r, nil
}

// furnish makes the processes and what they start from: a dataset, imported.
func (s *Sim) furnish() error {
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		p := &process{name: name, disk: newDisk(s.dir, name)}
		folder, err := p.disk.open(newHost(name))
		if err != nil {
			return err
		}
		for _, b := range s.given.shards {
			if _, err := folder.Put(b); err != nil {
				return err
			}
		}
		names = append(names, name)
		s.coordinators = append(s.coordinators, p)
	}
	for i := range 2 + s.dice.n(2) {
		s.workers = append(s.workers, s.newWorker(fmt.Sprintf("w%d", i)))
	}
	s.spare = s.newWorker("late")
	s.log = newRaftLog(s.seed, names, s)
	s.log.entries = [][]byte{protocol.EncodeEntry(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: dataName, Manifest: s.given.manifest})}
	s.plan()
	s.audit = []uint32{0, 0, 0, 1e6, 2e5}[s.dice.n(5)]
	s.hasty, s.nameless = s.dice.chance(0.15), s.dice.chance(0.5)
	return nil
}

func (s *Sim) newWorker(name string) *process {
	return &process{name: name, worker: true, dir: filepath.Join(s.dir, name+".0")}
}

// run runs all processes and clients until all jobs have ended, or a promise is
// broken.
func (s *Sim) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var base sync.WaitGroup
	base.Go(func() { s.net.run(ctx) })
	base.Go(func() { s.log.run(ctx) })
	for _, p := range append(append([]*process{}, s.coordinators...), s.workers...) {
		s.start(p)
		time.Sleep(apart) // virtual time: so that their timers do not end together
	}
	var clients sync.WaitGroup
	clients.Go(func() { s.useIt(ctx) })
	s.wait(ctx, &clients)
	s.compare()
	s.stored()
	s.stop()
	cancel()
	clients.Wait()
	base.Wait()
	s.tasks.Wait()
}

// useIt is what clients do: two jobs that must end, one that is cancelled and, in
// some runs, deleted, and in half of the runs an experiment.
func (s *Sim) useIt(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	first := uint64(1 + 2*s.dice.n(2))
	for _, seed := range []uint64{first, first + 1} {
		after, rest := s.dice.between(0, 300*time.Millisecond), s.dice.between(0, time.Second)
		tired := s.dice.chance(0.2)
		all.Go(func() {
			wait.For(ctx, after)
			if j := s.submit(ctx, seed); j != nil && tired {
				wait.For(ctx, rest)
				s.rest(ctx, j, rest)
			}
		})
	}
	if s.dice.chance(0.5) {
		p := studyPlan{after: s.dice.between(0, 500*time.Millisecond), extend: s.dice.between(0, time.Second)}
		if s.dice.chance(0.5) {
			p.cancel = s.dice.between(1, 700*time.Millisecond)
		}
		if s.dice.chance(0.5) {
			p.budget = s.dice.between(1, maxBudget)
		}
		all.Go(func() { s.useStudy(ctx, p) })
	}
	after, then := s.dice.between(0, time.Second), s.dice.between(0, 1500*time.Millisecond)
	tidy := s.dice.chance(0.6)
	all.Go(func() {
		wait.For(ctx, after)
		if j := s.submit(ctx, longVariant); j != nil {
			wait.For(ctx, then)
			if s.cancel(ctx, j); tidy {
				s.remove(ctx, j, longVariant)
			}
		}
	})
}

// wait waits until the clients have what they want, in the end without faults.
func (s *Sim) wait(ctx context.Context, clients *sync.WaitGroup) {
	asked := make(chan struct{})
	go func() { clients.Wait(); close(asked) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	calmSince := time.Time{}
	for {
		select {
		case <-s.failed:
			return
		case <-tick.C:
		}
		select {
		case <-asked:
			if s.allEnded() {
				return
			}
		default:
		}
		if calmSince.IsZero() && time.Since(s.began) > strikeFor && s.quiet() {
			calmSince = time.Now()
		}
		if !calmSince.IsZero() && time.Since(calmSince) > Within {
			stacks := make([]byte, 1<<20)
			s.trace("%s", stacks[:runtime.Stack(stacks, true)])
			s.fail("liveness", "%v after the last fault ended: %s", Within, s.describe())
			return
		}
	}
}

// quiet ends the time of faults, and reports whether all have ended.
func (s *Sim) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
	return s.ending.Load() == 0
}

// allEnded reports whether all jobs have ended.
func (s *Sim) allEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.last {
		if !j.State.Final() {
			return false
		}
	}
	return len(s.last) > 0 && s.ending.Load() == 0
}

func (s *Sim) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("entry %d", s.index)
	for _, j := range s.last {
		text += fmt.Sprintf("; %v is %s at round %d", j, j.State, j.Round)
	}
	return text
}

// compare checks that states of the same index have the same bytes, and that a
// snapshot's bytes are those of the state.
func (s *Sim) compare() {
	seen := make(map[uint64][]byte)
	for _, p := range s.coordinators {
		v := s.view(p)
		if v == nil {
			continue
		}
		st := v.State()
		var b bytes.Buffer
		if err := st.Encode(&b); err != nil {
			s.fail("replica", "%s: %v", p.name, err)
			return
		}
		if other, ok := seen[st.Index()]; ok && !bytes.Equal(other, b.Bytes()) {
			s.fail("replica", "coordinators differ at entry %d", st.Index())
		}
		seen[st.Index()] = b.Bytes()
	}
}

// stop ends all processes.
func (s *Sim) stop() {
	s.mu.Lock()
	s.over = true
	close(s.stopped)
	var lives []*life
	for _, p := range append(append([]*process{}, s.coordinators...), append(s.workers, s.spare)...) {
		if p.now != nil {
			lives = append(lives, p.now)
		}
	}
	s.mu.Unlock()
	for _, l := range lives {
		l.host.thaw()
		l.host.kill()
		l.cancel()
	}
}

// trace tells what happens.
func (s *Sim) trace(format string, args ...any) {
	if s.out != nil {
		s.out("%9.3fms "+format, append([]any{float64(time.Since(s.began).Microseconds()) / 1e3}, args...)...)
	}
}

// logger is the log of a process.
func (s *Sim) logger(name string) *slog.Logger {
	if s.out == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(writer(func(b []byte) { s.trace("%s: %s", name, bytes.TrimSpace(b)) }), &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// writer is an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
