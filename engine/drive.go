package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Executor computes the tasks of a round and combines their results.
type Executor interface {
	// Do runs round number n of the job and fills res, which stays valid until
	// the next call. It blocks until every task has a result. An error means that the
	// job cannot go on, or that ctx is done.
	Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error
}

// Observer is called after every Fold; rounds is the number of rounds folded since
// the job began. It may encode the trainer's state. An error stops the job.
type Observer func(rounds uint64, t round.Trainer) error

// Drive runs rounds from number start until the training is complete or ctx ends. Errors name the round, except for
// the first one: before it is folded, errors are about the data or the settings.
func Drive(ctx context.Context, t round.Trainer, start uint64, x Executor, observe Observer) error {
	var res round.Result
	for n := start; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := t.Next()
		if err != nil {
			return atRound(n, err)
		}
		if r == nil {
			return nil
		}
		if err := x.Do(ctx, n, r, &res); err != nil {
			return atRound(n, err)
		}
		if r.Reduce() != nil && res.Sum == nil {
			return fmt.Errorf("round %d: the result lacks the sum of the tasks' results", n)
		}
		if err := t.Fold(&res); err != nil {
			return atRound(n, err)
		}
		if err := observe(n+1, t); err != nil {
			return err
		}
	}
}

// atRound adds the number of a round to an error, unless it is the first round.
func atRound(n uint64, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("round %d: %w", n, err)
}

// RoundTimes adds up the durations of rounds by their Kind. It is safe for concurrent use:
// concurrent jobs may share one.
type RoundTimes struct {
	mu     sync.Mutex
	byKind map[string]time.Duration
}

// Seconds returns the total duration, in seconds, of the rounds of each Kind.
func (s *RoundTimes) Seconds() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	seconds := make(map[string]float64)
	for kind, d := range s.byKind {
		seconds[kind] = d.Seconds()
	}
	return seconds
}

// ComputeTimer is an Executor that knows how long workers computed for a round.
type ComputeTimer interface {
	Executor
	// Computed returns the longest compute time that a worker reported for a partial of the
	// last reduce round; 0: unknown.
	Computed() time.Duration
}

// Measure returns an Executor that adds the durations of x's rounds to s. If x is a
// ComputeTimer, a reduce round counts at most its Computed. skipChildren leaves out rounds
// whose tasks are whole jobs, for callers that measure those jobs themselves.
func (s *RoundTimes) Measure(x Executor, skipChildren bool) Executor {
	return &timedExecutor{x, s, skipChildren}
}

type timedExecutor struct {
	Executor
	times       *RoundTimes
	skipSubJobs bool
}

// Do implements Executor.
func (m *timedExecutor) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	began := time.Now()
	err := m.Executor.Do(ctx, n, r, res)
	if m.skipSubJobs && r.Gather() != nil && r.Gather().SubJob != nil {
		return err
	}
	took := time.Since(began)
	if c, ok := m.Executor.(ComputeTimer); ok && r.Reduce() != nil && c.Computed() > 0 {
		took = min(took, c.Computed())
	}
	m.times.mu.Lock()
	defer m.times.mu.Unlock()
	if m.times.byKind == nil {
		m.times.byKind = make(map[string]time.Duration)
	}
	m.times.byKind[r.Kind] += took
	return err
}

// RunTask computes one task of a reduce round into dst.
func RunTask(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache,
	scratch any) error {
	_, err := runTask(dst, k, u, d, v, cache, scratch)
	return err
}

// RunFinite is RunTask that returns the error of CheckFinite if dst is not finite. It takes no longer: large partials
// are not read once more for it.
func RunFinite(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache,
	scratch any) error {
	isFinite, err := runTask(dst, k, u, d, v, cache, scratch)
	if err != nil || isFinite && num.Finite64(dst.F64) {
		return err
	}
	return CheckFinite(dst)
}

// runTask is RunTask that reports whether all float32 numbers are finite. It is the only caller of ReduceKernel.Run, in
// this process and on workers.
func runTask(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache,
	scratch any) (finite bool, err error) {
	s, ok := k.(round.ReduceKernel)
	if !ok {
		return false, fmt.Errorf("task %d: the algorithm has no tasks whose results are summed", u.ID)
	}
	value, err := cache.get(s, u, d, v, scratch)
	if err != nil {
		return false, fmt.Errorf("task %d: %w", u.ID, err)
	}
	if value != nil {
		defer value.Release()
	}
	if err := s.Run(dst, u, d, v, value, scratch); err != nil {
		return false, fmt.Errorf("task %d: %w", u.ID, err)
	}
	// -0 becomes +0. Dense partials, row-sparse partials and absent rows then add up to the same bits (design section
	// 8.4).
	num.Canonical64(dst.F64)
	finite = num.Canonical32(dst.F32)
	return num.Canonical32(dst.Values) && finite, nil
}

// RunGather computes one task of a gather round: it runs the task's sub-job if it has
// one, and calls the kernel's Gather otherwise.
func RunGather(ctx context.Context, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, child SubJobRunner,
	scratch any) ([]byte, error) {
	if u.SubJob != nil {
		result, err := child(ctx, u.SubJob)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", u.ID, err)
		}
		return result, nil
	}
	c, ok := k.(round.GatherKernel)
	if !ok {
		return nil, errors.New("the algorithm has no tasks whose results are gathered")
	}
	result, err := c.Gather(ctx, u, d, v, scratch)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", u.ID, err)
	}
	return result, nil
}

// ErrNonFinite is what errors of CheckFinite are.
var ErrNonFinite = errors.New("a partial result is not finite")

// CheckFinite returns an error, which is ErrNonFinite, that names the first number of p that is NaN or
// infinite, or nil. The cause is bad memory on the machine, or training that diverges;
// a second machine's result tells which.
func CheckFinite(p *round.Partial) error {
	return cmp.Or(
		finite("float64 value", p.F64), finite("float32 value", p.F32), finite("value of a sparse row", p.Values),
	)
}

func finite[T float32 | float64](what string, v []T) error {
	for i, x := range v {
		switch {
		case x != x:
			return fmt.Errorf("%w: %s %d is NaN", ErrNonFinite, what, i)
		case x-x != 0:
			return fmt.Errorf("%w: %s %d is infinite", ErrNonFinite, what, i)
		}
	}
	return nil
}

// Panic is the error that Guard makes of an algorithm's panic.
type Panic struct {
	Doing string // what panicked, such as "computing the task"
	Value any    // what it panicked with
	Stack []byte // of the goroutine that panicked
}

// Error implements error, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%s panicked: %v", p.Doing, p.Value) }

// Unwrap returns Value if it is an error, such as a runtime.Error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Guard, deferred, turns a panic into a *Panic in *err: the algorithm's job fails, and the
// process goes on. A goroutine guards itself; its callers cannot.
func Guard(err *error, doing string) {
	if r := recover(); r != nil {
		*err = &Panic{Doing: doing, Value: r, Stack: debug.Stack()}
	}
}

// PanicStack returns the stack of the panic that err comes from; "": it comes from none.
func PanicStack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}

// DerivedLimit is the default bound, in bytes, on the derived values of a process.
const DerivedLimit = 256 << 20

// DerivedMemory is the byte budget for derived values that all jobs of a process share. It
// is safe for concurrent use.
type DerivedMemory struct {
	limit int

	mu   sync.Mutex
	used int
}

// NewDerivedMemory returns a budget of limit bytes.
func NewDerivedMemory(limit int) *DerivedMemory { return &DerivedMemory{limit: limit} }

// NewCache returns an empty cache for one job, which counts against m.
func (m *DerivedMemory) NewCache() *DerivedCache {
	return &DerivedCache{memory: m, values: make(map[derivedKey]round.Derived)}
}

// Used returns the number of reserved bytes.
func (m *DerivedMemory) Used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// reserve reserves n bytes and reports whether so many were free.
func (m *DerivedMemory) reserve(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || n > m.limit-m.used {
		return false
	}
	m.used += n
	return true
}

func (m *DerivedMemory) release(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
}

// DerivedCache caches the derived values of the newest DerivedVersion of one job: tasks never ask for older values
// again. A miss derives the value again, so dropping a
// value never changes a result. The cache retains each value. It is safe for
// concurrent use.
type DerivedCache struct {
	memory *DerivedMemory

	mu      sync.Mutex
	closed  bool
	version uint64
	bytes   int // taken of memory for values
	values  map[derivedKey]round.Derived
}

type derivedKey struct {
	op       uint8
	task, of int
}

// NewDerivedCache returns an empty cache with a budget of its own of limit bytes.
func NewDerivedCache(limit int) *DerivedCache { return NewDerivedMemory(limit).NewCache() }

// Close drops all values and releases their memory. A task that is still running can store
// nothing afterwards: nothing would release that memory.
func (c *DerivedCache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset(0)
	c.closed = true
}

// reset drops all values and begins a version. mu is held.
func (c *DerivedCache) reset(version uint64) {
	c.memory.release(c.bytes)
	c.version, c.bytes = version, 0
	for _, old := range c.values {
		old.Release()
	}
	clear(c.values)
}

// get returns the task's derived value from the cache or from Derive; nil: the task runs
// without one. The value is retained for the caller, who releases it.
func (c *DerivedCache) get(k round.ReduceKernel, u round.Task, d *dataset.Data, v round.Vars,
	scratch any) (round.Derived, error) {
	key := derivedKey{u.Op, u.ID, u.Of}
	c.mu.Lock()
	if c.version != u.DerivedVersion && !c.closed {
		c.reset(u.DerivedVersion)
	}
	value, ok := c.values[key]
	if ok {
		value.Retain()
	}
	c.mu.Unlock()
	if ok || u.DerivedVersion == 0 { // version 0 has no values, so value is nil
		return value, nil
	}
	reserved := 0
	u.Reserve = func(n int) bool {
		ok := c.memory.reserve(n)
		if ok {
			reserved += n
		}
		return ok
	}
	stored := false
	defer func() { // also where the kernel panics
		if !stored {
			c.memory.release(reserved)
		}
	}()
	value, err := k.Derive(u, d, v, scratch)
	if err != nil || value == nil {
		return nil, err
	}
	stored = c.store(u.DerivedVersion, key, value, &reserved)
	return value, nil
}

// store adds a value, for which *reserved bytes are reserved already, and reports whether it
// did. It then sets *reserved to the size of the value.
func (c *DerivedCache) store(version uint64, key derivedKey, value round.Derived, reserved *int) bool {
	size := value.Bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.values[key]; have || c.closed || c.version != version {
		return false
	}
	if size > *reserved && !c.memory.reserve(size-*reserved) {
		return false
	}
	if size < *reserved {
		c.memory.release(*reserved - size)
	}
	*reserved = size
	c.bytes += size
	c.values[key] = value
	value.Retain()
	return true
}
