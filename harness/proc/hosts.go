package proc

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"

	"github.com/coppice-ldl/coppice/harness/freeport"
)

// Host is where a process runs: for the network, it is a machine.
type Host interface {
	Address() string       // without a port
	Start(*exec.Cmd) error // starts a process there
}

// loopback is this machine, by its loopback address.
type loopback struct{}

func (loopback) Address() string         { return freeport.Host }
func (loopback) Start(c *exec.Cmd) error { return c.Start() }

// host returns where the process of a name runs.
func (c *Cluster) host(name string) (Host, error) {
	if c.cfg.Hosts == nil {
		return loopback{}, nil
	}
	return c.cfg.Hosts(name)
}

// HostPort is the first port of a coordinator that has a host of its own.
const HostPort = 7070

// addresses returns the addresses of the coordinators' first ports, and, where they are
// behind proxies, those of the ports at which they listen.
func (c *Cluster) addresses() (servers, inside []string, err error) {
	if c.cfg.Hosts != nil {
		for i := range c.cfg.Coordinators {
			server, err := c.address(name(i))
			if err != nil {
				return nil, nil, err
			}
			servers = append(servers, server)
		}
		return servers, nil, nil
	}
	blocks := c.cfg.Coordinators
	if c.cfg.Behind != nil {
		blocks *= 2
	}
	ports, err := freeport.Blocks(blocks)
	if err != nil {
		return nil, nil, err
	}
	for _, port := range ports {
		servers = append(servers, net.JoinHostPort(freeport.Host, strconv.Itoa(port)))
	}
	if c.cfg.Behind == nil {
		return servers, nil, nil
	}
	return servers[:c.cfg.Coordinators], servers[c.cfg.Coordinators:], nil
}

// address returns an address for one coordinator.
func (c *Cluster) address(name string) (string, error) {
	if c.cfg.Hosts == nil {
		return freeport.Address()
	}
	h, err := c.host(name)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(h.Address(), strconv.Itoa(HostPort)), nil
}

// listening returns the arguments of a coordinator behind a proxy whose ports begin at an
// address.
func listening(first string) []string {
	ip, text, err := net.SplitHostPort(first)
	base, bad := strconv.Atoi(text)
	if err != nil || bad != nil {
		panic("proc: " + first + " is no address with a port")
	}
	args := []string{"--behind-proxy"}
	for i, flag := range []string{"--http", "--raft", "--nats-listen", "--nats-routes"} {
		args = append(args, flag, fmt.Sprintf("%s:%d", ip, base+i))
	}
	return args
}
