// Package freeport finds ports of loopback on which nobody listens, for tests and for clusters
// on one machine, where an address must be known before a process listens on it. The ports lie
// below the ports that systems give to connections: no connection of another process takes one
// meanwhile. A process keeps the blocks that it found: no other process finds them.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// Host is loopback.
const Host = "127.0.0.1"

// BlockPorts is how many ports in a row a coordinator uses.
const BlockPorts = 4

// The blocks in which ports are sought.
const (
	lowestPort = 20000
	blocks     = (32000 - lowestPort) / BlockPorts
)

// next is the block to look at next, modulo blocks: this process finds none twice before it has
// looked at all.
var next atomic.Uint64

func init() { next.Store(rand.Uint64N(blocks)) }

// maxLeases bounds the sockets of a process that finds blocks for days. The blocks of older
// leases are in use by then, or no longer needed. Tests of one package need hundreds at once.
const maxLeases = 1024

// leases holds a UDP socket on the first port of each block that this process found last. Other
// processes skip the block even if nothing listens on its TCP ports yet.
var leases struct {
	sync.Mutex
	sockets []net.PacketConn
}

// keep keeps a lease.
func keep(lease net.PacketConn) {
	leases.Lock()
	defer leases.Unlock()
	if leases.sockets = append(leases.sockets, lease); len(leases.sockets) > maxLeases {
		leases.sockets[0].Close()
		leases.sockets = leases.sockets[1:]
	}
}

// Blocks returns the first ports of n blocks that are free now. An error says that there are
// fewer.
func Blocks(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var found []int
	for i := 0; i < blocks && len(found) < n; i++ {
		base := lowestPort + int(next.Add(1)%blocks)*BlockPorts
		// before its TCP ports: the process that has the lease may listen just now
		lease, err := net.ListenPacket("udp", address(base))
		if err != nil {
			continue
		}
		block, err := hold(base)
		if held = append(held, block...); err != nil {
			lease.Close()
			continue
		}
		keep(lease)
		found = append(found, base)
	}
	if len(found) < n {
		return nil, errors.New("there are no free ports on " + Host)
	}
	return found, nil
}

// hold listens on every port of a block.
func hold(base int) (held []net.Listener, err error) {
	for port := base; port < base+BlockPorts; port++ {
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			return held, fmt.Errorf("port %d: %w", port, err)
		}
		held = append(held, l)
	}
	return held, nil
}

func address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }

// Block returns the first port of a block that is free now. Errors: as of Blocks.
func Block() (int, error) {
	bases, err := Blocks(1)
	if err != nil {
		return 0, err
	}
	return bases[0], nil
}

// Address returns the address of a port that is free now. Errors: as of Blocks.
func Address() (string, error) {
	base, err := Block()
	return address(base), err
}
