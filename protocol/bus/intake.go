package bus

import (
	"sync"
	"time"
)

// intake has the clients of other processes wait before their messages come into the server
// while much waits for the connections of this process. NATS would close those, and
// subscriptions would drop what they cannot hold. The server reads nothing from a client
// that waits, so the network slows it down. Of those that wait the one goes on first that
// will have sent least. What a server of another coordinator sends over a route does not wait.
type intake struct {
	waits func() int64 // what waits for the connections of this process, in bytes: a slow look
	tasks sync.WaitGroup

	mu     sync.Mutex
	room   room
	line   line
	looks  bool // somebody looks again and again, until nobody waits
	closed bool
}

// lookEvery is the time between two looks while a client waits.
const lookEvery = 2 * time.Millisecond

// newIntake is for a server with ServerOptions.Pending.
func newIntake(pending int64, waits func() int64) *intake {
	return &intake{waits: waits, room: room{most: min(max(leastIntake, pending/intakeShare), mostIntake)}}
}

// enter waits until the server may take messages of a sender, of n bytes together, and says
// so; or says no, once the intake or the sender is closed. Until taken, the server may be
// taking them.
func (in *intake) enter(s *sender, n int64) bool { return in.ask(s, n) && <-s.turn }

// ask puts a sender into the line, which says on s.turn whether it may go on. It says no
// where all is closed.
func (in *intake) ask(s *sender, n int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.closed || in.closed {
		return false
	}
	in.line.join(s, n)
	in.admit()
	if s.waits() && !in.looks {
		in.looks = true
		in.tasks.Go(in.look)
	}
	return true
}

// admit lets in whoever is first and has room. in.mu is held.
func (in *intake) admit() {
	for s := in.line.first(); s != nil && in.room.fits(s.bytes); s = in.line.first() {
		in.line.next()
		s.entered = s.bytes
		in.room.entered += s.bytes
		s.turn <- true
	}
}

// taken says that the server has taken what entered of a sender.
func (in *intake) taken(s *sender) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.room.taken(s.entered)
	s.entered = 0
}

// leave has a sender wait no more: its connection is closed.
func (in *intake) leave(s *sender) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.closed = true
	in.room.taken(s.entered)
	s.entered = 0
	in.refuse(s)
	in.admit()
}

// refuse says no to a sender, if it waits. in.mu is held.
func (in *intake) refuse(s *sender) {
	if s.waits() {
		in.line.leave(s)
		s.turn <- false
	}
}

// look looks what waits, again and again, until no client does.
func (in *intake) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for in.lookOnce() {
		<-tick.C
	}
}

// lookOnce lets in those for which a look finds room, and reports whether others wait.
func (in *intake) lookOnce() bool {
	in.mu.Lock()
	before := in.room.since
	in.mu.Unlock()
	found := in.waits()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.room.found = found
	in.room.since -= before
	in.admit()
	in.looks = in.line.first() != nil
	return in.looks
}

// close has nobody wait any more, and waits for those who look.
func (in *intake) close() {
	in.mu.Lock()
	in.closed = true
	for s := in.line.first(); s != nil; s = in.line.first() {
		in.refuse(s)
	}
	in.mu.Unlock()
	in.tasks.Wait()
}
