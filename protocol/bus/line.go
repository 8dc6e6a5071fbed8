package bus

import (
	"cmp"
	"container/heap"
)

// room is what is known of the bytes that wait for the connections of this process.
type room struct {
	most    int64
	found   int64 // waited at the last look
	since   int64 // the server has taken since that look began
	entered int64 // the server may be taking just now
}

// The bounds of what waits for this process, as a share of ServerOptions.Pending: half of
// what one of a coordinator's subscriptions holds, and at most what takes some milliseconds
// to be looked at, since small messages wait behind it.
const (
	intakeShare = 8
	leastIntake = 2 * maxPayload
	mostIntake  = 4 * maxPayload
)

// fits reports whether n bytes more may come. More than all the room fits where nothing waits.
func (r *room) fits(n int64) bool { return r.found+r.since+r.entered+min(n, r.most) <= r.most }

// taken counts bytes as taken that have entered.
func (r *room) taken(n int64) {
	r.entered -= n
	r.since += n
}

// sender is a client of another process as far as its messages are concerned.
type sender struct {
	bytes      int64 // of the messages that it waits with
	start, end int64 // of its turn, on the clock of the line
	joined     uint64
	place      int // in the line, from 1; 0: it does not wait
	turn       chan bool

	entered int64 // bytes that the server may be taking just now
	closed  bool
}

func newSender() *sender { return &sender{turn: make(chan bool, 1)} }

func (s *sender) waits() bool { return s.place > 0 }

// line orders senders so that each gets the same share, in bytes. The turn of one that sends
// without pause begins where its last one ended; that of any other begins now. Whose turn ends
// earlier is first, so that a heartbeat passes large messages, however many wait.
type line struct {
	clock   int64 // when the latest turn began of those that were let in
	joined  uint64
	senders places
}

// join puts a sender that does not wait into the line, with n bytes.
func (l *line) join(s *sender, n int64) {
	l.joined++
	s.joined, s.bytes = l.joined, n
	s.start = max(l.clock, s.end)
	s.end = s.start + n
	heap.Push(&l.senders, s)
}

// first returns who is first; nil: nobody waits.
func (l *line) first() *sender {
	if len(l.senders) == 0 {
		return nil
	}
	return l.senders[0]
}

// next takes out who is first, whose turn begins.
func (l *line) next() {
	l.clock = max(l.clock, l.first().start)
	l.leave(l.first())
}

// leave takes a sender out of the line that waits there.
func (l *line) leave(s *sender) { heap.Remove(&l.senders, s.place-1) }

// places implements heap.Interface.
type places []*sender

func (p places) Len() int { return len(p) }

func (p places) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[i].end, p[j].end), cmp.Compare(p[i].joined, p[j].joined)) < 0
}

func (p places) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].place, p[j].place = i+1, j+1
}

func (p *places) Push(x any) {
	s := x.(*sender)
	*p = append(*p, s)
	s.place = len(*p)
}

func (p *places) Pop() any {
	last := len(*p) - 1
	s := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	s.place = 0
	return s
}
