package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Node is one process of a cluster. Its methods are safe for concurrent use.
type Node struct {
	Name string   // "a", "b", ... for coordinators, "w1", "w2", ... for workers
	Args []string // of the executable
	Log  string   // path of the file with its output
	Dir  string   // its disk; empty for a process without one

	exe  string
	env  []string
	host Host

	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the process has ended
	err   error         // how it ended, once done
}

// Launch starts a process that belongs to no cluster, with a log file, on this machine.
func Launch(exe string, env []string, name, log string, args ...string) (*Node, error) {
	return LaunchOn(Loopback{}, exe, env, name, log, args...)
}

// LaunchOn starts a process that belongs to no cluster on a host.
func LaunchOn(host Host, exe string, env []string, name, log string, args ...string) (*Node, error) {
	n := &Node{Name: name, Args: args, Log: log, exe: exe, env: env, host: host}
	return n, n.start()
}

// start starts the process, which must not run.
func (n *Node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running() {
		return fmt.Errorf("proc: %s is already running", n.Name)
	}
	if err := os.MkdirAll(filepath.Dir(n.Log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(n.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.exe, n.Args...)
	cmd.Env = append(os.Environ(), n.env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: an interrupt from the terminal is for the parent, which
	// ends its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := n.host.Start(cmd); err != nil {
		return err
	}
	n.cmd, n.stdin, n.done = cmd, stdin, make(chan struct{})
	go n.wait(cmd, n.done)
	return nil
}

func (n *Node) wait(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	n.mu.Lock()
	n.err = err
	n.mu.Unlock()
	close(done)
}

func (n *Node) running() bool {
	if n.done == nil {
		return false
	}
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// Running reports whether the process has not ended; a stopped one has not.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running()
}

// Pid returns the number of the process.
func (n *Node) Pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd.Process.Pid
}

// ended returns a channel that is closed when the process has ended.
func (n *Node) ended() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.done
}

// Err returns how the process ended, nil for exit code 0 or while it runs.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// state says whether the process runs or how it ended.
func (n *Node) state() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.running():
		return "runs"
	case n.err != nil:
		return n.err.Error()
	}
	return "ended"
}

// Signal sends a signal; to a process that has ended it does nothing.
func (n *Node) Signal(s os.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return nil
	}
	err := n.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop freezes the process (SIGSTOP): it neither answers nor ends.
func (n *Node) Stop() error { return n.Signal(syscall.SIGSTOP) }

// Continue lets a frozen process go on (SIGCONT).
func (n *Node) Continue() error { return n.Signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL) and waits until it is gone.
func (n *Node) Kill() error {
	if err := n.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if done := n.ended(); done != nil {
		<-done
	}
	return nil
}

// Restart starts the process again after its end, with the same arguments, disk
// and log.
func (n *Node) Restart() error { return n.start() }

// Quit asks the process to end (SIGTERM), and kills it when ctx is done.
func (n *Node) Quit(ctx context.Context) error {
	done := n.ended()
	if done == nil {
		return nil
	}
	if err := errors.Join(n.Signal(syscall.SIGCONT), n.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return n.Kill()
	}
}

// quitWithin is how long a process may take to end by itself.
const quitWithin = 5 * time.Second
