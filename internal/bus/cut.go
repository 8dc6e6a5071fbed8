package bus

import (
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// cut ends the TCP connections of this process between a port of its own and peers: who
// writes to one or reads from it has an error at once, and what the system has not sent is
// dropped. Those that it cannot reach end when their owner closes them.
func cut(port uint16, peers map[netip.AddrPort]bool) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && between(fd, port, peers) {
			cutOne(fd, port, peers)
		}
	}
}

// cutOne ends one connection. The number of a descriptor may be another's by now: that of
// a duplicate is not.
func cutOne(fd int, port uint16, peers map[netip.AddrPort]bool) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(own)
	if !between(own, port, peers) {
		return
	}
	_ = unix.SetsockoptLinger(own, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	_ = unix.Shutdown(own, unix.SHUT_RDWR) // an error: it has ended
}

// between reports whether a descriptor is a connection from a port to one of peers.
func between(fd int, port uint16, peers map[netip.AddrPort]bool) bool {
	to, err := unix.Getpeername(fd)
	if err != nil || !peers[address(to)] {
		return false
	}
	from, err := unix.Getsockname(fd)
	return err == nil && address(from).Port() == port
}

// address is that of a socket, the zero value where it is not one of TCP.
func address(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
