package coordinator

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds those of an HTTP server. Where one more comes, the one is closed
// that has had no request for longest; where all have requests, the one that comes.
type connections struct {
	net.Listener
	most int

	mu     sync.Mutex
	open   map[net.Conn]*list.Element // nil: it has a request
	idle   *list.List                 // of net.Conn, the one without a request for longest first
	closed uint64
}

func boundConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, open: make(map[net.Conn]*list.Element), idle: list.New()}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		ok, instead := c.admit(conn)
		if instead != nil {
			instead.Close()
		}
		if ok {
			return conn, nil
		}
		conn.Close()
	}
}

// admit lets a connection in, or not; the one that it is let in for is to be closed.
func (c *connections) admit(conn net.Conn) (ok bool, instead net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		c.closed++
		first := c.idle.Front()
		if first == nil {
			return false, nil
		}
		instead = c.idle.Remove(first).(net.Conn)
		delete(c.open, instead)
	}
	c.open[conn] = c.idle.PushBack(conn)
	return true, instead
}

// follow is the server's ConnState.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	if !known { // closed for another
		return
	}
	if at != nil {
		c.idle.Remove(at)
		c.open[conn] = nil
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// count returns how many are open and how many were closed or refused for others.
func (c *connections) count() (open int, closed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.closed
}
