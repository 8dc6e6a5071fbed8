package netlab

import "slices"

// Cut is what does not pass: packets from one host to another, in this direction only.
type Cut struct {
	From, To string   // names of hosts; empty: any
	Ports    []uint16 // of TCP, at either end; none: everything
}

// stops reports whether a cut stops packets of a header between two hosts.
func (c *Cut) stops(from, to string, h *header) bool {
	if c.From != "" && c.From != from || c.To != "" && c.To != to {
		return false
	}
	return len(c.Ports) == 0 || slices.Contains(c.Ports, h.fromPort) || slices.Contains(c.Ports, h.toPort)
}
