package engine

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Local computes rounds in this process. A cluster must give the same bytes.
type Local struct {
	kernel   round.Kernel
	data     *dataset.Data
	subJob   SubJobRunner
	cache    *DerivedCache
	lanes    int
	lender   lender
	taken    []*lane
	onResult func(task int, result []byte) // nil if nobody asks
	tree     Tree
}

// SubJobRunner runs a whole job and returns its encoded Outcome.
type SubJobRunner func(ctx context.Context, j *round.Job) ([]byte, error)

// NewLocal returns an executor with the given number of lanes: it computes so many tasks
// at a time.
func NewLocal(k round.Kernel, d *dataset.Data, lanes int, child SubJobRunner) *Local {
	l := &Local{kernel: k, data: d, subJob: child, cache: NewDerivedCache(DerivedLimit), lanes: max(1, lanes)}
	for range l.lanes {
		l.lender.newLane(k.NewScratch())
	}
	return l
}

// UseMemory makes l's derived values count against m, which other executors may share. Call
// it before the first round.
func (l *Local) UseMemory(m *DerivedMemory) { l.cache = m.NewCache() }

// OnResult has f called with each result of a gather round as soon as it is there, also concurrently. Call it before
// the first round.
func (l *Local) OnResult(f func(task int, result []byte)) { l.onResult = f }

// ReleaseMemory releases the memory of derived values. l must not be used afterwards.
func (l *Local) ReleaseMemory() { l.cache.Close() }

// Do implements Executor.
func (l *Local) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if how := r.Gather(); how != nil {
		return l.gather(ctx, r, how, res)
	}
	return l.sum(ctx, r, res)
}

func (l *Local) sum(ctx context.Context, r *round.Round, res *round.Result) error {
	res.Gathered, res.Digests = nil, nil // of the round before: they may be large
	l.tree.Reset(r.Tasks, r.Reduce().Shape)
	if l.lanes == 1 && r.Reduce().Exact {
		return l.sumInOne(ctx, r, res)
	}
	var mu sync.Mutex // guards tree
	err := l.each(ctx, r, func(u round.Task, x *lane) error {
		mu.Lock()
		p := l.tree.Partial()
		mu.Unlock()
		u.Lanes, u.Later = x, r.Tasks > 1
		if err := RunTask(p, l.kernel, u, l.data, r.Vars, l.cache, x.scratch); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return l.tree.PutTask(u.ID, p)
	})
	res.Sum = l.tree.Root()
	return err
}

// sumInOne computes all tasks of a round of exact sums, in order, in one partial.
func (l *Local) sumInOne(ctx context.Context, r *round.Round, res *round.Result) error {
	p := l.tree.Partial()
	if err := l.each(ctx, r, func(u round.Task, x *lane) error {
		u.Lanes = x
		return RunTask(p, l.kernel, u, l.data, r.Vars, l.cache, x.scratch)
	}); err != nil {
		l.tree.Release(p)
		return err
	}
	_, err := l.tree.Put(bits.Len(uint(r.Tasks-1)), 0, p)
	res.Sum = l.tree.Root()
	return err
}

func (l *Local) gather(ctx context.Context, r *round.Round, how *round.Gather, res *round.Result) error {
	res.Sum, res.Gathered, res.Digests = nil, nil, nil
	results := make([][]byte, r.Tasks)
	err := l.each(ctx, r, func(u round.Task, x *lane) error {
		if how.Skips(u.ID) {
			return nil
		}
		result, err := RunGather(ctx, l.kernel, u, l.data, r.Vars, l.subJob, x.scratch)
		if results[u.ID] = result; err == nil && l.onResult != nil {
			l.onResult(u.ID, result)
		}
		return err
	})
	res.Gathered = results
	return err
}

// each calls f for every task of the round, on all lanes. It returns the error of the
// lowest task that failed or panicked.
func (l *Local) each(ctx context.Context, r *round.Round, f func(round.Task, *lane) error) error {
	if l.lanes == 1 || r.Tasks == 1 {
		runtime.LockOSThread() // as a worker's lane does
		defer runtime.UnlockOSThread()
		x := l.lender.take()
		defer l.lender.give(x)
		for id := range r.Tasks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := guarded(f, r.Task(id), x); err != nil {
				return err
			}
		}
		return nil
	}
	return l.parallel(ctx, r, f)
}

// guarded calls f with its panic turned into an error, which names the task.
func guarded(f func(round.Task, *lane) error, u round.Task, x *lane) (err error) {
	defer func() {
		if p, ok := err.(*Panic); ok {
			err = fmt.Errorf("task %d: %w", u.ID, p)
		}
	}()
	defer Guard(&err, "computing the task")
	return f(u, x)
}

func (l *Local) parallel(ctx context.Context, r *round.Round, f func(round.Task, *lane) error) error {
	var (
		mu     sync.Mutex
		next   int
		failed = r.Tasks
		first  error
		wait   sync.WaitGroup
	)
	nextTask := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= r.Tasks && first == nil && ctx.Err() == nil
	}
	l.taken = l.taken[:0]
	for range min(l.lanes, r.Tasks) { // before any of them could be lent: between rounds all are idle
		l.taken = append(l.taken, l.lender.take())
	}
	for _, x := range l.taken {
		wait.Go(func() {
			defer l.lender.give(x)
			for id, ok := nextTask(); ok; id, ok = nextTask() {
				if err := guarded(f, r.Task(id), x); err != nil {
					mu.Lock()
					if id < failed {
						failed, first = id, err
					}
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// lender has the lanes of a Local that are at nothing.
type lender struct {
	mu   sync.Mutex
	idle []*lane
}

// lane is one lane of a Local. It lends the idle ones to its task (round.Lanes).
type lane struct {
	*lender
	scratch any
	own     Share  // of its task
	helps   *Share // of another lane's
	help    func() // helps with it; made once, so that lending takes no memory
}

// newLane adds a lane, which is idle.
func (l *lender) newLane(scratch any) {
	x := &lane{lender: l, scratch: scratch}
	x.help = x.helpOut
	l.give(x)
}

// take takes an idle lane; nil: there is none.
func (l *lender) take() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	x := l.idle[n-1]
	l.idle = l.idle[:n-1]
	return x
}

func (l *lender) give(x *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, x)
}

// Idle implements round.Lanes.
func (l *lender) Idle() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.idle)
}

// Do implements round.Lanes.
func (x *lane) Do(n int, p round.Parts) {
	x.own.Begin(n, p)
	defer x.own.End()
	for range n - 1 {
		helper := x.take()
		if helper == nil {
			break
		}
		x.own.Join()
		helper.helps = &x.own
		go helper.help()
	}
	x.own.Work(x.scratch)
}

// helpOut is a lent lane's work. It is idle again before the lane that it helped goes on.
func (x *lane) helpOut() {
	s := x.helps
	if stack := s.Help(x.scratch); stack != nil {
		os.Stderr.Write(stack) // the lender panics, and its stack does not have this one
	}
	x.give(x)
	s.Leave()
}

// Share is the parts of one task while lanes compute them together: those of the lane that
// has the task, which calls Begin, Work and End, and of each helper between its Join,
// which comes before End, and the end of its Help. Its memory serves one set of parts
// after the other.
type Share struct {
	parts   round.Parts
	n       int64
	next    atomic.Int64 // the first part that nobody has begun
	helpers sync.WaitGroup

	mu       sync.Mutex
	panicked any // what a helper's part panicked with
}

// Begin makes n parts ready.
func (s *Share) Begin(n int, p round.Parts) {
	s.parts, s.n = p, int64(n)
	s.next.Store(0)
}

// Open reports whether there are parts that nobody has begun.
func (s *Share) Open() bool { return s.next.Load() < s.n }

// Work computes parts until none is left to begin. Where one panics, no further one
// begins anywhere.
func (s *Share) Work(scratch any) {
	defer s.next.Store(s.n)
	for i := s.next.Add(1) - 1; i < s.n; i = s.next.Add(1) - 1 {
		s.parts.Part(int(i), scratch)
	}
}

// Join announces a helper.
func (s *Share) Join() { s.helpers.Add(1) }

// Help is Work of a helper. If a part panics, End panics with the same value, and Help
// returns the stack of the part; else nil.
func (s *Share) Help(scratch any) (stack []byte) {
	defer func() {
		if r := recover(); r != nil {
			stack = debug.Stack()
			s.mu.Lock()
			s.panicked = r
			s.mu.Unlock()
		}
	}()
	s.Work(scratch)
	return nil
}

// Leave is the end of a helper's part in it.
func (s *Share) Leave() { s.helpers.Done() }

// End waits for the helpers. Nobody joins any more.
func (s *Share) End() {
	s.helpers.Wait()
	s.parts, s.n = nil, 0
	if r := s.panicked; r != nil {
		s.panicked = nil
		panic(r)
	}
}
