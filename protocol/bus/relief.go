package bus

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// Load is what the clients of a server take.
type Load struct {
	Clients int
	Pending int64  // bytes that wait to be sent to them
	Closed  uint64 // clients that Relieve closed since the start
	Refused uint64 // connections that found no place
}

// relief is what Relieve knows.
type relief struct {
	pending     int64 // bound of all clients
	connections int   // bound; 0: none

	looking sync.Mutex // held by who looks

	mu      sync.Mutex
	leaving int64 // bytes that this process is sending, to each that listens
	left    int64 // that it has sent since the last look began
	load    Load
}

const (
	// crowded is the share of the connections from which clients that listen to nothing
	// are closed.
	crowded = 0.75
	// roomy is the share of the bound that may wait after a look for which a sender waits:
	// the next such look comes when a share of at least 1 - roomy was sent, so that looks
	// take little of a sender's time. The largest message is five sixths of the bound, and fits.
	roomy = 0.875
	// settled is how old a client is at least that listens to nothing and is closed.
	settled = 2 * time.Second
	// mostOfName is how many clients of one name may be: a worker that moves has two, and
	// two workers of one identity are to be heard.
	mostOfName = 4
)

func newRelief(pending int64, connections int) *relief {
	return &relief{pending: pending, connections: connections}
}

// Load returns what Relieve found last.
func (s *Server) Load() Load {
	refused := s.door.count()
	s.relief.mu.Lock()
	defer s.relief.mu.Unlock()
	load := s.relief.load
	load.Refused = refused
	return load
}

// reserve makes room for a message of n bytes that this process is about to send, as often
// as it has listeners, and returns the bytes, which are to be given to sent. Clients are
// closed for it where need be. An error, which is ErrListeners, says that it does not fit.
func (s *Server) reserve(subject string, n int) (int64, error) {
	listeners := s.s.GlobalAccount().Interest(subject)
	bytes := int64(n) * int64(listeners)
	r := s.relief
	if r.fits(bytes) {
		return bytes, nil
	}
	r.looking.Lock()
	defer r.looking.Unlock()
	if r.fits(bytes) { // another sender has looked meanwhile
		return bytes, nil
	}
	s.relieve(bytes, int64(roomy*float64(r.pending)))
	if r.fits(bytes) {
		return bytes, nil
	}
	return 0, fmt.Errorf("%w: no room for a message of %d bytes to %d listeners on %s", ErrListeners, n, listeners, subject)
}

// await waits until there is room for n bytes more of a long message, as long as clients read what waits for them: they
// read as fast as a link is, and are sent to as fast as memory is. Where they read nothing, or a trickle, or others take
// the room, reserve makes it. d goes with the message.
func (s *Server) await(subject string, n int, d *drain) {
	r := s.relief
	bytes := int64(n) * int64(s.s.GlobalAccount().Interest(subject))
	if r.roomFor(bytes) {
		d.begin()
		return
	}
	tick := time.NewTicker(lookEvery) // NATS tells nobody when a client has read
	defer tick.Stop()
	for !d.slow(s.look(), time.Now()) && !r.roomFor(bytes) {
		<-tick.C
	}
	d.sent += bytes
}

// longAhead is how many bytes of long messages may wait for clients: what waits is a copy, whose memory the server
// keeps for the next one. A link of 1 Gbit/s and 100 ms has 12 MiB on its way.
const longAhead = 12 << 20

// roomFor reports whether bytes more of a long message may wait, and leave room for small ones. Where nothing waits
// there is room: what so many listen to that it is more than longAhead would wait in vain.
func (r *relief) roomFor(bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.load.Pending + r.left + r.leaving
	return waits == 0 || waits+bytes <= min(longAhead, int64(roomy*float64(r.pending)))
}

// look looks what waits for clients, and returns it.
func (s *Server) look() int64 {
	r := s.relief
	r.looking.Lock()
	defer r.looking.Unlock()
	r.mu.Lock()
	before := r.left
	r.mu.Unlock()
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Limit: math.MaxInt32})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.load.Pending = waiting(conns.Conns)
		r.left -= before
	}
	return r.load.Pending
}

// fits counts bytes that are about to be sent, if there is room for them.
func (r *relief) fits(bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load.Pending+r.left+r.leaving+bytes > r.pending {
		return false
	}
	r.leaving += bytes
	return true
}

// sent counts bytes as sent that reserve has counted.
func (r *relief) sent(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving -= bytes
	r.left += bytes
}

// Relieve closes clients where they take more than they may: those for which most
// waits to be sent, until what waits for all is within ServerOptions.Pending, those of one
// name beyond the fourth, and, where most of ServerOptions.Connections are taken, those that
// listen to nothing, the oldest first. It is to be called several times a second, and
// returns how many it closed. Routes and clients of this process stay.
func (s *Server) Relieve() int {
	s.relief.looking.Lock()
	defer s.relief.looking.Unlock()
	return s.relieve(0, s.relief.pending)
}

// relieve is Relieve that makes room for more bytes, and leaves no more than most of those
// that wait. relief.looking is held.
func (s *Server) relieve(more, most int64) int {
	r := s.relief
	r.mu.Lock()
	more = max(more+r.leaving, r.pending-most)
	before := r.left
	r.mu.Unlock()
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Sort: natsserver.ByPending, Limit: int(^uint32(0) >> 1)})
	if err != nil {
		return 0
	}
	load := Load{Pending: waiting(conns.Conns)}
	closed := s.drop(r.excess(conns.Conns, more, time.Now()))
	for _, c := range closed {
		load.Pending -= int64(c.Pending)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	load.Clients, load.Closed = len(conns.Conns)-len(closed), r.load.Closed+uint64(len(closed))
	r.load = load
	r.left -= before
	return len(closed)
}

// waiting returns the bytes that wait for clients of other processes. What waits for this
// process is bounded by the intake.
func waiting(conns []*natsserver.ConnInfo) (bytes int64) {
	for _, c := range conns {
		if foreign(c) {
			bytes += int64(c.Pending)
		}
	}
	return bytes
}

// drop closes clients at once, and returns those that it has closed. NATS itself would
// first try to send what waits for them, and keep it until it gives up.
func (s *Server) drop(conns []*natsserver.ConnInfo) (closed []*natsserver.ConnInfo) {
	var peers []netip.AddrPort
	for _, c := range conns {
		if s.s.DisconnectClientByID(c.Cid) != nil {
			continue
		}
		closed = append(closed, c)
		if ip, err := netip.ParseAddr(c.IP); err == nil {
			peers = append(peers, unmapped(netip.AddrPortFrom(ip, uint16(c.Port))))
		}
	}
	s.door.cut(peers)
	return closed
}

// excess chooses the clients to be closed, of a list with those first for which most
// waits, so that more bytes may wait.
func (r *relief) excess(conns []*natsserver.ConnInfo, more int64, now time.Time) (out []*natsserver.ConnInfo) {
	waits := more + waiting(conns)
	closed := make(map[uint64]bool)
	choose := func(c *natsserver.ConnInfo) {
		waits -= int64(c.Pending)
		closed[c.Cid] = true
		out = append(out, c)
	}
	for _, c := range namesakes(conns) {
		choose(c)
	}
	for _, c := range conns {
		if waits <= r.pending || c.Pending == 0 {
			break
		}
		if foreign(c) && !closed[c.Cid] {
			choose(c)
		}
	}
	over := len(conns) - len(out) - int(crowded*float64(r.connections))
	if r.connections == 0 || over <= 0 {
		return out
	}
	for _, c := range oldest(conns) {
		if over > 0 && foreign(c) && !closed[c.Cid] && c.NumSubs == 0 && now.Sub(c.Start) >= settled {
			choose(c)
			over--
		}
	}
	return out
}

// namesakes returns the clients beyond those that may have one name: first those for which
// most waits, then the newest.
func namesakes(conns []*natsserver.ConnInfo) (out []*natsserver.ConnInfo) {
	named := make(map[string][]*natsserver.ConnInfo)
	for _, c := range conns {
		if foreign(c) && c.Name != "" {
			named[c.Name] = append(named[c.Name], c)
		}
	}
	for _, same := range named {
		if len(same) <= mostOfName {
			continue
		}
		slices.SortStableFunc(same, func(a, b *natsserver.ConnInfo) int {
			return cmp.Or(cmp.Compare(b.Pending, a.Pending), b.Start.Compare(a.Start))
		})
		out = append(out, same[:len(same)-mostOfName]...)
	}
	return out
}

// foreign reports whether a client is of another process: those in-process have no
// address.
func foreign(c *natsserver.ConnInfo) bool { return c.IP != "" }

// oldest returns connections by age, the oldest first.
func oldest(conns []*natsserver.ConnInfo) []*natsserver.ConnInfo {
	return slices.SortedFunc(slices.Values(conns), func(a, b *natsserver.ConnInfo) int { return a.Start.Compare(b.Start) })
}
