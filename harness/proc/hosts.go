package proc

import (
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

// Loopback is this machine, by its loopback address.
type Loopback struct{}

func (Loopback) Address() string         { return freeport.Host }
func (Loopback) Start(c *exec.Cmd) error { return c.Start() }

// host returns where the process of a name runs.
func (c *Cluster) host(name string) (Host, error) {
	if c.cfg.Hosts == nil {
		return Loopback{}, nil
	}
	return c.cfg.Hosts(name)
}

// HostPort is the first port of a coordinator that has a host of its own.
const HostPort = 7070

// addresses returns the addresses of the coordinators' first ports.
func (c *Cluster) addresses() (servers []string, err error) {
	if c.cfg.Hosts != nil {
		for i := range c.cfg.Coordinators {
			server, err := c.address(name(i))
			if err != nil {
				return nil, err
			}
			servers = append(servers, server)
		}
		return servers, nil
	}
	ports, err := freeport.Blocks(c.cfg.Coordinators)
	for _, port := range ports {
		servers = append(servers, net.JoinHostPort(freeport.Host, strconv.Itoa(port)))
	}
	return servers, err
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
