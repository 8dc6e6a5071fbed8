package chaos

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// noDiallers says why this machine does not tell who dialled; empty: it does.
func noDiallers() string { return "" }

// dialler returns the --id of the process, a child of this one, that is at the other
// end of a connection over loopback; empty: another process, or it has closed it.
func dialler(c net.Conn) string {
	socket := socketOf(c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr))
	if socket == "" {
		return ""
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		if isChild(dir) && holds(dir, socket) {
			return idOf(dir)
		}
	}
	return ""
}

// socketOf returns the socket of a connection as files of /proc/PID/fd name it.
func socketOf(local, remote *net.TCPAddr) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	from, to := inHex(local), inHex(remote)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v := strings.Fields(lines.Text()); len(v) > 9 && v[1] == from && v[2] == to {
			return "socket:[" + v[9] + "]"
		}
	}
	return ""
}

// inHex writes an address of IPv4 as /proc/net/tcp does.
func inHex(a *net.TCPAddr) string {
	ip := slices.Clone(a.IP.To4())
	slices.Reverse(ip)
	return fmt.Sprintf("%X:%04X", []byte(ip), a.Port)
}

func isChild(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	_, after, ok := bytes.Cut(b, []byte(") ")) // the name may hold anything
	v := bytes.Fields(after)
	return err == nil && ok && len(v) > 1 && string(v[1]) == strconv.Itoa(os.Getpid())
}

func holds(dir, socket string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
	return slices.ContainsFunc(files, func(path string) bool {
		to, err := os.Readlink(path)
		return err == nil && to == socket
	})
}

func idOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	args := strings.Split(string(b), "\x00")
	if i := slices.Index(args, "--id"); err == nil && i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
