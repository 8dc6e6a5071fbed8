package protocol

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckID reports why text cannot be the id of a coordinator or a worker: it stands in
// subjects of NATS, URLs and metrics.
func CheckID(text string) error {
	if !idPattern.MatchString(text) {
		return fmt.Errorf("the id %.80q is not valid: want 1 to 64 letters, digits, - or _", text)
	}
	return nil
}

// The longest host of an address: 253 bytes of a name in DNS.
const maxHost = 253

var errAddress = errors.New("want HOST:PORT, such as 10.0.0.1:7100 or [::1]:7100")

// CheckAddress reports why text is not the address of a server, HOST:PORT. The host is an
// IP address or a name.
func CheckAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return errAddress
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.20q is not a port: want 1 to 65535", port)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if !isHostName(host) {
		return fmt.Errorf("%.80q is neither an IP address nor the name of a host", host)
	}
	return nil
}

// isHostName reports whether text may be the name of a host. What resolvers read as an IPv4
// address, such as 127.1 and 0x7f000001, is none: its last label is a number.
func isHostName(text string) bool {
	name := strings.TrimSuffix(text, ".")
	for i := range len(name) {
		if c := name[i]; !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-' && i > 0) {
			return false
		}
	}
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	hex, isHex := strings.CutPrefix(last, "0x")
	return len(name) <= maxHost && strings.Trim(last, "0123456789") != "" && !(isHex && strings.Trim(hex, "0123456789abcdef") == "")
}

// CheckReachable reports why text is not an address that other machines can be told to
// connect to: CheckAddress has an error, or nobody else reaches its host.
func CheckReachable(text string) error {
	if err := CheckAddress(text); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(text)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	switch ip = ip.Unmap().WithZone(""); {
	case ip.IsUnspecified():
		return fmt.Errorf("%s means all interfaces of a machine, so other machines cannot connect to it", host)
	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is not the address of a single machine", host)
	}
	return nil
}

// SameHost reports whether two hosts of addresses are one by their texts. A name may be
// that of any address, so of names only localhost is known.
func SameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX == nil && errY == nil {
		return x.Unmap() == y.Unmap()
	}
	name := func(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
	local := func(host string, ip netip.Addr, err error) bool {
		return err != nil && name(host) == "localhost" || err == nil && (ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback())
	}
	return name(a) == name(b) || local(a, x, errX) && local(b, y, errY)
}

// SamePlace reports whether two addresses are one by their texts, as SameHost.
func SamePlace(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && SameHost(hostA, hostB)
}
