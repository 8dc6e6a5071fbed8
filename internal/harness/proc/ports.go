package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// A coordinator uses a block of ports; blocks are sought below the ports that
// systems hand out by themselves.
const (
	blockPorts = 4
	lowestPort = 20000
	blocks     = (32000 - lowestPort) / blockPorts
)

const host = "127.0.0.1"

// freeBlocks returns the first ports of n blocks that are free now.
func freeBlocks(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var found []int
	start := rand.IntN(blocks)
	for i := 0; i < blocks && len(found) < n; i++ {
		base := lowestPort + (start+i)%blocks*blockPorts
		block, err := holdBlock(base)
		held = append(held, block...)
		if err == nil {
			found = append(found, base)
		}
	}
	if len(found) < n {
		return nil, errors.New("proc: no free ports on " + host)
	}
	return found, nil
}

// holdBlock listens on every port of a block.
func holdBlock(base int) (held []net.Listener, err error) {
	for port := base; port < base+blockPorts; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return held, fmt.Errorf("proc: port %d: %w", port, err)
		}
		held = append(held, l)
	}
	return held, nil
}

// FreeBlock returns the first of a coordinator's ports that nobody listens on now, on
// loopback and outside the range that systems hand out by themselves.
func FreeBlock() (int, error) {
	bases, err := freeBlocks(1)
	if err != nil {
		return 0, err
	}
	return bases[0], nil
}

// FreeAddress returns a loopback address of such a port.
func FreeAddress() (string, error) {
	base, err := FreeBlock()
	return net.JoinHostPort(host, strconv.Itoa(base)), err
}
