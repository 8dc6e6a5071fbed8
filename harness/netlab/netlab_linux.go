package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace; it stays while it is open or has processes.
type namespace struct{ file *os.File }

// onThread calls f in a thread of its own, which ends afterwards: whatever f does to it.
func onThread(f func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ended <- f()
	}()
	return <-ended
}

// newNamespace makes a namespace whose loopback is up.
func newNamespace() (*namespace, error) {
	var n *namespace
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a network namespace: %w", err)
		}
		if n, err = thisNamespace(); err != nil {
			return err
		}
		return raise("lo")
	})
	return n, err
}

// thisNamespace opens the namespace of the calling thread.
func thisNamespace() (*namespace, error) {
	f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	return &namespace{f}, err
}

func (n *namespace) close() error { return n.file.Close() }

func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return f()
	})
}

const (
	tunPath = "/dev/net/tun"
	tunName = "lab"
)

// openTUN makes the namespace's device, with addresses of one network, and returns its
// other end.
func (n *namespace) openTUN(addresses []netip.Addr) (tun io.ReadWriteCloser, err error) {
	err = n.do(func() error {
		fd, err := newTUN()
		if err != nil {
			return err
		}
		for i, a := range addresses {
			if err := setAddress(i, a); err != nil {
				return errors.Join(err, unix.Close(fd))
			}
		}
		if err := raise(tunName); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		tun = os.NewFile(uintptr(fd), tunPath)
		return nil
	})
	return tun, err
}

// newTUN makes a device in the calling thread's namespace, and returns a descriptor that
// the runtime can wait for.
func newTUN() (int, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", tunPath, err)
	}
	r, err := unix.NewIfreq(tunName)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("a device of %s: %w", tunPath, err), unix.Close(fd))
	}
	return fd, nil
}

// withSocket calls f with a socket, by which interfaces are set up.
func withSocket(f func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(f(fd), unix.Close(fd))
}

// setAddress gives the device an address; those after the first are on aliases of it.
func setAddress(i int, a netip.Addr) error {
	name := tunName
	if i > 0 {
		name += ":" + strconv.Itoa(i)
	}
	return withSocket(func(fd int) error {
		mask := uint32(1<<32 - 1<<(32-maskBits))
		for _, step := range []struct {
			request uint
			value   uint32
		}{{unix.SIOCSIFADDR, numberOf(a)}, {unix.SIOCSIFNETMASK, mask}} {
			r, err := unix.NewIfreq(name)
			if err != nil {
				return err
			}
			if err := r.SetInet4Addr(binary.BigEndian.AppendUint32(nil, step.value)); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, step.request, r); err != nil {
				return fmt.Errorf("the address %v: %w", a, err)
			}
		}
		return nil
	})
}

// raise brings an interface of the calling thread's namespace up.
func raise(name string) error {
	return withSocket(func(fd int) error {
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
			return fmt.Errorf("the interface %s: %w", name, err)
		}
		r.SetUint16(r.Uint16() | unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
			return fmt.Errorf("the interface %s: %w", name, err)
		}
		return nil
	})
}

// Missing says why there can be no network here; empty: there can.
func Missing() string {
	n, err := newNamespace()
	if err != nil {
		return "only root can make a network namespace: " + err.Error()
	}
	err = n.do(func() error {
		fd, err := newTUN()
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	})
	if err = errors.Join(err, n.close()); err != nil {
		return err.Error()
	}
	return ""
}

// insideKey is the variable by which a process knows the namespace that Enter made for it.
const insideKey = "NETLAB_NAMESPACE"

// Enter gives this process a network namespace of its own, with loopback alone. A running
// process cannot have one, for that is a thread's: it is started again under its own
// number, with the same arguments, files and environment, and Enter does nothing then.
// Call it before anything else has begun. Errors wrap ErrUnavailable where this machine
// or this user cannot have one.
func Enter() error {
	if entered() {
		return nil
	}
	if reason := Missing(); reason != "" {
		return fmt.Errorf("%w: %s", ErrUnavailable, reason)
	}
	return onThread(again)
}

// again starts the process again from a thread that has a namespace of its own: the
// process has what that thread has.
func again() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	if err := raise("lo"); err != nil {
		return err
	}
	here, err := currentNamespace()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, insideKey+"=") })
	return fmt.Errorf("starting %s again: %w", exe, syscall.Exec(exe, os.Args, append(env, insideKey+"="+here)))
}

// currentNamespace names the namespace of the calling thread.
func currentNamespace() (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
}

// entered reports whether this process is in a namespace that Enter made. A thread is
// asked: the first one, which /proc/self is about, may have been used up by onThread.
func entered() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := currentNamespace()
	return err == nil && here == os.Getenv(insideKey)
}
