package netlab

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

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
