package system

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// NoDiallers says why this machine does not tell who dialled; empty: it does.
func NoDiallers() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if _, err := inode(c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)); err != nil {
		return "the process that opened the connection cannot be found: " + err.Error()
	}
	return ""
}

// Dialler returns the --id of the process, a child of this one, that is at the other
// end of a connection over loopback; empty: another process, or it has closed it.
func Dialler(c net.Conn) string {
	n, err := inode(c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr))
	if err != nil {
		return ""
	}
	return owners.of(fmt.Sprintf("socket:[%d]", n))
}

// owners keeps what was read of /proc: which child has which socket. Reading takes
// milliseconds, and many connections may be opened at once: those that wait meanwhile
// are in what is read next.
var owners owned

type owned struct {
	mu    sync.Mutex
	names map[string]string // by socket
	read  time.Time
}

// validFor is how long what was read is believed: the number of a socket may be used
// again.
const validFor = time.Second

func (o *owned) of(socket string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if name, ok := o.names[socket]; ok && time.Since(o.read) < validFor {
		return name
	}
	o.names, o.read = make(map[string]string), time.Now()
	o.add("/proc/self", "")
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		if isChild(dir) {
			o.add(dir, idOf(dir))
		}
	}
	return o.names[socket]
}

// add notes the sockets of a process.
func (o *owned) add(dir, name string) {
	files, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
	for _, path := range files {
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "socket:") {
			o.names[to] = name
		}
	}
}

// What the kernel is asked by, from linux/sock_diag.h and linux/inet_diag.h.
const (
	sockDiag       = 4  // the netlink protocol
	byFamily       = 20 // the message
	allStates      = 0xffffffff
	askBytes       = 16 + 56
	answerBytes    = 16 + 72
	inodeAt        = 16 + 68
	errorAt        = 16
	requestMessage = 1
)

// inode returns the number of the socket of a connection over IPv4, as files of
// /proc/PID/fd name it. The kernel is asked for this one: /proc/net/tcp lists all.
func inode(local, remote *net.TCPAddr) (uint32, error) {
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, sockDiag)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(s)
	if err := syscall.Sendto(s, question(local, remote), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, err
	}
	b := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(s, b, 0)
	switch {
	case err != nil:
		return 0, err
	case n >= errorAt+4 && binary.NativeEndian.Uint16(b[4:]) == syscall.NLMSG_ERROR:
		return 0, syscall.Errno(-int32(binary.NativeEndian.Uint32(b[errorAt:])))
	case n < answerBytes:
		return 0, fmt.Errorf("the answer has an unexpected length of %d bytes", n)
	}
	return binary.NativeEndian.Uint32(b[inodeAt:]), nil
}

// question is a netlink header and an inet_diag_req_v2.
func question(local, remote *net.TCPAddr) []byte {
	host := binary.NativeEndian
	b := host.AppendUint32(nil, askBytes)
	b = host.AppendUint16(b, byFamily)
	b = host.AppendUint16(b, requestMessage)
	b = append(b, make([]byte, 8)...) // sequence, port
	b = append(b, syscall.AF_INET, syscall.IPPROTO_TCP, 0, 0)
	b = host.AppendUint32(b, allStates)
	b = binary.BigEndian.AppendUint16(b, uint16(local.Port))
	b = binary.BigEndian.AppendUint16(b, uint16(remote.Port))
	for _, a := range []*net.TCPAddr{local, remote} {
		b = append(append(b, a.IP.To4()...), make([]byte, 12)...)
	}
	return append(b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // any interface, no cookie
}

func isChild(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	_, after, ok := bytes.Cut(b, []byte(") ")) // the name may hold anything
	v := bytes.Fields(after)
	return err == nil && ok && len(v) > 1 && string(v[1]) == strconv.Itoa(os.Getpid())
}

func idOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	args := strings.Split(string(b), "\x00")
	if i := slices.Index(args, "--id"); err == nil && i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
