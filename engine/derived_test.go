package engine

import (
	"errors"
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// sized is a derived value of so many bytes.
type sized int

func (s sized) Bytes() int { return int(s) }
func (sized) Retain()      {}
func (sized) Release()     {}

// deriver counts what it derives.
type deriver struct {
	zeroKernel
	mu    sync.Mutex
	calls map[derivedKey]int
	value round.Derived
	err   error
}

func (d *deriver) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = make(map[derivedKey]int)
	}
	d.calls[derivedKey{u.Op, u.ID, u.Of}]++
	return d.value, d.err
}

func (d *deriver) total() (n int) {
	for _, c := range d.calls {
		n += c
	}
	return n
}

// ask asks for the kept value of tasks 0 to n-1.
func ask(t *testing.T, c *DerivedCache, d *deriver, keep uint64, n int) {
	t.Helper()
	for u := range n {
		got, err := c.get(d, round.Task{ID: u, Of: n, DerivedVersion: keep}, nil, nil, nil)
		if err != nil || keep != 0 && got != d.value {
			t.Fatalf("unit %d: %v, error %v", u, got, err)
		}
	}
}

// TestCacheDerivesOnce for each task, until another version comes.
func TestCacheDerivesOnce(t *testing.T) {
	c, d := NewDerivedCache(1000), &deriver{value: sized(10)}
	for range 3 {
		ask(t, c, d, 1, 5)
	}
	if d.total() != 5 || c.bytes != 50 {
		t.Errorf("%d values derived for 5 units, %d bytes kept", d.total(), c.bytes)
	}
	ask(t, c, d, 2, 5)
	if d.total() != 10 || c.bytes != 50 || len(c.values) != 5 {
		t.Errorf("a new version: %d derived in all, %d values of %d bytes kept", d.total(), len(c.values), c.bytes)
	}
}

// TestCacheTellsUnitsApart by operation, number and number of tasks.
func TestCacheTellsTasksApart(t *testing.T) {
	c, d := NewDerivedCache(1000), &deriver{value: sized(1)}
	for range 2 {
		for _, u := range []round.Task{{ID: 1, Of: 4}, {ID: 2, Of: 4}, {ID: 1, Of: 8}, {ID: 1, Of: 4, Op: 3}} {
			u.DerivedVersion = 9
			c.get(d, u, nil, nil, nil)
		}
	}
	if len(d.calls) != 4 || d.total() != 4 {
		t.Errorf("derived %v", d.calls)
	}
}

// TestDerivedLimit: what is beyond it is derived each time, the rest stays.
func TestDerivedLimit(t *testing.T) {
	c, d := NewDerivedCache(25), &deriver{value: sized(10)}
	for range 3 {
		ask(t, c, d, 1, 4)
	}
	if c.bytes != 20 || d.total() != 2+3*2 {
		t.Errorf("%d bytes kept of at most 25, %d derived", c.bytes, d.total())
	}
}

// TestCacheAsksForNothing where DerivedVersion is 0, and keeps neither nil nor errors.
func TestCacheAsksForNothing(t *testing.T) {
	c, d := NewDerivedCache(25), &deriver{value: sized(10)}
	ask(t, c, d, 0, 4)
	if d.total() != 0 {
		t.Error("a value was derived that nobody keeps")
	}
	d.value = nil
	ask(t, c, d, 1, 1)
	ask(t, c, d, 1, 1)
	d.err = errors.New("bad luck")
	if _, err := c.get(d, round.Task{DerivedVersion: 1, Of: 1}, nil, nil, nil); !errors.Is(err, d.err) {
		t.Errorf("error %v", err)
	}
	if d.total() != 3 || len(c.values) != 0 {
		t.Errorf("%d derived, %d kept", d.total(), len(c.values))
	}
}

// heldValue counts its holders.
type heldValue struct {
	sized
	holders int
}

func (h *heldValue) Retain()  { h.holders++ }
func (h *heldValue) Release() { h.holders-- }

// heldDeriver derives values with one holder.
type heldDeriver struct {
	deriver
	made []*heldValue
}

func (d *heldDeriver) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	h := &heldValue{10, 1}
	d.made = append(d.made, h)
	return h, nil
}

// TestCacheRetains what it keeps until another version comes, and no run holds a value when it
// has ended.
func TestCacheRetains(t *testing.T) {
	c, d := NewDerivedCache(25), &heldDeriver{}
	for range 3 {
		for u := range 3 {
			if err := RunTask(new(round.Partial), d, round.Task{ID: u, Of: 3, DerivedVersion: 1}, nil, nil, c, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(d.made) != 5 { // two are kept, the third task's does not fit
		t.Fatalf("%d values", len(d.made))
	}
	for i, h := range d.made {
		if want := map[bool]int{true: 1}[i < 2]; h.holders != want {
			t.Errorf("value %d has %d holders, want %d", i, h.holders, want)
		}
	}
	if err := RunTask(new(round.Partial), d, round.Task{Of: 3, DerivedVersion: 2}, nil, nil, c, nil); err != nil {
		t.Fatal(err)
	}
	if d.made[0].holders != 0 || d.made[1].holders != 0 || d.made[5].holders != 1 {
		t.Errorf("with another version: %d, %d and %d holders", d.made[0].holders, d.made[1].holders, d.made[5].holders)
	}
}

// TestDerivedIsCountedOnce though slots derive the same task side by side, and by
// many goroutines with versions that change the count never goes wrong.
func TestDerivedIsCountedOnce(t *testing.T) {
	c, d := NewDerivedCache(1000), &deriver{value: sized(10)}
	var lanes sync.WaitGroup
	for lane := range 8 {
		lanes.Go(func() {
			for i := range 200 {
				c.get(d, round.Task{ID: i % 3, Of: 3, DerivedVersion: uint64(1 + (i+lane)/50)}, nil, nil, nil)
			}
		})
	}
	lanes.Wait()
	if c.bytes != 10*len(c.values) {
		t.Errorf("%d bytes counted for %d values of 10", c.bytes, len(c.values))
	}
	key := derivedKey{0, 0, 1}
	c = NewDerivedCache(1000)
	c.version = 1
	c.store(1, key, sized(10), new(int))
	c.store(1, key, sized(10), new(int))
	c.store(2, derivedKey{0, 1, 1}, sized(10), new(int)) // came too late
	if c.bytes != 10 || len(c.values) != 1 {
		t.Errorf("%d bytes of %d values kept, want 10 of 1", c.bytes, len(c.values))
	}
}
