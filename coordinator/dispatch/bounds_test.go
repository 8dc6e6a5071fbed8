package dispatch

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// purse is an Allowance that lets units of group 0 begin, and of each other group so many as the test
// says. A unit of group 2 may take a millisecond.
type purse struct {
	mu      sync.Mutex
	group   []int32
	may     map[int]int
	over    bool
	refused []int
	ended   []int
	back    []int
	closed  []uint32
}

func (p *purse) Open(group []int32, _ func(int) bool) { p.group = group }

func (p *purse) May(group int, _ time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lets(group)
}

// lets reports whether a unit of a group may begin; mu is held.
func (p *purse) lets(group int) bool { return group == 0 || p.may[group] > 0 }

func (p *purse) Begin(unit int, _ time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	group := int(p.group[unit])
	if !p.lets(group) {
		p.refused = append(p.refused, unit)
		return false
	}
	p.may[group]--
	return true
}

func (p *purse) Started(unit int, _ time.Time) time.Duration {
	if p.group[unit] == 2 {
		return time.Millisecond
	}
	return time.Hour
}

func (p *purse) Return(unit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = append(p.back, unit)
}

func (p *purse) End(unit int, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, unit)
}

func (p *purse) Over(group int, _ time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over && group == 1
}

func (p *purse) Withheld(units []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = append(p.closed, units...)
}

func (p *purse) allow(group, units int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.may[group] = units
}

// TestBounds: units for which no budget is left wait, and begin when there is some; those that will not begin are
// recorded as not run; one that uses its budget up is called off. The round ends with the others.
func TestBounds(t *testing.T) {
	l := newLab(t, time.Hour)
	p, n := &purse{may: make(map[int]int)}, new(notes)
	l.options.Allowance, l.options.Watcher = p, n
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	r := collecting(6)
	r.Groups, r.Apart = []int32{1, 0, 1, 2, 1, 0}, true
	l.parts.known = map[uint32]string{5: ""}
	d := l.do(x, 3, r)
	task := w.first(0)
	if task.unit() != 1 {
		t.Fatalf("unit %d begins first", task.unit())
	}
	l.until("all units but those of group 0 are held back", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Equal(p.refused, []int{0, 2, 3, 4})
	})
	w.idle()
	p.allow(1, 1)
	w.run(0).collected(0)
	task.collected(1)
	p.allow(2, 1)
	w.run(3)
	stop := w.next(protocol.KindForget).forget
	if !slices.Equal(stop.Units, []uint32{3}) || stop.Round != 3 || stop.Job != jobID {
		t.Errorf("called off: %+v", stop)
	}
	d.pending()
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	for u, want := range []string{string(partOf(0)), string(partOf(1)), "", "", "", ""} {
		if part, err := d.res.Part(u); err != nil || string(part) != want {
			t.Errorf("unit %d: part %q, error %v", u, part, err)
		}
	}
	l.parts.mu.Lock()
	defer l.parts.mu.Unlock()
	if got := slices.Sorted(maps.Keys(l.parts.withheld)); !slices.Equal(got, []uint32{2, 3, 4}) || l.parts.withheld[3] < time.Millisecond || l.parts.withheld[2] != 0 {
		t.Errorf("not run: %v", l.parts.withheld)
	}
	slices.Sort(p.ended)
	if !slices.Equal(p.ended, []int{0, 1, 3}) || !slices.Equal(p.closed, []uint32{2, 4}) || len(p.back) > 0 || n.count("not run") != 4 {
		t.Errorf("ended %v, closed %v, back %v; %v", p.ended, p.closed, p.back, n.list)
	}
	l.free(t, 1)
}
