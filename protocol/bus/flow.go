package bus

import (
	"math"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

const (
	// longAhead is how many bytes of long messages may wait for clients that read them. What waits is a
	// copy, and the server keeps its memory for the next one. A link of 1 Gbit/s and 100 ms has 12 MiB on its way.
	longAhead = 12 << 20
	// stuckFor is the time after which a client that has read nothing holds up no other client.
	stuckFor = 200 * time.Millisecond
	// lookEvery is the time between two looks at the clients while a message waits.
	lookEvery = 2 * time.Millisecond
)

// flow holds back long messages while clients have not read the messages before them. NATS
// would close the connection of a client for which too much waits.
type flow struct {
	most     int64         // bound of all that waits, in bytes
	deadline time.Duration // ServerOptions.deadline

	mu      sync.Mutex
	all     int64             // bytes that wait, stuck clients included
	moving  int64             // bytes that wait for clients that read
	clients map[uint64]reader // that have not read all
	grew    time.Time         // the last time at which a client had read something
}

// reader is what is known of a client that has not read all.
type reader struct {
	read int64     // bytes
	grew time.Time // the first time at which it had read as much
}

// newFlow returns the flow of a server with ServerOptions.Pending and deadline. An eighth is left to short messages.
func newFlow(pending int64, deadline time.Duration) *flow {
	return &flow{most: pending / 8 * 7, deadline: deadline, clients: make(map[uint64]reader)}
}

// await waits until n bytes of a long message may be published. Clients that read nothing
// delay it by stuckFor, and by the deadline if the memory for messages is full. NATS closes
// the connections of such clients.
func (s *Server) await(subject string, n int) {
	f := s.flow
	bytes := int64(n) * int64(s.s.GlobalAccount().Interest(subject))
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fits(bytes) {
		tick := time.NewTicker(lookEvery) // NATS tells nobody when a client has read
		defer tick.Stop()
		for !f.look(s.clients(), time.Now()) && !f.fits(bytes) {
			<-tick.C
		}
	}
	f.all += bytes
	f.moving += bytes
}

// fits reports whether bytes may be published now. If nothing waits, any number may: to wait
// would not help.
func (f *flow) fits(bytes int64) bool {
	return f.all == 0 || f.all+bytes <= f.most && (f.moving == 0 || f.moving+bytes <= longAhead)
}

// look counts what waits for clients. It reports whether none has read anything until the
// deadline.
func (f *flow) look(conns []*natsserver.ConnInfo, now time.Time) (stuck bool) {
	f.all, f.moving = 0, 0
	before := f.clients
	f.clients = make(map[uint64]reader)
	for _, c := range conns {
		if c.Pending == 0 {
			continue
		}
		r, known := before[c.Cid]
		if read := c.OutBytes - int64(c.Pending); !known || read > r.read {
			r = reader{read: read, grew: now}
			f.grew = now
		}
		f.clients[c.Cid] = r
		f.all += int64(c.Pending)
		if now.Sub(r.grew) <= stuckFor {
			f.moving += int64(c.Pending)
		}
	}
	return now.Sub(f.grew) > f.deadline
}

// Load is what the clients of other processes take of a server.
type Load struct {
	Clients int
	Pending int64  // bytes that wait to be sent to them
	Closed  uint64 // clients that were closed since the start, because they read too slowly; NATS counts some twice
	Refused uint64 // clients that were refused since the start, because too many are connected
}

// Load returns what the clients of other processes take now.
func (s *Server) Load() Load {
	clients := s.clients()
	load := Load{Clients: len(clients), Closed: s.s.NumSlowConsumersClients(), Refused: s.admission.refused.Load()}
	for _, c := range clients {
		load.Pending += int64(c.Pending)
	}
	return load
}

// clients returns the connections of other processes. A connection of this process has no address.
func (s *Server) clients() (list []*natsserver.ConnInfo) {
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Limit: math.MaxInt32})
	if err != nil {
		return nil
	}
	for _, c := range conns.Conns {
		if c.IP != "" {
			list = append(list, c)
		}
	}
	return list
}
