package netlab

import (
	"encoding/binary"
	"net/netip"
)

// mtu is the size of the greatest packet, in bytes, as on Ethernet.
const mtu = 1500

// The parts of an IPv4 packet that are read.
const (
	leastHeader = 20
	protocolAt  = 9
	sourceAt    = 12
	targetAt    = 16
	protocolTCP = 6
)

// header is what is read of a packet. The ports are 0 where it is not TCP.
type header struct {
	from, to         netip.Addr
	fromPort, toPort uint16
}

// parseHeader reads a packet; false: it is not a whole one of IPv4.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < leastHeader || b[0]>>4 != 4 {
		return h, false
	}
	size := int(b[0]&0xf) * 4
	if size < leastHeader || len(b) < size {
		return h, false
	}
	h.from = netip.AddrFrom4([4]byte(b[sourceAt : sourceAt+4]))
	h.to = netip.AddrFrom4([4]byte(b[targetAt : targetAt+4]))
	if b[protocolAt] == protocolTCP && len(b) >= size+4 {
		h.fromPort, h.toPort = binary.BigEndian.Uint16(b[size:]), binary.BigEndian.Uint16(b[size+2:])
	}
	return h, true
}
